"""What the judge says by its own rules, in the form of a chat completion."""

import json
from collections.abc import Mapping
from typing import Any

from worker.offline.judge_claims import verify
from worker.offline.judge_repair import repair
from worker.offline.judge_rules import review

MODEL = "rule-based-judge"


class NotAQuestion(ValueError):
    """The request asks nothing that the rules can answer. Nothing of it is quoted."""


def user_text(body: bytes) -> str:
    """The text of the last user message of a chat-completions request.

    Raises NotAQuestion.
    """
    try:
        messages = json.loads(body)["messages"]
        texts = [message["content"] for message in messages if message["role"] == "user"]
        text = texts[-1]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise NotAQuestion("the body is no chat completion request with a user message") from None
    if not isinstance(text, str):
        raise NotAQuestion("the user message is no text")
    return text


def answer(body: bytes) -> str:
    """Answer a review, a verification or a repair; the question's keys tell which it is.

    Raises NotAQuestion.
    """
    try:
        question = json.loads(user_text(body))
        if "evidence" in question:
            judgement = review(question["query"], question["draft"], question["evidence"])
            return verdict("SUPPORTED" if judgement.supported else "UNSUPPORTED", judgement.reason)
        if "verified_evidence" in question:
            return json.dumps(verify(question), ensure_ascii=False)
        return json.dumps(repair(question["draft"], question["violations"]), ensure_ascii=False)
    except NotAQuestion:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise NotAQuestion("the user message is no question that the rules know") from None


def verdict(name: str, reason: str) -> str:
    """The review's answer as its exact JSON text."""
    return json.dumps({"verdict": name, "reason": reason}, ensure_ascii=False)


def completion(
    content: str | None,
    *,
    number: int,
    created: int,
    input_bytes: int,
    finish_reason: str = "stop",
    usage: bool = True,
    message: Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> bytes:
    """A chat completion with one choice.

    ``message`` and ``overrides`` are merged over the choice's message and over the
    whole. A token is counted as four bytes.
    """
    whole: dict[str, Any] = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": created,
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **(message or {})},
                "finish_reason": finish_reason,
            }
        ],
    }
    if usage:
        asked, said = input_bytes // 4 + 1, len(content or "") // 4 + 1
        whole["usage"] = {
            "prompt_tokens": asked,
            "completion_tokens": said,
            "total_tokens": asked + said,
        }
    return json.dumps({**whole, **(overrides or {})}, ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def error(message: str, kind: str, code: str | None = None) -> bytes:
    """An error object as the chat-completions protocol has it."""
    return json.dumps(
        {"error": {"message": message, "type": kind, "param": None, "code": code}}
    ).encode()
