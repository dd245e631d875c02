"""The tools whose results the guard can check, and how another one is added.

A tool is known by its name and a :class:`ToolProjection`. The guards take the mapping
as a parameter, so the composition root may pass ``BUILT_IN`` with more entries beside
it. Those come from the Python entry point group ``release_stage.tools``, where the
entry's name is the tool's name::

    [project.entry-points."release_stage.tools"]
    query_traces = "acme_tools.traces:PROJECTION"

A projection is written like ``query_logs.py`` here:

1. a request model on ``contracts.base.OpenContract``, its source a ``SourceName``;
2. a result model on ``contracts.evidence.Projection`` with its own ``tool_name``;
3. ``PROJECTION = ToolProjection(...)`` with the functions that its docstring names.

Its functions must be pure, total and quick. An exception in one of them ends the run
without a release. A tool that is not in the mapping fails closed: TOOL_UNKNOWN.
"""

from collections.abc import Mapping
from types import MappingProxyType

from worker.guards.tools import (
    lookup_knowledge,
    query_logs,
    query_metrics,
    query_mysql,
    run_command,
)
from worker.guards.tools.projection import AnyProjection, Observed, ToolProjection

__all__ = ["BUILT_IN", "ENTRY_POINT_GROUP", "AnyProjection", "Observed", "ToolProjection"]

ENTRY_POINT_GROUP = "release_stage.tools"

BUILT_IN: Mapping[str, AnyProjection] = MappingProxyType(
    {
        "lookup_knowledge": lookup_knowledge.PROJECTION,
        "query_logs": query_logs.PROJECTION,
        "query_metrics": query_metrics.PROJECTION,
        "query_mysql": query_mysql.PROJECTION,
        "run_command": run_command.PROJECTION,
    }
)
