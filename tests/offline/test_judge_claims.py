"""The rule-based verifier: how it classifies a claim by the hard facts of its quotations."""

import json
from typing import Any

import pytest

from contracts.claims import Verdict
from tests.claims.cases import binding, claim, gate_of, output
from worker.claims.verdict import effective_verdict
from worker.claims.verifier import parse_answer, question
from worker.offline.judge_answers import answer
from worker.offline.judge_claims import verify

DF = "spool 4096 4096 0 100% /srv/spool"
LOG = "2026-11-30T03:13:14.937Z ERROR export 29 failed: [Errno 28] No space left on device"


def asked(*claims: tuple[str, str], ceiling: str = "PASS", **changes: Any) -> dict[str, Any]:
    """A question about claims, each a text and its one quotation; all are critical."""
    return {
        "diagnosis_context": {"query": "Exports on files-1 fail.", "systems": [], "window": None},
        "verified_executor_output": {
            "claims": [
                {"claim_id": f"c{number}", "text": text, "critical": True, "confirmed": True}
                for number, (text, _) in enumerate(claims, 1)
            ]
        },
        "verified_evidence": [
            {
                "claim_id": f"c{number}",
                "invocation_id": f"call-{number}",
                "tool_name": "run_command",
                "raw_path": "$.stdout",
                "matched_text": quotation,
            }
            for number, (_, quotation) in enumerate(claims, 1)
        ],
        "gatekeeper_audit": {},
        "verdict_ceiling": ceiling,
        **changes,
    }


@pytest.mark.scenario("local-stage", "Claims by their quotations")
@pytest.mark.parametrize(
    ("text", "quotation", "classification"),
    [
        ("All 4096 blocks of /srv/spool are used, 100%.", DF + " all", "direct_observation"),
        ("4096 blocks of /srv/spool are used, 100%.", DF, "direct_observation"),
        ("On files-1 export 29 failed at 03:13:14.", LOG, "direct_observation"),
        ("No space left on device", LOG, "direct_observation"),
        ("Export 29 failed because /srv/spool is at 100%.", f"{LOG} {DF}", "reasonable_inference"),
        ("The device has no space left.", LOG, "reasonable_inference"),
        ("Every export since 29 failed.", LOG, "overstated"),
        ("Export 29 failed after it had written 812 MB.", LOG, "overstated"),
        ("The file /srv/spool takes 812 MB.", "the largest is /srv/spool", "overstated"),
        ("/srv/spool is at 41%.", DF, "contradicted"),
        ("Export 29 failed at 17:55.", LOG, "contradicted"),
        ("Export 29 failed with EACCES.", LOG, "contradicted"),
        ("billing-eu-2 was restarted 7 times.", DF, "unsupported"),
        ("Trucks were late across Europe.", LOG, "external_unknown"),
        ("Exports wait for somebody who approves invoices.", LOG, "unsupported"),
        ("files-1 exports were started by hand", "who: root", "external_unknown"),
    ],
)
def test_a_claim_is_classified_by_its_hard_facts(
    text: str, quotation: str, classification: str
) -> None:
    """Facts that stand, follow, are missing beside others, differ, or are all absent."""
    (check,) = verify(asked((text, quotation)))["claim_checks"]
    assert check["classification"] == classification


@pytest.mark.parametrize(
    ("texts", "ceiling", "verdict", "score"),
    [
        (["/srv/spool is at 100%.", "4096 blocks of spool are used."], "PASS", "PASS", 1.0),
        (["/srv/spool is at 100%."], "LOW_CONFID", "LOW_CONFID", 1.0),
        (["/srv/spool is at 100%.", "Trucks were late."], "PASS", "LOW_CONFID", 0.5),
        (["/srv/spool is at 100%.", "spool is at 41%."], "PASS", "REJECT", 0.5),
    ],
)
def test_the_verdict_follows_from_the_classes(
    texts: list[str], ceiling: str, verdict: str, score: float
) -> None:
    """It is what the classes allow, and never above the ceiling."""
    said = verify(asked(*((text, DF) for text in texts), ceiling=ceiling))
    assert said["verdict"] == verdict
    assert said["groundedness_score"] == score


def test_it_says_what_it_objects_to_and_that_it_does_not_judge_meaning() -> None:
    """The rationale names the claim, its class and the first strange fact."""
    said = verify(asked(("/srv/spool is at 41%.", DF)))["rationale"]
    assert said == (
        "Rule-based comparison of hard facts, no judgement of meaning: "
        "claim c1 is contradicted, the number 41% is not in its quotations."
    )
    assert "no judgement of meaning" in verify(asked(("/srv/spool is at 100%.", DF)))["rationale"]


def test_its_answer_is_one_that_the_verifier_takes() -> None:
    """Over the real question of a document: each claim once, references to its own evidence."""
    document = output(
        claim("c1", text='The unit is "inactive".'),
        claim("c2", binding("query_logs"), text="upstream db timed out", critical=False),
        claim("c3", binding("query_logs"), text="Trucks were late.", critical=False),
    )
    gate = gate_of(document)
    assert gate.material is not None
    asking = question("Why?", document.diagnosis_context, gate.material, gate.result)
    body = json.dumps({"messages": [{"role": "user", "content": asking}]}).encode()
    parsed = parse_answer(answer(body), gate.material)
    assert [str(check.classification) for check in parsed.claim_checks] == [
        "direct_observation",
        "direct_observation",
        "external_unknown",
    ]
    assert parsed.verdict is Verdict.PASS
    assert (
        effective_verdict(parsed.verdict, gate.material.claims, parsed.claim_checks, Verdict.PASS)
        is Verdict.PASS
    )
