"""The agent: it looks, remembers the id of each call, and writes a draft that cites them.

A real agent's model chooses the calls; this one follows a fixed plan, so that it runs
without a model. Its draft comes from a model if an endpoint is given, else from a template.
"""

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from contracts.draft import (
    NEGATIVE_OBSERVATION,
    NORMAL,
    ActionItem,
    Analysis,
    Conclusion,
    DiagnosisDraft,
)
from examples.broken_service.tools import Tools
from worker.client import Recorder

QUESTION = "Orders fail at checkout. Why?"

_INSTRUCTIONS = """\
You write the report of an incident investigation. The user message holds the question, the tool \
calls that were made and what each gave. Answer with one JSON object and nothing else, of this form:
{"conclusion": {"text": "...", "based_on_analysis_ids": ["..."]}, "analyses": [{"analysis_id": \
"...", "kind": "NORMAL" or "NEGATIVE_OBSERVATION", "text": "...", "tool_call_ids": ["..."]}], \
"action_plan": [{"text": "...", "based_on_analysis_ids": ["..."], "requires_human_confirmation": \
true}], "recommendations": [], "limitations": [], "missing_context": []}
Each analysis cites the ids of the calls that show it. NEGATIVE_OBSERVATION is for calls that \
found nothing. State nothing that no call shows. Set "conclusion" to null if the cause is not shown.
"""


@dataclass
class Investigation:
    """What was asked and seen, by call id: what a model would have in its context."""

    seen: dict[str, dict[str, Any]] = field(default_factory=dict)

    def ask(self, recorder: Recorder, call_id: str, tool: Callable[..., Any], *given: str) -> Any:
        """Make one call under an id, as an agent does with the ids that its model gave."""
        recorder.model_step()
        seen: Any
        try:
            with recorder.answering(call_id):
                seen = tool(*given)
        except Exception as error:  # noqa: BLE001 - a tool that fails is something to tell the model
            seen = f"{type(error).__name__}: {error}"
        self.seen[call_id] = {"arguments": given, "result": seen}
        return seen


def investigate(recorder: Recorder, tools: Tools) -> Investigation:
    """Look at the shop from several sides, not all of them helpful."""
    found = Investigation()
    found.ask(recorder, "errors", tools.query_logs, "checkout", "ERROR")
    found.ask(recorder, "failures", tools.query_metrics, "checkout_failures_total")
    found.ask(recorder, "memory", tools.query_logs, "checkout", "out of memory")
    found.ask(recorder, "payments", tools.query_logs, "payments", "ERROR")
    found.ask(recorder, "advice", tools.lookup_knowledge, "connection refused")
    found.ask(recorder, "advice-again", tools.lookup_knowledge, "connection refused")
    recorder.helper_call()  # a task list, a scratch pad: it looks at nothing
    found.ask(recorder, "config", tools.run_command, "cat checkout.json")
    found.ask(recorder, "listens", tools.query_logs, "inventory", "listens on")
    return found


def write_draft(found: Investigation) -> str:
    """The draft's JSON text: from a model if AGENT_OPENAI_BASE_URL is set, else from a template."""
    url = os.environ.get("AGENT_OPENAI_BASE_URL")
    return _ask_model(url, found) if url else _from_template(found)


def _ask_model(url: str, found: Investigation) -> str:
    from openai import OpenAI  # noqa: PLC0415 - only this road needs it

    client = OpenAI(base_url=url, api_key=os.environ.get("AGENT_OPENAI_API_KEY", "none"))
    material = {"question": QUESTION, "calls": found.seen}
    answer = client.chat.completions.create(
        model=os.environ.get("AGENT_MODEL", "gpt-4.1-mini"),
        messages=[
            {"role": "system", "content": _INSTRUCTIONS},
            {"role": "user", "content": json.dumps(material, default=str)},
        ],
    )
    # Whatever it wrote is submitted as it is: reading it strictly is the stage's affair.
    return answer.choices[0].message.content or ""


def _from_template(found: Investigation) -> str:
    """Fill in what the calls showed; without it, a draft that admits to know no cause."""
    configured = re.search(r'"inventory_port": (\d+)', _shown(found, "config"))
    listening = re.search(r"listens on (\S+:(\d+))", _shown(found, "listens"))
    if configured is None or listening is None or configured[1] == listening[2]:
        draft = DiagnosisDraft(
            conclusion=None,
            analyses=(_analysis("errors", "The log of checkout holds errors."),),
            missing_context=("The configuration of checkout and inventory.",),
        )
        return draft.model_dump_json()
    errors = len(found.seen["errors"]["result"])
    analyses = (
        _analysis(
            "errors",
            f"The log of checkout holds {errors} lines with ERROR: inventory at"
            f" 127.0.0.1:{configured[1]} refused the connection.",
        ),
        _analysis("config", f"The file checkout.json sets inventory_port to {configured[1]}."),
        _analysis("listens", f"The log of inventory says that it listens on {listening[1]}."),
        _analysis(
            "memory",
            'A search for "out of memory" in the log of checkout found no line.',
            NEGATIVE_OBSERVATION,
        ),
    )
    draft = DiagnosisDraft(
        conclusion=Conclusion(
            text=f"Orders fail because checkout is configured with inventory_port {configured[1]},"
            f" while inventory listens on {listening[1]}.",
            based_on_analysis_ids=("errors", "config", "listens"),
        ),
        analyses=analyses,
        action_plan=(
            ActionItem(
                text=f"Set inventory_port in checkout.json to {listening[2]} and restart checkout.",
                based_on_analysis_ids=("config", "listens"),
                requires_human_confirmation=True,
            ),
        ),
        limitations=("No log of payments was found.",),
    )
    return draft.model_dump_json()


def _analysis(call_id: str, text: str, kind: str = NORMAL) -> Analysis:
    return Analysis(analysis_id=call_id, kind=kind, text=text, tool_call_ids=(call_id,))


def _shown(found: Investigation, call_id: str) -> str:
    return str(found.seen[call_id]["result"])
