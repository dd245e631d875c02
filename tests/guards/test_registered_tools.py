"""The tools of installed packages: taken as they are, or refused with a sentence."""

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from contracts.base import OpenContract
from contracts.evidence import EvidenceStatus, Projection
from worker.guards.tools import BUILT_IN, ENTRY_POINT_GROUP, Observed, ToolProjection, query_logs
from worker.guards.tools.registered import WrongTool, all_tools

HERE = "tests.guards.test_registered_tools"
GOOD = "worker.guards.tools.query_logs:PROJECTION"


class LooseResult(OpenContract):
    tool_name: str


class BareResult(Projection):
    tool_name: str


def tool(result: Any) -> ToolProjection[Any, Any]:
    return ToolProjection(
        request=OpenContract,
        result=result,
        source=lambda _: "jaeger",
        scope=(),
        asks=lambda _: True,
        status=lambda _: EvidenceStatus.EVIDENCE_FOUND,
        self_authored=lambda _, __: False,
        observed=lambda _, __: Observed(),
    )


LOOSE, BARE = tool(LooseResult), tool(BareResult)


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, ENTRY_POINT_GROUP)


def test_tools_of_packages_stand_beside_the_built_in_ones() -> None:
    """Each under its entry's name, whatever their order, and nobody can add one later."""
    tools = all_tools([entry("query_b", GOOD), entry("query_a", GOOD)])
    assert list(tools) == [*BUILT_IN, "query_a", "query_b"]
    assert tools["query_a"] is query_logs.PROJECTION
    assert {name: tools[name] for name in BUILT_IN} == dict(BUILT_IN)
    with pytest.raises(TypeError):
        tools["query_c"] = query_logs.PROJECTION  # type: ignore[index]


def test_only_the_group_of_this_stage_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of other programs are none of ours."""
    groups = {ENTRY_POINT_GROUP: [entry("query_a", GOOD)]}
    monkeypatch.setattr(
        "worker.guards.tools.registered.entry_points", lambda *, group: groups[group]
    )
    assert set(all_tools()) == {*BUILT_IN, "query_a"}
    assert all_tools([]) == BUILT_IN


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        *((name, GOOD, "bears a name that is taken") for name in BUILT_IN),
        ("query_a", "worker.nowhere:PROJECTION", "does not load: ModuleNotFoundError"),
        ("query_a", f"{HERE}:NOTHING", "does not load: AttributeError"),
        ("query_a", f"{HERE}:HERE", "is no ToolProjection"),
        (
            "query_a",
            f"{HERE}:LOOSE",
            "has a result without evidence_status, tool_call_id, tool_name",
        ),
    ],
)
def test_a_tool_that_would_check_less_is_refused(name: str, value: str, sentence: str) -> None:
    """The sentence names the tool and where it comes from, and nothing is passed over."""
    with pytest.raises(WrongTool) as caught:
        all_tools([entry(name, value)])
    assert str(caught.value) == f"the tool {name} ({value}) {sentence}"


def test_a_result_needs_no_field_beside_those_that_are_compared() -> None:
    """A tool may say no more than that it found something."""
    assert all_tools([entry("query_a", f"{HERE}:BARE")])["query_a"].result is BareResult


def test_two_packages_cannot_share_a_name() -> None:
    """The second one would replace what the first one checks."""
    with pytest.raises(WrongTool, match="taken"):
        all_tools([entry("query_a", GOOD), entry("query_a", f"{HERE}:LOOSE")])
