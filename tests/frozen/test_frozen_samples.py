"""A rolling upgrade: what version 1 wrote is still understood."""

import json
from pathlib import Path

import pytest

from contracts.envelope import MESSAGES, Envelope
from contracts.strict_json import canonical
from worker.run.events import Answer, Ticked
from worker.run.path import due_at, next_step
from worker.run.policy import Policy
from worker.run.reducer import decide
from worker.run.state import Run
from worker.stage.submission import receive

V1 = Path(__file__).parent / "v1"
RECORDS = sorted((V1 / "records").glob("*.json"))
MESSAGES_IN = ("draft-ready", "executor-output-ready", "cancel-run")
POLICY = Policy()


def named(paths: list[Path]) -> list[str]:
    return [path.stem for path in paths]


@pytest.mark.scenario("run-record", "Records of the version before")
@pytest.mark.parametrize("path", RECORDS, ids=named(RECORDS))
def test_a_frozen_record_leads_to_the_same_place(path: Path) -> None:
    """Next step and ending are as they were, and time alone still ends an open run."""
    sample = json.loads(path.read_text("utf-8"))
    run = Run.model_validate_json(json.dumps(sample["record"]))
    step = next_step(run, POLICY)
    assert (None if step is None else step.key) == sample["next"]
    assert (None if run.ending is None else str(run.ending)) == sample["ending"]
    assert (due_at(run, POLICY) is None) == (not run.is_open)
    if run.is_open:
        decision = decide(run, Ticked(), run.deadline_at, POLICY)
        assert decision.answer is Answer.ENDED


@pytest.mark.scenario("run-record", "Records of a newer version")
def test_unknown_fields_of_a_record_are_left_out() -> None:
    """A worker of this version reads a record that a newer one has written."""
    sample = json.loads((V1 / "records" / "review-claimed.json").read_text("utf-8"))["record"]
    sample["from_the_future"] = {"a": 1}
    sample["attempts"]["0.review_semantics.1"]["from_the_future"] = 1
    run = Run.model_validate_json(json.dumps(sample))
    assert run.attempts["0.review_semantics.1"].grants == 1


@pytest.mark.scenario("message-contracts", "Messages of the version before")
@pytest.mark.parametrize("path", sorted((V1 / "messages").glob("*.json")), ids=lambda p: p.stem)
def test_a_frozen_message_is_still_understood(path: Path) -> None:
    """Envelope and data parse as they are; what comes in is admitted."""
    body = path.read_bytes()
    envelope = Envelope.model_validate_json(body)
    (kind,) = [kind for kind in MESSAGES if envelope.type == kind.TYPE]
    assert kind.model_validate_json(canonical(envelope.data)).run_id == "run-1"
    if path.stem in MESSAGES_IN:
        assert receive(body, 100_000).data.run_id == "run-1"
