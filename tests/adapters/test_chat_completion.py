"""The pure half of the model adapter: request bytes, statuses, answers."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.fault_server import completion
from worker.adapters.chat_completion import (
    LONGEST_RETRY_AFTER,
    ResponseFormat,
    answer_of_body,
    body_limit,
    failure_of_status,
    request_body,
)
from worker.ports import (
    ModelAnswer,
    ModelCall,
    ModelFailure,
    ModelOffSchema,
    ModelRateLimited,
    ModelRefused,
    ModelTransport,
    ModelUnparseable,
    Usage,
)

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
CALL = ModelCall("run-1", "s", "u", 1.0, 1000, 100, "verdict", {"type": "object"})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "finish_reason", "usage", "error", "refusal"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def body(call: ModelCall = CALL, **settings: Any) -> bytes:
    how: dict[str, Any] = {
        "model": "judge",
        "response_format": "none",
        "temperature": 0.0,
        "token_limit_field": "max_tokens",
    }
    return request_body(call, **(how | settings))


def read(document: Any, limit: int = 1000) -> ModelAnswer | ModelFailure:
    return answer_of_body(json.dumps(document).encode(), limit)


@pytest.mark.parametrize(
    ("format_", "sent"),
    [
        ("none", None),
        ("json_object", {"type": "json_object"}),
        (
            "json_schema",
            {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "schema": {"type": "object"}, "strict": True},
            },
        ),
    ],
)
def test_the_response_format_follows_the_setting(format_: ResponseFormat, sent: object) -> None:
    """Servers differ in what they take, so the setting decides what is sent."""
    assert json.loads(body(response_format=format_)).get("response_format") == sent


def test_fields_that_a_server_refuses_can_be_left_out_or_renamed() -> None:
    """Reasoning models take no temperature and another name of the token limit."""
    sent = json.loads(body(temperature=None, token_limit_field="max_completion_tokens"))
    assert set(sent) == {"model", "messages", "max_completion_tokens"}


@given(st.text(), st.text())
def test_texts_arrive_as_they_were(system: str, user: str) -> None:
    """Whatever Unicode the messages hold, the bytes decode to it, twice the same."""
    call = ModelCall("run-1", system, user, 1.0, 10, 10, "n", {})
    assert body(call) == body(call)
    assert [m["content"] for m in json.loads(body(call))["messages"]] == [system, user]


def test_a_text_that_is_no_unicode_is_refused_without_a_call() -> None:
    """A lone surrogate cannot be sent; asking again cannot help."""
    with pytest.raises(ModelRefused) as raised:
        body(ModelCall("run-1", "s", "\ud800", 1.0, 10, 10, "n", {}))
    assert raised.value.__suppress_context__


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (200, None),
        (201, None),
        (301, ModelRefused),
        (400, ModelRefused),
        (401, ModelRefused),
        (403, ModelRefused),
        (404, ModelRefused),
        (408, ModelTransport),
        (409, ModelRefused),
        (422, ModelRefused),
        (429, ModelRateLimited),
        (500, ModelTransport),
        (503, ModelTransport),
        (599, ModelTransport),
    ],
)
def test_a_status_has_one_meaning(status: int, failure: type[ModelFailure] | None) -> None:
    """What may help to try again is transport; what was refused stays refused."""
    found = failure_of_status(status, None, NOW)
    assert (None if found is None else type(found)) is failure


@pytest.mark.scenario("model-boundary", "A provider that asks for patience")
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("0", 0.0),
        ("2", 2.0),
        ("1.5", 1.5),
        ("-3", 0.0),
        ("10", 10.0),
        ("3600", 10.0),
        ("inf", 10.0),
        ("Sun, 01 Mar 2026 12:00:04 GMT", 4.0),
        ("Sun, 01 Mar 2026 12:00:04 -0000", 4.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 01 Mar 2026 13:00:00 GMT", 10.0),
        ("Sun, 99 Mar 2026 13:00:00 GMT", None),
        ("Sun, 01 Mar 2026 13:00:00 +99999999", None),
    ],
)
def test_retry_after_is_read_in_both_forms_and_bounded(
    header: str | None, seconds: float | None
) -> None:
    """Seconds or a date, never below nothing, never above the bound."""
    failure = failure_of_status(429, header, NOW)
    assert isinstance(failure, ModelRateLimited)
    assert failure.retry_after == seconds


@given(st.text())
def test_no_retry_after_breaks_the_bound(header: str) -> None:
    """Any header text gives nothing, or a wait within the bound."""
    failure = failure_of_status(429, header, NOW)
    assert failure is not None
    assert failure.retry_after is None or 0 <= failure.retry_after <= LONGEST_RETRY_AFTER


@pytest.mark.parametrize("finish_reason", ["stop", None, "eos"])
def test_an_answer_is_taken_whatever_word_ends_it(finish_reason: str | None) -> None:
    """Servers differ in their words for an ordinary end."""
    assert read(completion("hi", finish_reason=finish_reason)) == ModelAnswer("hi", Usage(11, 7))


@pytest.mark.parametrize(
    ("usage", "read_as"),
    [
        (None, Usage()),
        ("many", Usage()),
        ({}, Usage()),
        ({"prompt_tokens": 3}, Usage(3, None)),
        ({"prompt_tokens": -1, "completion_tokens": 2.5}, Usage()),
        ({"prompt_tokens": True, "completion_tokens": "7"}, Usage()),
        ({"prompt_tokens": 2**53, "completion_tokens": 0}, Usage(None, 0)),
    ],
)
def test_usage_is_what_can_have_been_counted(usage: Any, read_as: Usage) -> None:
    """Absent or absurd counts are unknown, not zero."""
    answer = read({**completion("hi"), "usage": usage})
    assert answer == ModelAnswer("hi", read_as)


@pytest.mark.scenario("model-boundary", "A completion without an answer")
@pytest.mark.parametrize(
    ("document", "failure"),
    [
        ([], ModelUnparseable),
        ({}, ModelUnparseable),
        ("text", ModelUnparseable),
        (7, ModelUnparseable),
        ({"choices": {}}, ModelUnparseable),
        ({"choices": "none"}, ModelUnparseable),
        ({"choices": ["none"]}, ModelUnparseable),
        ({"choices": [{}]}, ModelUnparseable),
        ({"choices": [{"message": None}]}, ModelUnparseable),
        ({"choices": [{"text": "legacy"}]}, ModelUnparseable),
        ({**completion(), "error": {"code": 500}}, ModelUnparseable),
        ({"choices": None, "error": "down"}, ModelUnparseable),
        ({"choices": None}, ModelOffSchema),
        ({"choices": []}, ModelOffSchema),
        (completion(None), ModelOffSchema),
        (completion([{"type": "text", "text": "{}"}]), ModelOffSchema),
        (completion("{}", refusal="no"), ModelOffSchema),
        (completion("{}", function_call={"name": "f"}), ModelOffSchema),
        (completion("{}", finish_reason="tool_calls"), ModelOffSchema),
        (completion("\ud800"), ModelOffSchema),
    ],
)
def test_what_is_no_answer_has_its_class(document: Any, failure: type[ModelFailure]) -> None:
    """No completion at all, and a completion without a usable answer, are told apart."""
    assert type(read(document)) is failure


def test_a_null_error_and_null_extras_do_not_spoil_an_answer() -> None:
    """Servers that write every field leave the unused ones null."""
    document = completion("hi", refusal=None, tool_calls=[], function_call=None)
    assert read({**document, "error": None}) == ModelAnswer("hi", Usage(11, 7))


def test_nesting_without_end_is_unparseable() -> None:
    """A parser's recursion limit is no crash."""
    assert isinstance(answer_of_body(b"[" * 200_000, 10), ModelUnparseable)


@given(JSON)
def test_any_document_is_read_without_a_crash(document: Any) -> None:
    """Whatever JSON a server sends, it is an answer or a failure."""
    assert isinstance(read(document), ModelAnswer | ModelFailure)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_a_crash(noise: bytes) -> None:
    """Whatever bytes a server sends, they are an answer or a failure."""
    assert isinstance(answer_of_body(noise, 10), ModelAnswer | ModelFailure)


@given(st.text(alphabet="\x01\u4e2d\U0001f600a", min_size=1, max_size=300))
def test_an_answer_within_its_limit_fits_the_body_limit(text: str) -> None:
    """No way to escape JSON makes a permitted answer too long to read."""
    limit = len(text.encode())
    call = ModelCall("run-1", "s", "u", 1.0, limit, 100, "verdict", {})
    written = json.dumps(completion(text)).encode()
    assert len(written) <= body_limit(call)
    assert answer_of_body(written, limit) == ModelAnswer(text, Usage(11, 7))
    assert isinstance(answer_of_body(written, limit - 1), ModelOffSchema)
