"""Reading an agent's document, and the schema rule."""

import json
from typing import Any

import pytest
from hypothesis import given

from contracts.claims import GateStatus, Verdict
from contracts.strict_json import read
from tests.claims.cases import SECRET, binding, claim, document, gate_of, output
from tests.strategies import any_text, json_values
from worker.claims.output import (
    MAX_BINDINGS,
    MAX_CLAIMS,
    bound_ids,
    check_schema,
    known_gaps,
    read_output,
)
from worker.claims.routing import Route, after_gate
from worker.guards.tools import BUILT_IN

GOOD = json.dumps(document())


@pytest.mark.parametrize("value", [GOOD, json.loads(GOOD), f" {GOOD}\n"])
def test_a_document_is_read_from_a_value_or_a_text(value: Any) -> None:
    """Both are the same document."""
    found = read_output(value)
    assert found is not None
    assert [item.claim_id for item in found.claims] == ["c1", "c2"]
    assert check_schema(found) == ()


@pytest.mark.scenario("claim-gatekeeper", "Output that cannot be read")
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(None, id="nothing"),
        pytest.param("", id="an empty text"),
        pytest.param("The cause is a full disk.", id="prose"),
        pytest.param(f"```json\n{GOOD}\n```", id="fences"),
        pytest.param(f"{GOOD} Done.", id="words behind it"),
        pytest.param(GOOD[:-1], id="cut off"),
        pytest.param(json.dumps(GOOD), id="a text inside a text"),
        pytest.param([json.loads(GOOD)], id="a list"),
        pytest.param({}, id="no claims"),
        pytest.param(document(claims="none"), id="claims of another type"),
        pytest.param(document(claims=[{"claim_id": "c1"}]), id="a claim without its fields"),
        pytest.param(document(claim(critical="yes")), id="a word for a flag"),
        pytest.param(document({**claim(), "claim_id": 1}), id="a number for an id"),
        pytest.param(document(claim(note=SECRET)), id="an unknown field in a claim"),
        pytest.param(document(note=SECRET), id="an unknown field"),
        pytest.param(document(claim("c1", binding(matched_text=4))), id="a number for a text"),
        pytest.param(document(evidence_gaps=[{"claim_id": "c1"}]), id="half a gap"),
        pytest.param(document(diagnosis_context={"cause": SECRET}), id="a context with prose"),
        pytest.param(GOOD.replace('"c1"', '"c1", "claim_id": "c9"', 1), id="equal keys"),
        pytest.param(GOOD.replace('"c1"', '"\\ud800"', 1), id="half a character"),
        pytest.param("[" * 100_000, id="deeper than the stack"),
    ],
)
def test_what_is_no_document_goes_round_gate_and_verifier(value: Any) -> None:
    """Nothing is dug out of an output that is not exactly one document of the agreed types."""
    assert read_output(value) is None
    assert after_gate(None) is Route.FALLBACK


def test_a_flaw_of_the_message_is_a_flaw_of_the_output() -> None:
    """Equal keys inside a message are as unreadable as inside a text."""
    message = read(json.dumps({"output": "HERE"}).replace('"HERE"', '{"claims": [], "claims": []}'))
    assert read_output(message["output"]) is None


@given(any_text() | json_values())
def test_anything_is_a_document_or_none(value: Any) -> None:
    """Reading never raises."""
    found = read_output(read(json.dumps(value)))
    assert found is None or found.claims is not None


def rules_broken(**changes: Any) -> list[tuple[str, str]]:
    return [(item.code, item.target) for item in check_schema(output(**changes))]


@pytest.mark.scenario("claim-gatekeeper", "Fields that were removed")
@pytest.mark.parametrize("name", ["diagnosis_summary", "user_facing_answer"])
@pytest.mark.parametrize("value", [SECRET, "", None, {"text": SECRET}])
def test_a_removed_field_parses_and_fails_the_schema_rule(name: str, value: Any) -> None:
    """Even where it holds nothing; its words go nowhere."""
    gate = gate_of(output(**{name: value}))
    assert gate.result.status is GateStatus.FAIL
    assert gate.result.failed_rules == ("schema.executor_v2",)
    assert (gate.result.ceiling, gate.material) == (Verdict.REJECT, None)
    assert [(item.code, item.target) for item in gate.result.errors] == [("FIELD_REMOVED", name)]
    assert SECRET not in gate.result.model_dump_json()


@pytest.mark.scenario("claim-gatekeeper", "A confirmed claim without a binding")
@pytest.mark.parametrize("without", [{"evidence_bindings": []}, {}])
def test_a_confirmed_claim_without_a_binding_fails_the_schema_rule(without: dict[str, Any]) -> None:
    """Good claims beside it do not help: the document is rejected."""
    bare = {**claim("c2"), **without}
    if not without:
        del bare["evidence_bindings"]
    gate = gate_of(output(claim("c1"), bare))
    assert gate.result.status is GateStatus.FAIL
    assert gate.result.failed_rules == ("schema.executor_v2",)
    assert gate.result.ceiling is Verdict.REJECT
    assert [(item.code, item.target) for item in gate.result.errors] == [
        ("BINDINGS_MISSING", "claims[1].evidence_bindings")
    ]


@pytest.mark.scenario("claim-gatekeeper", "Blank and repeated claim ids")
def test_blank_and_repeated_ids_fail_the_schema_rule() -> None:
    """A check of such a claim could not be told from another's."""
    bad = [claim("c1"), claim(" \u200b"), claim("c1"), claim("c" * 129, text="\u3164")]
    assert rules_broken(claims=bad) == [
        ("CLAIM_ID_BLANK", "claims[1].claim_id"),
        ("CLAIM_ID_DUPLICATE", "claims[2].claim_id"),
        ("CLAIM_ID_TOO_LONG", "claims[3].claim_id"),
        ("TEXT_BLANK", "claims[3].text"),
    ]


def test_version_and_numbers_are_held_to_the_schema_rule() -> None:
    """Another version, no claims, too many of them, too many bindings."""
    assert rules_broken(schema_version="executor_evidence_v1") == [
        ("VERSION_UNKNOWN", "schema_version")
    ]
    assert rules_broken(claims=[]) == [("CLAIMS_EMPTY", "claims")]
    many = [claim(f"c{number}") for number in range(MAX_CLAIMS + 1)]
    assert rules_broken(claims=many[:-1]) == []
    assert rules_broken(claims=many) == [("CLAIMS_TOO_MANY", "claims")]
    bound = claim("c1", *[binding()] * MAX_BINDINGS)
    assert rules_broken(claims=[bound]) == []
    assert rules_broken(claims=[bound, claim("c2")]) == [("BINDINGS_TOO_MANY", "claims")]


def test_a_document_names_each_call_once() -> None:
    """The ids to fetch, in their order."""
    found = output(
        claim("c1", binding("query_logs"), binding()), claim("c2", binding("query_logs"))
    )
    assert bound_ids(found) == ("call-query_logs", "call-run_command")


def test_only_gaps_that_name_something_are_known() -> None:
    """An existing claim and a known tool; the others are warnings and ask for nothing."""
    gaps = [
        {"claim_id": "c1", "tool_name": "query_logs", "critical": True},
        {"claim_id": "c9", "tool_name": "query_logs", "critical": True},
        {"claim_id": "c1", "tool_name": "read_minds", "critical": True},
    ]
    found = output(evidence_gaps=gaps)
    assert known_gaps(found, BUILT_IN) == found.evidence_gaps[:1]
    result = gate_of(found).result
    assert (result.status, result.failed_rules) == (GateStatus.PASS, ())
    assert [(item.rule, item.code, item.target) for item in result.warnings] == [
        ("gap.reference", "GAP_CLAIM_UNKNOWN", "evidence_gaps[1].claim_id"),
        ("gap.reference", "GAP_TOOL_UNKNOWN", "evidence_gaps[2].tool_name"),
    ]
