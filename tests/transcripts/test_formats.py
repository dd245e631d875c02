"""The same investigation in every format gives the same records, by the same rules."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.evidence import EvidenceStatus, Lifecycle
from tests.transcripts.chat import stdout
from tests.transcripts.formats import FORMATS, STORY, Asked, Came, Step, read_story
from worker.client.transcripts import Refusal, TranscriptError

each_format = pytest.mark.parametrize("name", FORMATS)
TIMES = {"started_at", "completed_at", "duration_ms"}
QUESTION = "Why is checkout slow?"


def outcome(record: Any) -> dict[str, Any]:
    told: dict[str, Any] = record.model_dump(exclude={*TIMES, "error_message", "output_preview"})
    return told


@pytest.mark.scenario("transcripts", "One investigation in every format")
@each_format
def test_the_same_investigation_gives_the_same_records(name: str) -> None:
    """Only times, and the words of a failure, are a format's own."""
    transcript, chat = read_story(name, *STORY), read_story("openai-chat", *STORY)
    assert [outcome(record) for record in transcript.records] == [
        outcome(record) for record in chat.records
    ]
    assert [record.evidence_status for record in transcript.records] == [
        EvidenceStatus.EVIDENCE_FOUND,
        EvidenceStatus.NO_EVIDENCE,
        EvidenceStatus.ERROR,
    ]
    assert transcript.query == QUESTION
    assert transcript.final_text == "The disk is full."
    assert (transcript.model_steps, transcript.evidence_calls, transcript.helper_calls) == (4, 3, 1)


@pytest.mark.scenario("transcripts", "Parallel and late results")
@each_format
def test_parallel_calls_find_their_results(name: str) -> None:
    """The id binds, in whatever order the results came."""
    calls = tuple(Asked(f"c{number}") for number in range(3))
    transcript = read_story(
        name, QUESTION, Step("", calls), (Came("c2", "2"), Came("c0", "0"), Came("c1", "1"))
    )
    assert [stdout(record) for record in transcript.records] == ["0", "1", "2"]
    assert transcript.model_steps == 1
    assert transcript.final_text is None


@pytest.mark.scenario("transcripts", "Failed calls")
@each_format
def test_a_missing_result_is_an_error_record(name: str) -> None:
    """A call that nothing came back for is a record, never a gap."""
    (record,) = read_story(name, QUESTION, Step("", (Asked("c1"),)), Step("Done.")).records
    assert record.lifecycle is Lifecycle.ERROR
    assert record.error_message == "NO_RESULT"


@pytest.mark.scenario("transcripts", "Failed calls")
@each_format
def test_arguments_that_are_no_json_are_an_error_record(name: str) -> None:
    """The scope of such a call cannot be read, so it proves nothing."""
    story = (QUESTION, Step("", (Asked("c1", arguments="{df"),)), (Came("c1"),))
    (record,) = read_story(name, *story).records
    assert record.error_message == "ARGUMENTS_NOT_A_JSON_OBJECT"
    assert record.request == {}


@pytest.mark.scenario("transcripts", "Failed calls")
@each_format
def test_a_result_marked_as_an_error_is_an_error_record(name: str) -> None:
    """Its text is the reason, bounded, and what it showed is kept for people."""
    story = (QUESTION, Step("", (Asked("c1"),)), (Came("c1", "boom " * 100, failed=True),))
    (record,) = read_story(name, *story).records
    assert record.evidence_status is EvidenceStatus.ERROR
    assert record.success is False
    assert 0 < len(str(record.error_message)) <= 200
    assert "boom" in str(record.output_preview)


@pytest.mark.scenario("transcripts", "A broken transcript")
@each_format
def test_a_reused_id_is_refused(name: str) -> None:
    """Two calls of one id could not be told apart by a draft."""
    first, second = Step("", (Asked("c1"),)), Step("", (Asked("c1"),))
    with pytest.raises(TranscriptError) as caught:
        read_story(name, QUESTION, first, (Came("c1"),), second)
    assert caught.value.code is Refusal.REUSED_CALL_ID


@pytest.mark.scenario("transcripts", "A broken transcript")
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "otel"])
@pytest.mark.parametrize(
    ("story", "code"),
    [
        ((QUESTION, (Came("c1"),), Step("", (Asked("c1"),))), Refusal.RESULT_WITHOUT_CALL),
        (
            (QUESTION, Step("", (Asked("c1"),)), (Came("c1"), Came("c1", "other"))),
            Refusal.REPEATED_RESULT,
        ),
        ((Step("", (Asked("c1"),)), (Came("c1"),)), Refusal.NO_QUESTION),
        ((QUESTION, Step("", (Asked(""),))), Refusal.BAD_CALL_ID),
        ((QUESTION, Step("", (Asked("c1", " "),))), Refusal.NOT_A_CALL),
    ],
)
def test_broken_stories_are_refused(name: str, story: Any, code: Refusal) -> None:
    """Results before calls, second results, missing questions, ids and names."""
    with pytest.raises(TranscriptError) as caught:
        read_story(name, *story)
    assert caught.value.code is code
    assert caught.value.place


@pytest.mark.scenario("transcripts", "Tools that answer in JSON")
@each_format
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ('{"documents": [{"document_id": "d", "title": "T", "excerpt": "E"}]}', "EVIDENCE_FOUND"),
        ('{"documents": []}', "NO_EVIDENCE"),
        ('{"documents": [{"title": "T"}]}', "PROJECTION_INVALID"),
        ('{"documents": [], "more": 1}', "PROJECTION_INVALID"),
        ("no JSON", "RESULT_NOT_JSON"),
    ],
)
def test_a_tool_that_answers_with_its_projection_is_checked(
    name: str, answer: str, told: str
) -> None:
    """A known tool's JSON becomes its projection, or an error record with the reason."""
    asked = Asked("c1", "lookup_knowledge", {"query": "pools", "source": "runbooks"})
    (record,) = read_story(name, QUESTION, Step("", (asked,)), (Came("c1", answer),)).records
    assert record.tool_name == "lookup_knowledge"
    assert told in {record.evidence_status, record.error_message}


@pytest.mark.scenario("transcripts", "Secrets and sizes")
@each_format
def test_secrets_are_masked_and_sizes_bounded(name: str) -> None:
    """An imported record keeps the recorder's rules."""
    asked = Asked("c1", arguments={"command": "psql postgres://u:hunter2@db -c 'select 1'"})
    came = Came("c1", "as hunter2\n" + "x" * 200_000)
    (record,) = read_story(name, QUESTION, Step("", (asked,)), (came,)).records
    assert record.truncated
    assert "hunter2" not in record.model_dump_json()
    assert record.request["command"] == "psql postgres://u:***@db -c 'select 1'"


texts = st.text(st.characters(codec=None), max_size=8)
WORDS = """user human ai tool assistant function_call function_call_output message tool_use
tool_result text c1 bash execute_tool constructor 1"""
KEYS = """role type content call_id name arguments output id input data tool_use_id tool_calls
tool_call_id args kwargs text status is_error resourceSpans scopeSpans spans attributes key value
stringValue intValue doubleValue kvlistValue values spanId traceId startTimeUnixNano"""
words = st.sampled_from(WORDS.split())
keys = st.sampled_from(KEYS.split())
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)


@pytest.mark.scenario("transcripts", "Any JSON at all")
@each_format
@given(data=st.data())
def test_any_json_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """No input ends in another error than a refusal."""
    with suppress(TranscriptError):
        FORMATS[name][1](data.draw(anything))
