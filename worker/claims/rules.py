"""The gatekeeper's rules by name, and the codes of what breaks them.

Names and codes are part of the evaluation record: never rename one. The rules about a
record's own state use the codes of ``worker.guards.violations`` beside these.
"""

from enum import StrEnum

from contracts.claims import Finding


class Rule(StrEnum):
    SCHEMA = "schema.executor_v2"
    INVOCATION_REF = "evidence.invocation_ref"
    """The id names a call of this run, made with the tool that the binding names."""
    INVOCATION_RESULT = "evidence.invocation_result"
    """That call came to a result that may be cited."""
    RAW_PATH = "evidence.raw_path"
    MATCHED_TEXT = "evidence.matched_text"
    CLAIM_BOUND = "evidence.claim_bound"
    """Something passed: at least one binding of all, at least one of each claim that is kept."""
    GAP_REF = "gap.reference"
    """A gap names an existing claim and a known tool. Breaking it is only a warning."""


class GateCode(StrEnum):
    # the document's own structure
    VERSION_UNKNOWN = "VERSION_UNKNOWN"
    FIELD_REMOVED = "FIELD_REMOVED"
    CLAIMS_EMPTY = "CLAIMS_EMPTY"
    CLAIMS_TOO_MANY = "CLAIMS_TOO_MANY"
    BINDINGS_TOO_MANY = "BINDINGS_TOO_MANY"
    CLAIM_ID_BLANK = "CLAIM_ID_BLANK"
    CLAIM_ID_DUPLICATE = "CLAIM_ID_DUPLICATE"
    CLAIM_ID_TOO_LONG = "CLAIM_ID_TOO_LONG"
    TEXT_BLANK = "TEXT_BLANK"
    BINDINGS_MISSING = "BINDINGS_MISSING"

    # one binding
    TOOL_MISMATCH = "TOOL_MISMATCH"
    NO_EVIDENCE_FOUND = "NO_EVIDENCE_FOUND"
    PATH_INVALID = "PATH_INVALID"
    PATH_MISSING = "PATH_MISSING"
    PATH_NOT_SCALAR = "PATH_NOT_SCALAR"
    MATCH_BLANK = "MATCH_BLANK"
    MATCH_TOO_LONG = "MATCH_TOO_LONG"
    MATCH_ABSENT = "MATCH_ABSENT"
    MATCH_SELF_AUTHORED = "MATCH_SELF_AUTHORED"

    # what is left after the bindings
    NOTHING_PASSED = "NOTHING_PASSED"
    CLAIM_UNBOUND = "CLAIM_UNBOUND"
    GAP_CLAIM_UNKNOWN = "GAP_CLAIM_UNKNOWN"
    GAP_TOOL_UNKNOWN = "GAP_TOOL_UNKNOWN"


def finding(rule: Rule, code: str, target: str) -> Finding:
    """Write one finding; ``code`` may also be one of the guards' violation codes."""
    return Finding(rule=rule.value, code=str(code), target=target)
