"""What the messages of a claims run may hold."""

from typing import Any

import pytest
from pydantic import ValidationError

from contracts.claims import Verdict, VerifiedMaterial
from contracts.draft import DiagnosisDraft
from contracts.fallback import FallbackType
from contracts.messages import ExecutorOutputReady, ReleaseFallback, ReleaseSucceeded
from contracts.snapshot import Snapshot
from worker.claims.composer import compose
from worker.guards.fallback import build_fallback

RUN: dict[str, Any] = {"run_id": "r", "session_id": "s", "round": 0}
NOTHING = VerifiedMaterial(claims=(), evidence=(), gaps=(), left_out=0, left_out_critical=False)
ANSWER = compose(Verdict.LOW_CONFID, NOTHING, (), "en").answer
DRAFT = {
    "draft": DiagnosisDraft(conclusion=None, analyses=()),
    "snapshot": Snapshot(analyses=()),
}


@pytest.mark.parametrize("parts", [DRAFT, {**DRAFT, "repaired": True}, {"answer": ANSWER}])
def test_a_release_is_a_draft_or_an_answer(parts: dict[str, Any]) -> None:
    """A verified draft with its snapshot, or a composed answer."""
    assert ReleaseSucceeded(**RUN, **parts).model_fields_set == {*RUN, *parts}


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"draft": DRAFT["draft"]},
        {"snapshot": DRAFT["snapshot"]},
        {**DRAFT, "answer": ANSWER},
        {**DRAFT, "answer": None},
        {"answer": None},
        {"answer": ANSWER, "draft": None},
        {"answer": ANSWER, "repaired": False},
    ],
)
def test_a_release_is_never_both_or_neither(parts: dict[str, Any]) -> None:
    """Half a release does not parse."""
    with pytest.raises(ValidationError):
        ReleaseSucceeded(**RUN, **parts)


@pytest.mark.parametrize("type_", list(FallbackType))
def test_an_answer_comes_with_two_fallbacks_alone(type_: FallbackType) -> None:
    """LOW_CONFIDENCE and CLAIMS_REJECTED always carry one, the others never do."""
    fallback = build_fallback(type_, "en")
    composed = type_ in {FallbackType.LOW_CONFIDENCE, FallbackType.CLAIMS_REJECTED}
    good: dict[str, Any] = {"answer": ANSWER} if composed else {}
    bad: dict[str, Any] = {} if composed else {"answer": ANSWER}
    assert ReleaseFallback(**RUN, fallback=fallback, **good).fallback.type is type_
    with pytest.raises(ValidationError):
        ReleaseFallback(**RUN, fallback=fallback, **bad)


@pytest.mark.parametrize("round_", [-1, 2])
def test_claims_have_two_rounds(round_: int) -> None:
    """The first, and the one that answers a request for evidence."""
    ref = {"name": "p", "version": "1"}
    data = {
        "run_id": "r",
        "session_id": "s",
        "query": "q",
        "output": "anything",
        "prompts": {"planner": ref, "executor": ref},
    }
    assert ExecutorOutputReady.model_validate(data | {"round": 1}).round == 1
    with pytest.raises(ValidationError):
        ExecutorOutputReady.model_validate(data | {"round": round_})
