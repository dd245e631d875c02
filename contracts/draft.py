"""The diagnosis draft that an agent wrote.

Strict in types only (issue of the guard, not of the parser): blank texts,
duplicate or dangling ids, empty lists and unknown kinds parse here and are
violations there. Unknown fields do not parse, since nothing would review them.
"""

from contracts.base import Contract

NORMAL = "NORMAL"
NEGATIVE_OBSERVATION = "NEGATIVE_OBSERVATION"


class Analysis(Contract):
    """One step of the reasoning, with the tool calls that it rests on."""

    analysis_id: str
    kind: str
    text: str
    tool_call_ids: tuple[str, ...]


class Conclusion(Contract):
    """What the agent holds to be the cause."""

    text: str
    based_on_analysis_ids: tuple[str, ...]


class ActionItem(Contract):
    """A step for the people on call, or a lasting recommendation."""

    text: str
    based_on_analysis_ids: tuple[str, ...]
    requires_human_confirmation: bool = False


class DiagnosisDraft(Contract):
    """A whole draft. ``conclusion`` is null when the agent found none."""

    conclusion: Conclusion | None
    analyses: tuple[Analysis, ...]
    action_plan: tuple[ActionItem, ...] = ()
    recommendations: tuple[ActionItem, ...] = ()
    limitations: tuple[str, ...] = ()
    missing_context: tuple[str, ...] = ()
