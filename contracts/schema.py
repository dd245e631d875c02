"""JSON Schemas (2020-12) and the AsyncAPI 3 document, written from the models.

The models are the truth; ``contracts/schemas/`` is what a team in another language
reads. Run as ``python -m contracts.schema`` to write the folder and with ``--check``
to compare: it then names each file that drifted and exits 1.

    schemas/messages/   one CloudEvent each, ready to validate a whole message
    schemas/data/       what stands in ``data``, under the URI that ``dataschema`` names
    schemas/records/    the draft, the claims, the invocation record and the evaluation of claims
    schemas/tools/      what each tool was asked (request) and found (result)
    schemas/asyncapi.json
"""

import json
import sys
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, create_model
from pydantic.json_schema import GenerateJsonSchema

from contracts import evidence
from contracts.asyncapi import document
from contracts.claims import ExecutorOutput
from contracts.claims_evaluation import VerifierEvaluation
from contracts.draft import DiagnosisDraft
from contracts.envelope import MESSAGES, Envelope, schema_uri

FOLDER = Path(__file__).parent / "schemas"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_RECORDS: tuple[type[BaseModel], ...] = (
    DiagnosisDraft,
    ExecutorOutput,
    evidence.InvocationRecord,
    VerifierEvaluation,
)
_TOOLS: dict[str, tuple[type[BaseModel], type[BaseModel]]] = {
    "lookup_knowledge": (evidence.LookupKnowledgeRequest, evidence.LookupKnowledgeResult),
    "query_logs": (evidence.QueryLogsRequest, evidence.QueryLogsResult),
    "query_metrics": (evidence.QueryMetricsRequest, evidence.QueryMetricsResult),
    "query_mysql": (evidence.QueryMysqlRequest, evidence.QueryMysqlResult),
    "run_command": (evidence.RunCommandRequest, evidence.RunCommandResult),
}


def documents() -> dict[str, str]:
    """Every file of the folder: its path inside the folder, and its text."""
    found: dict[str, dict[str, Any]] = {"asyncapi.json": document()}
    for message in MESSAGES:
        name = message.TYPE.removeprefix("release_stage.")
        envelope = cast(
            "type[BaseModel]",
            create_model(  # type: ignore[call-overload]  # the type is known only here
                f"{message.__name__}Event",
                __base__=Envelope,
                __doc__=message.__doc__,
                type=Literal[message.TYPE],
                data=message,
            ),
        )
        found[f"messages/{name}.json"] = _schema(envelope, f"urn:release-stage:message:{name}")
        found[f"data/{name}.json"] = _schema(message, schema_uri(message.TYPE))
    for record in _RECORDS:
        found[f"records/{record.__name__}.json"] = _schema(
            record, f"urn:release-stage:record:{record.__name__}"
        )
    for tool, (request, result) in _TOOLS.items():
        for part, model in (("request", request), ("result", result)):
            found[f"tools/{tool}.{part}.json"] = _schema(
                model, f"urn:release-stage:tool:{tool}:{part}"
            )
    return {path: _text(schema) for path, schema in sorted(found.items())}


def drift(folder: Path = FOLDER) -> list[str]:
    """The paths inside the folder that are missing, changed or too many."""
    wanted = documents()
    there = {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in folder.glob("**/*.json")
    }
    return sorted(
        path for path in wanted.keys() | there.keys() if wanted.get(path) != there.get(path)
    )


def write(folder: Path = FOLDER) -> None:
    """Bring the folder to what the models say."""
    wanted = documents()
    for path in drift(folder):
        target = folder / path
        if path in wanted:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(wanted[path], encoding="utf-8")
        else:
            target.unlink()


class _WithoutFieldTitles(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes from field names: they say nothing new."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schema(model: type[BaseModel], uri: str) -> dict[str, Any]:
    schema = model.model_json_schema(schema_generator=_WithoutFieldTitles)
    return {"$schema": _DIALECT, "$id": uri, **schema}


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        drifted = drift()
        for path in drifted:
            print(f"contracts/schemas/{path} is not what the models say; run: make schemas")
        return 1 if drifted else 0
    if arguments:
        print("usage: python -m contracts.schema [--check]")
        return 2
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
