"""The evidence repair may mend references, and nothing that a reader can see."""

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from contracts.draft import DiagnosisDraft
from contracts.strict_json import canonical
from tests.strategies import any_text, draft, drafts, json_values
from worker.guards import repair
from worker.guards.answers import AnswerError, OffSchema, Unparseable
from worker.guards.repair import accept, mended, parse_answer, visible
from worker.guards.violations import Violation, ViolationCode

REFERENCES = {"analysis_id", "tool_call_ids", "based_on_analysis_ids"}


def parsed(value: Any) -> DiagnosisDraft:
    return DiagnosisDraft.model_validate_json(json.dumps(value))


def document(value: DiagnosisDraft) -> dict[str, Any]:
    dumped: dict[str, Any] = value.model_dump(mode="json")
    return dumped


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places of a document, references and what is inside them left out."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in REFERENCES:
                yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield (*path, index)
            yield from places(item, (*path, index))
    else:
        yield path


def changed_at(value: Any, path: tuple[Any, ...], change: Any) -> Any:
    """Copy a document with the item at one place replaced by ``change(item)``."""
    result = copy.deepcopy(value)
    holder = result
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = change(holder[path[-1]])
    return result


def leaf(value: Any, path: tuple[Any, ...]) -> bool:
    """Tell whether a text or a flag stands at a place."""
    for key in path:
        value = value[key]
    return isinstance(value, str | bool)


def rewired(value: Any) -> Any:
    """Copy a document with all its ids and references replaced."""
    if isinstance(value, dict):
        return {
            key: ("new" if key == "analysis_id" else ["n1", "n2"])
            if key in REFERENCES
            else rewired(item)
            for key, item in value.items()
        }
    return [rewired(item) for item in value] if isinstance(value, list) else value


SOUND = document(draft(missing_context=["Which region?"]))


@pytest.mark.scenario("evidence-repair", "Mended references")
def test_structural_repair_succeeds() -> None:
    """New ids and references are accepted, and the mended draft holds them."""
    original, repaired = parsed(SOUND), parsed(rewired(SOUND))
    assert accept(original, repaired)
    assert mended(original, repaired) == repaired
    assert accept(original, original)


LEAVES = [path for path in dict.fromkeys(places(SOUND)) if leaf(SOUND, path)]


@pytest.mark.scenario("evidence-repair", "A repair that touches a word")
@pytest.mark.parametrize("path", LEAVES, ids=str)
def test_repair_changes_report_text(path: tuple[Any, ...]) -> None:
    """A change at any visible place of the draft is refused, one place at a time."""

    def changed(item: str | bool) -> str | bool:
        return not item if isinstance(item, bool) else f"{item} "

    value = changed_at(rewired(SOUND), path, changed)
    assert not accept(parsed(SOUND), parsed(value))


def test_every_visible_field_has_a_place_of_its_own_in_the_table_above() -> None:
    """Conclusion, kinds, texts, flags, limitations and missing context are all among them."""
    names = {"/".join(part for part in path if isinstance(part, str)) for path in LEAVES}
    assert names == {
        "conclusion/text",
        "analyses/kind",
        "analyses/text",
        "action_plan/text",
        "action_plan/requires_human_confirmation",
        "recommendations/text",
        "recommendations/requires_human_confirmation",
        "limitations",
        "missing_context",
    }


@pytest.mark.scenario("evidence-repair", "A repair that touches a word")
@pytest.mark.parametrize(
    "section", ["analyses", "action_plan", "recommendations", "limitations", "missing_context"]
)
def test_a_repair_that_adds_drops_or_moves_an_item_is_refused(section: str) -> None:
    """Numbers of items and their order are seen by a reader."""
    items = SOUND[section]
    original = parsed({**SOUND, section: items * 2})
    assert accept(original, original)
    assert not accept(original, parsed({**SOUND, section: items}))
    assert not accept(original, parsed({**SOUND, section: items * 3}))
    assert not accept(original, parsed({**SOUND, section: []}))
    other = copy.deepcopy(items[0])
    if isinstance(other, str):
        other += "!"
    else:
        other["text"] += "!"
    first, second = [*items, other], [other, *items]
    assert not accept(parsed({**SOUND, section: first}), parsed({**SOUND, section: second}))


@pytest.mark.scenario("evidence-repair", "A repair that touches a word")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\u00e9", "e\u0301"),
        ("\ufb01", "fi"),
        ("A", "\u0410"),
        ("a b", "a  b"),
        ("a", "a\u200b"),
        ("a\n", "a\r\n"),
        ("Redis", "redis"),
        ("5 %", "5\u00a0%"),
        ("", " "),
    ],
)
def test_text_is_compared_to_the_code_point(before: str, after: str) -> None:
    """Unicode, spaces and case are not normalised."""
    assert not accept(draft(limitations=[before]), draft(limitations=[after]))


def test_a_conclusion_cannot_appear_or_vanish() -> None:
    """A draft without a conclusion is never repaired, not even into itself."""
    without = draft(conclusion=None)
    assert not accept(draft(), without)
    assert not accept(without, draft())
    assert not accept(without, without)
    with pytest.raises(ValueError, match="changed"):
        mended(without, without)


def test_a_repair_that_is_not_accepted_is_not_merged() -> None:
    """Merging cannot smuggle a text in, nor hide that one was changed."""
    with pytest.raises(ValueError, match="changed"):
        mended(draft(), draft(limitations=[]))
    with pytest.raises(ValueError, match="changed"):
        mended(draft(), draft(conclusion=None))


def test_fields_that_the_author_left_out_stay_out() -> None:
    """Absent and empty look the same to a reader; what is published has the author's form."""
    value = {
        "conclusion": {"text": "Redis is down.", "based_on_analysis_ids": []},
        "analyses": [
            {"analysis_id": "", "kind": "NORMAL", "text": "Seen.", "tool_call_ids": ["call-1"]}
        ],
        "action_plan": [{"text": "Start it.", "based_on_analysis_ids": ["a9"]}],
    }
    original = parsed(value)
    answer = document(original)
    answer["conclusion"]["based_on_analysis_ids"] = ["a1"]
    answer["analyses"][0]["analysis_id"] = "a1"
    answer["action_plan"][0]["based_on_analysis_ids"] = ["a1"]
    repaired = parsed(answer)
    assert "recommendations" in repaired.model_fields_set
    assert accept(original, repaired)
    result = mended(original, repaired)
    assert result == repaired
    assert result.model_dump(mode="json", exclude_unset=True) == {
        "conclusion": {"text": "Redis is down.", "based_on_analysis_ids": ["a1"]},
        "analyses": [
            {"analysis_id": "a1", "kind": "NORMAL", "text": "Seen.", "tool_call_ids": ["call-1"]}
        ],
        "action_plan": [{"text": "Start it.", "based_on_analysis_ids": ["a1"]}],
    }


@pytest.mark.scenario("evidence-repair", "What the repair is shown")
def test_the_question_holds_query_whole_draft_and_violations() -> None:
    """Codes and places only: nothing that was stored is in it."""
    violations = [Violation(ViolationCode.RECORD_MISSING, "analyses[0].tool_call_ids[0]")]
    text = repair.question("Why?", draft(), violations)
    assert text.encode() == canonical(json.loads(text))
    assert json.loads(text) == {
        "query": "Why?",
        "draft": document(draft()),
        "violations": [{"code": "RECORD_MISSING", "target": "analyses[0].tool_call_ids[0]"}],
    }


def test_a_whole_draft_is_read_back() -> None:
    """What the model saw, it may answer, with JSON white space around it."""
    assert parse_answer(f"\n{json.dumps(SOUND)}\n") == parsed(SOUND)


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("", Unparseable),
        (f"```json\n{json.dumps(SOUND)}\n```", Unparseable),
        (f"{json.dumps(SOUND)} done", Unparseable),
        (json.dumps(SOUND).replace('"text"', '"text": "x", "text"', 1), Unparseable),
        ("[]", OffSchema),
        ("{}", OffSchema),
        (json.dumps({**SOUND, "note": "x"}), OffSchema),
        (json.dumps({**SOUND, "limitations": None}), OffSchema),
        (json.dumps({**SOUND, "limitations": [5]}), OffSchema),
        (json.dumps({**SOUND, "conclusion": {"text": "x"}}), OffSchema),
    ],
)
def test_a_repair_of_another_shape_is_a_typed_failure(
    text: str, failure: type[AnswerError]
) -> None:
    """Parsed as strictly as a draft itself, and nothing of it is quoted."""
    with pytest.raises(failure) as caught:
        parse_answer(text)
    assert str(caught.value) in {"UNPARSEABLE", "OFF_SCHEMA"}
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_schema_for_providers_is_closed_and_takes_a_whole_draft() -> None:
    """Every object names all its fields and allows no other."""
    schema: Any = repair.ANSWER_SCHEMA
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(SOUND)
    for part in (schema, *schema["$defs"].values()):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
    assert "description" not in json.dumps(schema)
    assert "default" not in json.dumps(schema)
    assert "title" not in json.dumps(schema)
    assert not Draft202012Validator(schema).is_valid({**SOUND, "note": "x"})


def test_the_prompt_names_the_three_fields_and_forbids_the_rest() -> None:
    """The model is told what the comparison will enforce."""
    for words in (*REFERENCES, "character for character", "Never invent", "exactly one JSON"):
        assert words in repair.SYSTEM
    assert (repair.PROMPT_NAME, repair.PROMPT_VERSION) == ("evidence_repair", "1")
    assert repair.ANSWER_NAME == "diagnosis_draft"


@given(drafts())
def test_a_repair_of_references_alone_is_accepted(original: DiagnosisDraft) -> None:
    """Whatever the draft, new ids and references change nothing visible."""
    assume(original.conclusion is not None)
    repaired = parsed(rewired(document(original)))
    assert visible(original) == visible(repaired)
    assert accept(original, repaired)
    result = mended(original, repaired)
    assert result == repaired
    assert result.model_fields_set == original.model_fields_set


@pytest.mark.scenario("evidence-repair", "Any visible difference")
@given(drafts(), st.data())
def test_a_repair_that_changes_anything_visible_is_never_accepted(
    original: DiagnosisDraft, data: st.DataObject
) -> None:
    """One place is changed, beside any change of references."""
    value = document(original)
    base = rewired(value) if data.draw(st.booleans()) else value
    path = data.draw(st.sampled_from(list(places(base))))

    def change(item: Any) -> Any:
        if isinstance(item, bool):
            return not item
        if isinstance(item, str):
            return data.draw(any_text().filter(lambda text: text != item))
        if item is None:
            return {"text": data.draw(any_text()), "based_on_analysis_ids": []}
        return {**item, "text": data.draw(any_text().filter(lambda text: text != item["text"]))}

    assert not accept(original, parsed(changed_at(base, path, change)))


@given(any_text() | json_values().map(json.dumps))
def test_whatever_a_model_writes_is_a_draft_or_a_typed_failure(text: str) -> None:
    """No other error leaves the parser."""
    with suppress(Unparseable, OffSchema):
        parse_answer(text)
