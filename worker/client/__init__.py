"""What an agent team imports. Depends on neither Celery nor openai."""

from worker.client.invocations import Immutable, InvocationReader, InvocationWriter
from worker.client.recorder import Recorder
from worker.client.recorder_findings import (
    Document,
    Failure,
    Finding,
    LogLine,
    Series,
    command_output,
    knowledge_documents,
    log_matches,
    metric_series,
    mysql_rows,
)
from worker.client.results import ResultConsumer
from worker.client.stage_client import StageClient, TooLarge

__all__ = [
    "Document",
    "Failure",
    "Finding",
    "Immutable",
    "InvocationReader",
    "InvocationWriter",
    "LogLine",
    "Recorder",
    "ResultConsumer",
    "Series",
    "StageClient",
    "TooLarge",
    "command_output",
    "knowledge_documents",
    "log_matches",
    "metric_series",
    "mysql_rows",
]
