"""The gatekeeper: what passes, what fails by which rule, and the ceiling that follows."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.claims import GateStatus, Severity, Verdict
from tests.claims.cases import QUOTES, SECRET, binding, claim, gate_of, output, records
from tests.strategies import RUN_ID, broken_records, record, stored
from worker.claims.gatekeeper import Gate, gatekeep
from worker.claims.rules import Rule
from worker.guards.tools import BUILT_IN


def failure(gate: Gate, index: int = 0) -> tuple[str | None, str | None]:
    checked = gate.result.checked_bindings[index]
    return checked.failed_rule, checked.code


def one(stored_records: Mapping[str, bytes | None] | None = None, **changes: Any) -> Gate:
    """A gate over one claim with one binding."""
    tool = changes.pop("tool", "run_command")
    return gate_of(output(claim("c1", binding(tool, **changes))), stored_records)


@pytest.mark.scenario("claim-gatekeeper", "Everything passes")
@pytest.mark.parametrize("tool", QUOTES)
def test_a_sound_document_passes(tool: str) -> None:
    """Each tool's results can be quoted; no rule fails, and the ceiling is PASS."""
    gate = one(tool=tool)
    assert (gate.result.status, gate.result.severity) == (GateStatus.PASS, Severity.NONE)
    assert gate.result.ceiling is Verdict.PASS
    assert (gate.result.failed_rules, gate.result.errors, gate.result.warnings) == ((), (), ())
    assert failure(gate) == (None, None)
    assert gate.material is not None
    (evidence,) = gate.material.evidence
    assert (evidence.raw_path, evidence.matched_text) == QUOTES[tool]
    assert evidence.origin.tool == tool
    assert gate.material.left_out == 0


@pytest.mark.scenario("claim-gatekeeper", "A call that this run never made")
@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "RECORD_MISSING"),
        (b"{}", "RECORD_UNREADABLE"),
        (
            stored(record(tool_call_id="call-run_command", run_id="run-2")),
            "RECORD_FOREIGN_RUN",
        ),
        (stored(record(tool_call_id="call-9")), "RECORD_ID_MISMATCH"),
    ],
)
def test_a_call_that_the_run_never_made_fails_the_reference(
    content: bytes | None, code: str
) -> None:
    """Missing, broken, of another run, stored under another's id."""
    gate = one(records(run_command=content))
    assert failure(gate) == ("evidence.invocation_ref", code)
    assert gate.result.status is GateStatus.FAIL
    assert "evidence.invocation_ref" in gate.result.failed_rules


@pytest.mark.scenario("claim-gatekeeper", "A call of another tool")
def test_a_binding_names_the_tool_of_its_call() -> None:
    """A real call under a foreign tool name fails the reference."""
    gate = one(tool_name="query_logs")
    assert failure(gate) == ("evidence.invocation_ref", "TOOL_MISMATCH")
    assert "evidence.invocation_ref" in gate.result.failed_rules


@pytest.mark.scenario("claim-gatekeeper", "A call that supports nothing")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"lifecycle": "PROJECTING"}, "RECORD_NOT_READY"),
        ({"lifecycle": "ERROR"}, "RECORD_NOT_READY"),
        ({"evidence_status": "ERROR"}, "STATUS_NOT_CITABLE"),
        ({"agent_result": ""}, "RESULT_EMPTY"),
        ({"agent_result": "inactive"}, "PROJECTION_INVALID"),
        ({"deduplicated": True}, "CALL_DEDUPLICATED"),
        ({"found": False}, "NO_EVIDENCE_FOUND"),
        ({"request": {"command": "echo inactive"}}, "EVIDENCE_SELF_AUTHORED"),
    ],
)
def test_a_call_without_a_result_of_its_own_supports_nothing(
    changes: dict[str, Any], code: str
) -> None:
    """Unfinished, failed, empty, answered with "seen before", or written by the request."""
    content = stored(record(tool_call_id="call-run_command", **changes))
    gate = one(records(run_command=content), raw_path="$.exit_code", matched_text="1")
    assert failure(gate) == ("evidence.invocation_result", code)


@pytest.mark.scenario("claim-gatekeeper", "A path that leads nowhere")
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("$.stdout[", "PATH_INVALID"),
        ("$.stderr.text", "PATH_MISSING"),
        ("$.tool_name", "PATH_MISSING"),
        ("$.evidence_status", "PATH_MISSING"),
        ("$.agent_result", "PATH_MISSING"),
        ("$", "PATH_NOT_SCALAR"),
    ],
)
def test_a_path_leads_to_a_value_of_the_result(path: str, code: str) -> None:
    """Fields that say what call it was are no part of what it found."""
    gate = one(raw_path=path, matched_text="run_command")
    assert failure(gate) == ("evidence.raw_path", code)


@pytest.mark.scenario("claim-gatekeeper", "Words that do not stand there")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"matched_text": "failed"}, "MATCH_ABSENT"),
        ({"matched_text": "active"}, "MATCH_ABSENT"),
        ({"matched_text": "Inactive"}, "MATCH_ABSENT"),
        ({"matched_text": "inactive\n\n"}, "MATCH_ABSENT"),
        ({"matched_text": ""}, "MATCH_BLANK"),
        ({"matched_text": "\n"}, "MATCH_BLANK"),
        ({"matched_text": "x" * 2001}, "MATCH_TOO_LONG"),
        ({"raw_path": "$.exit_code", "matched_text": "30"}, "MATCH_ABSENT"),
        ({"raw_path": "$.exit_code", "matched_text": "inactive"}, "MATCH_ABSENT"),
    ],
)
def test_a_quotation_stands_at_its_path(changes: dict[str, Any], code: str) -> None:
    """To the code point, whole words, at this very place and at no other."""
    assert failure(one(**changes)) == ("evidence.matched_text", code)


def test_numbers_keep_the_digits_that_the_agent_saw() -> None:
    """A number with more digits than a float holds is compared with all of them."""
    text = record("query_metrics", tool_call_id="call-query_metrics")
    text["agent_result"] = text["agent_result"].replace(
        '"value": 4', '"value": 0.12345678901234567'
    )
    found = {"call-query_metrics": stored(text)}
    assert one(found, tool="query_metrics", matched_text="0.12345678901234567").material
    near = one(found, tool="query_metrics", matched_text="0.12345678901234568")
    assert failure(near) == ("evidence.matched_text", "MATCH_ABSENT")


@pytest.mark.scenario("claim-gatekeeper", "Words that the request itself wrote")
@pytest.mark.parametrize(
    ("tool", "request_", "content", "path", "text"),
    [
        pytest.param(
            "run_command",
            {"command": "uptime; echo root cause: full disk", "host": "web-1"},
            {"exit_code": 0, "stdout": "up 3 days\nroot cause: full disk\n"},
            "$.stdout",
            "full disk",
            id="an echo beside a real line",
        ),
        pytest.param(
            "run_command",
            {"command": "uptime; echo full disk >&2", "host": "web-1"},
            {"exit_code": 0, "stdout": "up 3 days\n", "stderr": "full disk\n"},
            "$.stderr",
            "full disk",
            id="an echo to the other stream",
        ),
        pytest.param(
            "query_mysql",
            {"data_source": "orders", "sql": "SELECT 'full disk', state FROM jobs"},
            {"columns": ["a", "state"], "rows": [["full disk", "DEAD"]], "row_count": 1},
            "$.rows[0][0]",
            "full disk",
            id="a literal beside a real cell",
        ),
        pytest.param(
            "query_mysql",
            {"data_source": "orders", "sql": "SELECT state AS full_disk FROM jobs"},
            {"columns": ["full_disk"], "rows": [["DEAD"]], "row_count": 1},
            "$.columns[0]",
            "full_disk",
            id="a name that the statement gave",
        ),
    ],
)
def test_words_of_the_request_are_no_quotation(
    tool: str, request_: dict[str, Any], content: dict[str, Any], path: str, text: str
) -> None:
    """A real line beside them lends them nothing, and can itself be quoted."""
    key = f"call-{tool}"
    real_cell = f"$.rows[0][{len(content.get('columns', ())) - 1}]"
    found = {key: stored(record(tool, tool_call_id=key, request=request_, content=content))}
    gate = one(found, tool=tool, raw_path=path, matched_text=text)
    assert failure(gate) == ("evidence.matched_text", "MATCH_SELF_AUTHORED")
    real = {"run_command": ("$.stdout", "up 3 days"), "query_mysql": (real_cell, "DEAD")}[tool]
    assert one(found, tool=tool, raw_path=real[0], matched_text=real[1]).material is not None


@pytest.mark.scenario("claim-gatekeeper", "Some of it passes")
def test_a_mixed_result_passes_on_what_passed_alone() -> None:
    """The failed binding and the claim without a passed one are gone; the ceiling sinks."""
    gate = gate_of(
        output(
            claim("c1", binding(), binding(matched_text=SECRET)),
            claim("c2", binding("query_logs", raw_path="$.nowhere")),
            claim("c3", binding("query_mysql"), critical=False, confirmed=False),
        )
    )
    assert (gate.result.status, gate.result.severity) == (GateStatus.FAIL, Severity.LOW_CONFID)
    assert gate.result.ceiling is Verdict.LOW_CONFID
    assert gate.result.failed_rules == ("evidence.matched_text", "evidence.raw_path")
    assert gate.material is not None
    assert [item.claim_id for item in gate.material.claims] == ["c1", "c3"]
    assert [item.invocation_id for item in gate.material.evidence] == [
        "call-run_command",
        "call-query_mysql",
    ]
    assert (gate.material.left_out, gate.material.left_out_critical) == (1, True)
    assert SECRET not in gate.material.model_dump_json()


@pytest.mark.scenario("claim-gatekeeper", "Nothing passes")
def test_a_document_of_which_nothing_passes_is_rejected() -> None:
    """Whether every binding failed or there was none to fail."""
    failed = one(matched_text=SECRET)
    assert (failed.result.severity, failed.material) == (Severity.REJECT, None)
    unbound = gate_of(output({**claim(confirmed=False), "evidence_bindings": []}))
    assert (unbound.result.severity, unbound.material) == (Severity.REJECT, None)
    assert unbound.result.status is GateStatus.FAIL
    assert unbound.result.failed_rules == ("evidence.claim_bound",)
    assert unbound.result.ceiling is Verdict.REJECT


def test_an_unbound_guess_beside_sound_claims_is_left_out_with_a_warning() -> None:
    """It is no failure of the others, and it goes no further."""
    guess = {**claim("c2", confirmed=False), "evidence_bindings": []}
    gate = gate_of(output(claim("c1"), guess))
    assert (gate.result.status, gate.result.ceiling) == (GateStatus.PASS, Verdict.PASS)
    assert [(item.code, item.target) for item in gate.result.warnings] == [
        ("CLAIM_UNBOUND", "claims[1]")
    ]
    assert gate.material is not None
    assert [item.claim_id for item in gate.material.claims] == ["c1"]
    assert gate.material.left_out == 1


@pytest.mark.scenario("claim-gatekeeper", "The audit is complete")
def test_the_result_tells_every_rule_and_binding_and_no_content() -> None:
    """All that was checked, what failed and where; never what stands in a record."""
    gate = gate_of(output(claim("c1", binding(), binding(matched_text=SECRET))))
    result = gate.result
    assert result.rules == tuple(rule.value for rule in Rule)
    assert [item.passed for item in result.checked_bindings] == [True, False]
    assert [item.target for item in result.checked_bindings] == [
        "claims[0].evidence_bindings[0]",
        "claims[0].evidence_bindings[1]",
    ]
    assert [(item.rule, item.code, item.target) for item in result.errors] == [
        ("evidence.matched_text", "MATCH_ABSENT", "claims[0].evidence_bindings[1]")
    ]
    text = result.model_dump_json()
    assert SECRET not in text
    assert "inactive" not in text


def test_prose_in_the_place_of_a_reference_is_cut() -> None:
    """The record keeps what was refused short."""
    checked = one(raw_path="prose " * 1000).result.checked_bindings[0]
    assert (checked.code, len(checked.raw_path)) == ("PATH_INVALID", 512)


def test_one_quotation_twice_is_one_piece_of_evidence() -> None:
    """A repeated binding adds nothing."""
    gate = gate_of(output(claim("c1", binding(), binding())))
    assert gate.result.ceiling is Verdict.PASS
    assert gate.material is not None
    assert len(gate.material.evidence) == 1


@given(broken_records(), st.sampled_from(sorted(QUOTES)))
def test_whatever_is_stored_is_a_result_and_never_an_exception(
    content: bytes | None, tool: str
) -> None:
    """And what passes really stands in what is stored."""
    gate = one({f"call-{tool}": content}, tool=tool)
    assert (gate.material is None) == (gate.result.ceiling is Verdict.REJECT)
    if gate.material is not None:
        assert content is not None
        assert QUOTES[tool][1] in json.loads(content)["agent_result"]


@st.composite
def documents(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Claims of which any number of bindings are broken in any way."""
    breaks: list[dict[str, Any]] = [
        {},
        {"invocation_id": "call-gone"},
        {"tool_name": "read_minds"},
        {"raw_path": "$.nowhere"},
        {"matched_text": SECRET},
    ]
    made: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 4))):
        bindings = [
            binding(draw(st.sampled_from(sorted(QUOTES))), **draw(st.sampled_from(breaks)))
            for _ in range(draw(st.integers(0, 3)))
        ]
        made.append(
            {
                **claim(f"c{number}", critical=draw(st.booleans())),
                "confirmed": bool(bindings) and draw(st.booleans()),
                "evidence_bindings": bindings,
            }
        )
    return made


@given(documents())
def test_what_goes_on_is_exactly_what_passed(claims: list[dict[str, Any]]) -> None:
    """Material, ceiling, status and failed rules all follow from the checked bindings."""
    found = output(*claims)
    gate = gatekeep(RUN_ID, found, records(), BUILT_IN)
    checked = gate.result.checked_bindings
    passed = [item for item in checked if item.passed]
    assert len(checked) == sum(len(item.evidence_bindings) for item in found.claims)
    assert gate == gatekeep(RUN_ID, found, records(), BUILT_IN)
    if not passed:
        assert (gate.result.ceiling, gate.material) == (Verdict.REJECT, None)
        return
    assert gate.material is not None
    mixed = len(passed) < len(checked)
    assert gate.result.ceiling is (Verdict.LOW_CONFID if mixed else Verdict.PASS)
    assert (gate.result.status is GateStatus.FAIL) == mixed == bool(gate.result.failed_rules)
    keys = {(item.claim_id, item.invocation_id, item.raw_path) for item in passed}
    assert keys == {
        (item.claim_id, item.invocation_id, item.raw_path) for item in gate.material.evidence
    }
    assert {item.claim_id for item in gate.material.claims} == {key[0] for key in keys}
    assert SECRET not in gate.material.model_dump_json()
