"""The gatekeeper: code proves, binding by binding, that what a claim quotes is really there.

Pure and deterministic. A binding passes if its invocation is a finished call of this run
with the tool that it names, if evidence was found there, if its raw path leads to a value
of that result, and if its matched text stands at that value and was not written by the
agent's own request. The first broken rule of a binding counts. What passed goes on and
nothing else does; the severity of what broke is a ceiling over every later verdict.

An empty result supports no claim: a verifier sees quotations without the scope that was
searched, so it could not tell what their absence means. A call that was answered with
"seen before" supports none either.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from contracts.base import is_blank
from contracts.claims import (
    CheckedBinding,
    Claim,
    EvidenceBinding,
    ExecutorOutput,
    Finding,
    GatekeeperResult,
    GateStatus,
    NamedGap,
    Severity,
    Verdict,
    VerifiedBinding,
    VerifiedClaim,
    VerifiedMaterial,
)
from worker.claims.citable import Citable
from worker.claims.matched_text import MAX_MATCHED_TEXT, stands
from worker.claims.output import bound_ids, check_gaps, check_schema, known_gaps
from worker.claims.raw_path import PathError, resolve
from worker.claims.rules import GateCode, Rule, finding
from worker.guards.calls import read_call
from worker.guards.evidence import Records, Tools
from worker.guards.violations import ViolationCode

_EVIDENCE_RULES = (
    Rule.INVOCATION_REF,
    Rule.INVOCATION_RESULT,
    Rule.RAW_PATH,
    Rule.MATCHED_TEXT,
    Rule.CLAIM_BOUND,
    Rule.GAP_REF,
)
_NO_SUCH_CALL = frozenset(
    {
        ViolationCode.RECORD_MISSING,
        ViolationCode.RECORD_UNREADABLE,
        ViolationCode.RECORD_FOREIGN_RUN,
        ViolationCode.RECORD_ID_MISMATCH,
        ViolationCode.TOOL_UNKNOWN,
    }
)
_MAX_SHOWN = 512
"""Characters of a reference on record. None that passes is longer; prose in its place is cut."""

CEILINGS: Mapping[Severity, Verdict] = {
    Severity.NONE: Verdict.PASS,
    Severity.LOW_CONFID: Verdict.LOW_CONFID,
    Severity.REJECT: Verdict.REJECT,
}


@dataclass(frozen=True)
class Gate:
    """What the gate found. ``material`` is None exactly if the ceiling is REJECT."""

    result: GatekeeperResult
    material: VerifiedMaterial | None


class _BrokenError(Exception):
    def __init__(self, rule: Rule, code: str) -> None:
        super().__init__(code)
        self.rule = rule
        self.code = code


def gatekeep(run_id: str, output: ExecutorOutput, records: Records, tools: Tools) -> Gate:
    """Check a document against the records of its run.

    ``records`` holds what is stored under each id of ``output.bound_ids``. A document that
    breaks the schema rule is rejected before any record is looked at. Time is linear in
    the document and the records.
    """
    schema = check_schema(output)
    if schema:
        return _rejected((Rule.SCHEMA,), schema)
    calls = {key: _read(run_id, key, records.get(key), tools) for key in bound_ids(output)}
    checked: list[CheckedBinding] = []
    passed: list[VerifiedBinding] = []
    for index, claim in enumerate(output.claims):
        for position, binding in enumerate(claim.evidence_bindings):
            target = f"claims[{index}].evidence_bindings[{position}]"
            try:
                found = _verify(claim, binding, calls[binding.invocation_id])
            except _BrokenError as broken:
                checked.append(_checked(target, claim, binding, broken))
            else:
                checked.append(_checked(target, claim, binding, None))
                passed.append(found)
    errors = tuple(
        Finding(rule=item.failed_rule, code=item.code, target=item.target)
        for item in checked
        if item.failed_rule is not None and item.code is not None
    )
    warnings = (*_unbound(output), *check_gaps(output, tools))
    rules = (Rule.SCHEMA, *_EVIDENCE_RULES)
    if not passed:
        nothing = finding(Rule.CLAIM_BOUND, GateCode.NOTHING_PASSED, "claims")
        return _rejected(rules, (*errors, nothing), warnings, tuple(checked))
    severity = Severity.LOW_CONFID if errors else Severity.NONE
    result = _result(severity, rules, errors, warnings, tuple(checked))
    return Gate(result, _material(output, passed, tools))


def _read(
    run_id: str, invocation_id: str, stored: bytes | None, tools: Tools
) -> Citable | _BrokenError:
    call = read_call(run_id, invocation_id, stored, tools)
    if isinstance(call, ViolationCode):
        rule = Rule.INVOCATION_REF if call in _NO_SUCH_CALL else Rule.INVOCATION_RESULT
        return _BrokenError(rule, call)
    if call.deduplicated:
        return _BrokenError(Rule.INVOCATION_RESULT, ViolationCode.CALL_DEDUPLICATED)
    assert stored is not None, "a call was read from it"
    return Citable.of(call, stored, tools[call.origin.tool])


def _verify(
    claim: Claim, binding: EvidenceBinding, call: Citable | _BrokenError
) -> VerifiedBinding:
    if isinstance(call, _BrokenError):
        raise _BrokenError(call.rule, call.code)
    if call.origin.tool != binding.tool_name:
        raise _BrokenError(Rule.INVOCATION_REF, GateCode.TOOL_MISMATCH)
    if not call.found:
        raise _BrokenError(Rule.INVOCATION_RESULT, GateCode.NO_EVIDENCE_FOUND)
    try:
        place, value = resolve(call.result, binding.raw_path)
    except PathError as error:
        raise _BrokenError(Rule.RAW_PATH, error.code) from None
    if is_blank(binding.matched_text):
        raise _BrokenError(Rule.MATCHED_TEXT, GateCode.MATCH_BLANK)
    if len(binding.matched_text) > MAX_MATCHED_TEXT:
        raise _BrokenError(Rule.MATCHED_TEXT, GateCode.MATCH_TOO_LONG)
    if not stands(binding.matched_text, value):
        raise _BrokenError(Rule.MATCHED_TEXT, GateCode.MATCH_ABSENT)
    if call.wrote(place, binding.matched_text):
        raise _BrokenError(Rule.MATCHED_TEXT, GateCode.MATCH_SELF_AUTHORED)
    return VerifiedBinding(
        claim_id=claim.claim_id,
        invocation_id=binding.invocation_id,
        tool_name=binding.tool_name,
        raw_path=binding.raw_path,
        matched_text=binding.matched_text,
        origin=call.origin,
    )


def _checked(
    target: str, claim: Claim, binding: EvidenceBinding, broken: _BrokenError | None
) -> CheckedBinding:
    return CheckedBinding(
        target=target,
        claim_id=claim.claim_id,
        invocation_id=binding.invocation_id[:_MAX_SHOWN],
        tool_name=binding.tool_name[:_MAX_SHOWN],
        raw_path=binding.raw_path[:_MAX_SHOWN],
        passed=broken is None,
        failed_rule=None if broken is None else broken.rule.value,
        code=None if broken is None else str(broken.code),
    )


def _unbound(output: ExecutorOutput) -> tuple[Finding, ...]:
    return tuple(
        finding(Rule.CLAIM_BOUND, GateCode.CLAIM_UNBOUND, f"claims[{index}]")
        for index, claim in enumerate(output.claims)
        if not claim.evidence_bindings
    )


def _material(
    output: ExecutorOutput, passed: list[VerifiedBinding], tools: Tools
) -> VerifiedMaterial:
    kept = {binding.claim_id for binding in passed}
    return VerifiedMaterial(
        claims=tuple(
            VerifiedClaim(
                claim_id=claim.claim_id,
                text=claim.text,
                critical=claim.critical,
                confirmed=claim.confirmed,
            )
            for claim in output.claims
            if claim.claim_id in kept
        ),
        evidence=tuple(dict.fromkeys(passed)),
        gaps=tuple(
            NamedGap(claim_id=gap.claim_id, tool_name=gap.tool_name, critical=gap.critical)
            for gap in known_gaps(output, tools)
        ),
        left_out=len(output.claims) - len(kept),
        left_out_critical=any(
            claim.critical for claim in output.claims if claim.claim_id not in kept
        ),
    )


def _rejected(
    rules: tuple[Rule, ...],
    errors: tuple[Finding, ...],
    warnings: tuple[Finding, ...] = (),
    checked: tuple[CheckedBinding, ...] = (),
) -> Gate:
    return Gate(_result(Severity.REJECT, rules, errors, warnings, checked), None)


def _result(
    severity: Severity,
    rules: tuple[Rule, ...],
    errors: tuple[Finding, ...],
    warnings: tuple[Finding, ...],
    checked: tuple[CheckedBinding, ...],
) -> GatekeeperResult:
    return GatekeeperResult(
        status=GateStatus.PASS if severity is Severity.NONE else GateStatus.FAIL,
        severity=severity,
        ceiling=CEILINGS[severity],
        checked_bindings=checked,
        rules=tuple(rule.value for rule in rules),
        failed_rules=tuple(dict.fromkeys(error.rule for error in errors)),
        warnings=warnings,
        errors=errors,
    )
