"""Drafts about investigations that nobody here made, through real workers and the rule judge."""

from typing import Any

import pytest

from contracts.messages import DraftReady
from tests.holmes_cases import SUCCEEDED, HolmesCase
from tests.holmes_more_cases import ALL_CASES
from tests.pipeline.harness import LocalStage, new_run_id

each_case = pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)


@pytest.mark.scenario("transcripts", "Drafts about real recordings")
@each_case
def test_a_draft_about_a_real_recording_ends_as_it_must(
    stage: LocalStage, case: HolmesCase
) -> None:
    """A sound draft is released unchanged, a corrupted one falls back for its own reason."""
    run_id = new_run_id("holmes")
    transcript = case.transcript(run_id)
    stage.record(*transcript.records)
    other = case.other_transcript(new_run_id("other"))
    if other is not None:
        stage.record(*other.records)
    draft = case.draft.model_dump(mode="json")
    stage.submit(
        DraftReady(run_id=run_id, session_id="holmes", query=transcript.query, draft=draft)
    )
    outcome: Any = stage.outcome(run_id)
    name = outcome.type.split(".")[1]
    if case.ending == SUCCEEDED:
        assert name == SUCCEEDED
        assert outcome.data["draft"] == draft
        assert len(outcome.data["snapshot"]["analyses"]) == len(case.draft.analyses)
    else:
        assert name == "ReleaseFallback"
        assert outcome.data["fallback"]["type"] == case.ending
    if case.violation is not None:
        evaluation = stage.evaluation(run_id)
        found = evaluation["attempts"]["0.check_evidence.1"]["violations"]
        assert case.violation in [violation["code"] for violation in found]
