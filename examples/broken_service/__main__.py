"""``python -m examples.broken_service``: a broken shop, an agent, a stage, and the verdict.

Starts everything that it needs on this machine and stops it again. With ``--stage URL``
the draft goes to a stage that is running at that Redis instead.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import redis

from contracts.envelope import Envelope
from contracts.messages import DraftReady
from examples.broken_service.agent import QUESTION, investigate, write_draft
from examples.broken_service.service import BrokenShop
from examples.broken_service.tools import tools_of
from worker.client import InvocationReader, Recorder, ResultConsumer, StageClient
from worker.client.showing import shown_trace
from worker.offline.judge import JudgeServer
from worker.offline.processes import start_worker
from worker.offline.redis_server import RedisServer

PATIENCE = 60.0


def main() -> int:
    """Returns the exit code: 0 when a verdict came, whatever it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", metavar="URL", help="the Redis of a running stage")
    parser.add_argument("--lie", action="store_true", help="report a port that no tool showed")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="broken-service-") as name:
        folder = Path(name)
        with _stage(chosen.stage, folder) as url, BrokenShop(folder) as shop:
            return run(url, shop, lie=chosen.lie)


def run(url: str, shop: BrokenShop, *, lie: bool = False) -> int:
    """Investigate, draft, submit, and wait for what the stage makes of it."""
    run_id, session_id = f"shop-{uuid4().hex[:12]}", "example"

    recorder = Recorder.connect(url, run_id=run_id, session_id=session_id)
    found = investigate(recorder, tools_of(recorder, shop.folder, shop.checkout_url, shop.started))
    draft = write_draft(found)
    if lie:
        draft = draft.replace("listens on 127.0.0.1:", "listens on 127.0.0.1:9")
    recorder.model_step()

    client = StageClient(url)
    client.submit_draft(
        DraftReady(
            run_id=run_id,
            session_id=session_id,
            query=QUESTION,
            draft=draft,
            progress=recorder.progress(),
        )
    )
    client.close()
    recorder.close()
    _tell_trace(url, run_id)
    return _tell_verdict(url, run_id)


def _tell_trace(url: str, run_id: str) -> None:
    with redis.Redis.from_url(url) as store:
        trace = shown_trace(InvocationReader(store), run_id) or {"entries": []}
    for entry in trace["entries"]:
        print(f"{entry['tool']} on {entry['topic']}: {entry['output_summary']}")
        if entry["excerpt"]:
            print(f"    {entry['level']}: {entry['excerpt']}")
        for gap in entry["gaps"]:
            print(f"    gap: {gap['reason']}")
    print(json.dumps(trace.get("session_counts")))


def _tell_verdict(url: str, run_id: str) -> int:
    verdicts: list[Envelope] = []

    def on_result(envelope: Envelope) -> None:
        if envelope.subject == run_id:
            verdicts.append(envelope)

    consumer = ResultConsumer(url, name=f"example-{uuid4()}")
    try:
        for _ in range(int(PATIENCE)):
            consumer.consume(on_result, timeout=1)
            if verdicts:
                break
    finally:
        consumer.close()
    if not verdicts:
        print("no verdict came", file=sys.stderr)
        return 1
    print(verdicts[0].type)
    print(json.dumps(verdicts[0].data, indent=1, ensure_ascii=False))
    return 0


@contextmanager
def _stage(url: str | None, logs: Path) -> Iterator[str]:
    """The Redis of a running stage, or of one that is started here."""
    if url is not None:
        yield url
        return
    with RedisServer() as server, JudgeServer() as judge:
        environment = {
            "REDIS_URL": server.url,
            "RELEASE_BROKER_URL": server.broker_url,
            "OPENAI_BASE_URL": judge.base_url,
            "OPENAI_API_KEY": "none",
        }
        with start_worker("example", environment, logs, concurrency=1):
            yield server.url


if __name__ == "__main__":
    sys.exit(main())
