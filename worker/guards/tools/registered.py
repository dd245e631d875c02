"""The tools of installed packages, by entry point, beside the built-in ones."""

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from worker.guards.tools import BUILT_IN, ENTRY_POINT_GROUP, AnyProjection, ToolProjection
from worker.guards.tools.projection import REPEATED


class WrongTool(Exception):
    """An entry point that cannot be used; the message names it and says what to change."""


def all_tools(entries: Iterable[EntryPoint] | None = None) -> Mapping[str, AnyProjection]:
    """The built-in tools and those of installed packages, by tool name.

    Loading imports the packages, so it belongs into the process that uses them. Raises
    WrongTool for an entry that does not load, is no ToolProjection, has a result without
    the fields that are compared with the record, or bears a name that is taken: no
    package may loosen what is checked of a built-in tool.
    """
    tools = dict(BUILT_IN)
    found = entry_points(group=ENTRY_POINT_GROUP) if entries is None else entries
    for entry in sorted(found, key=lambda one: one.name):
        if entry.name in tools:
            raise WrongTool(f"the tool {entry.name} ({entry.value}) bears a name that is taken")
        tools[entry.name] = _loaded(entry)
    return MappingProxyType(tools)


def _loaded(entry: EntryPoint) -> AnyProjection:
    told = f"the tool {entry.name} ({entry.value})"
    try:
        projection = entry.load()
    except Exception as error:  # noqa: BLE001 - whatever a package raises, it cannot be used
        raise WrongTool(f"{told} does not load: {type(error).__name__}") from None
    if not isinstance(projection, ToolProjection):
        raise WrongTool(f"{told} is no ToolProjection")
    if not projection.result.model_fields.keys() >= REPEATED:
        raise WrongTool(f"{told} has a result without {', '.join(sorted(REPEATED))}")
    return projection
