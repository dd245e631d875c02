"""What an agent team imports. Depends on neither Celery nor openai."""

from worker.client.invocations import Immutable, InvocationWriter
from worker.client.results import ResultConsumer
from worker.client.stage_client import StageClient, TooLarge

__all__ = ["Immutable", "InvocationWriter", "ResultConsumer", "StageClient", "TooLarge"]
