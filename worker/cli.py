"""What a person types: ``release-stage demo | relay | show | import | cancel | ...``."""

import argparse
import json
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from os import getpid
from pathlib import Path
from threading import Event

import redis
from pydantic import TypeAdapter, ValidationError

from contracts.base import RunId, Timestamp
from contracts.messages import DraftReady
from contracts.strict_json import StrictJsonError
from worker.adapters.dead_letters import DeadLetters
from worker.adapters.keys import Keys
from worker.adapters.redis_lease import RedisLease
from worker.app import examine_store, settings, stage, tools
from worker.client import InvocationReader, InvocationWriter, StageClient, TooLarge
from worker.client.importing import (
    FORMATS,
    KINDS,
    UnreadableFile,
    WrongToolKind,
    draft_ready,
    read_file,
    read_text,
    store,
    tools_of,
)
from worker.client.showing import shown_trace
from worker.client.transcripts import TranscriptError
from worker.offline.demo import run_demo
from worker.offline.judge import main as serve_judge
from worker.ports import StoreUnavailable
from worker.relay import LEASE, run_relay
from worker.run.events import Answer
from worker.settings import WrongSettings, table
from worker.stage.cancel import cancel
from worker.stage.show import show

log = logging.getLogger("release_stage")

_RUN_ID: TypeAdapter[str] = TypeAdapter(RunId)
_TIMESTAMP: TypeAdapter[datetime] = TypeAdapter(Timestamp)
_INTERRUPTED = 130
"""The exit code by which a shell knows Ctrl-C."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 found wanting, 2 wrong use."""
    chosen = _parser().parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except WrongSettings as error:
        return _complain(str(error), 2)
    except StoreUnavailable as error:
        return _complain(f"Redis at REDIS_URL does not answer ({error})", 1)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="release-stage")
    commands = parser.add_subparsers(required=True, metavar="command")

    demo = commands.add_parser("demo", help="recorded incidents through real workers")
    demo.add_argument("--directory", type=Path, default=Path("build/demo"))
    demo.set_defaults(run=_demo)

    relay = commands.add_parser("relay", help="send what is unsent, look after what stands still")
    relay.set_defaults(run=_relay)

    shown = commands.add_parser("show", help="print a run's record, reasons included")
    shown.add_argument("run_id", type=_run_id)
    shown.set_defaults(run=_show)

    imported = commands.add_parser("import", help="store what an agent recorded, in its format")
    imported.add_argument("file", type=Path)
    imported.add_argument("--format", choices=FORMATS, required=True)
    imported.add_argument("--run-id", type=_run_id, required=True)
    imported.add_argument("--session-id", help="the run's id without it")
    imported.add_argument("--began-at", type=_moment, help="RFC 3339; the file's time without it")
    imported.add_argument("--query", default="", help="the question; the file's own without it")
    imported.add_argument("--tool", action="append", default=[], help=KINDS)
    imported.add_argument("--draft", type=Path, help="a file with the draft's JSON")
    imported.add_argument("--submit", action="store_true", help="submit the draft")
    imported.set_defaults(run=_import)

    cancelled = commands.add_parser("cancel", help="end a run without a release")
    cancelled.add_argument("run_id", type=_run_id)
    cancelled.set_defaults(run=_cancel)

    dead = commands.add_parser("dead", help="list the messages that could not be admitted")
    dead.add_argument("--put-back", action="store_true", help="send them to their queues again")
    dead.add_argument("--limit", type=int, default=100)
    dead.set_defaults(run=_dead)

    listed = commands.add_parser("settings", help="print every setting and its default")
    listed.set_defaults(run=_settings)

    judge = commands.add_parser("judge", help="the rule-based judge, for development")
    judge.add_argument("--port", type=int, default=8901)
    judge.set_defaults(run=_judge)
    return parser


def _demo(chosen: argparse.Namespace) -> int:
    return run_demo(chosen.directory)


def _relay(_: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    for shortfall in examine_store():
        log.warning(shortfall)
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    keys = Keys(settings().key_prefix)
    holder = f"{socket.gethostname()}:{getpid()}"
    lease = RedisLease(redis.Redis.from_url(settings().redis_url), keys.relay_lease, holder, LEASE)
    run_relay(stage(), lease, stop, settings().relay_interval)
    return 0


def _show(chosen: argparse.Namespace) -> int:
    evaluation = show(stage().records, settings().policy(), chosen.run_id)
    with _store() as client:
        trace = shown_trace(InvocationReader(client, prefix=settings().key_prefix), chosen.run_id)
    if evaluation is None and trace is None:
        return _complain(f"there is no run {chosen.run_id}", 1)
    told = (evaluation or {}) | ({"trace": trace} if trace else {})
    _print(json.dumps(told, indent=2, ensure_ascii=False))
    return 0


def _import(chosen: argparse.Namespace) -> int:
    run_id, session_id = chosen.run_id, chosen.session_id or chosen.run_id
    if chosen.submit and chosen.draft is None:
        return _complain("--submit needs --draft", 2)
    try:
        transcript = read_file(
            chosen.file,
            chosen.format,
            run_id=run_id,
            session_id=session_id,
            query=chosen.query,
            began_at=chosen.began_at,
            tools=tools_of(chosen.tool, tools()),
        )
        draft = read_text(chosen.draft) if chosen.draft else ""
    except WrongToolKind as error:
        return _complain(f"--tool is {error}", 2)
    except UnreadableFile as error:
        return _complain(str(error), 1)
    except TranscriptError as error:
        return _complain(f"{chosen.file}: reading stopped: {error}; nothing is stored", 1)
    with _store() as client:
        writer = InvocationWriter(client, prefix=settings().key_prefix, keep=settings().retention)
        stored = store(transcript, writer, run_id, session_id)
        told = InvocationReader(client, prefix=settings().key_prefix)
        trace = shown_trace(told, run_id) or {}
    told_of = {"run_id": run_id, **asdict(stored), "session_counts": trace.get("session_counts")}
    if chosen.submit:
        message = draft_ready(
            transcript, draft, run_id=run_id, session_id=session_id, query=chosen.query
        )
        try:
            told_of["message_id"] = _submit(message)
        except (TooLarge, StrictJsonError) as error:
            return _complain(f"the draft cannot be submitted: {error}; the records are stored", 1)
    _print(json.dumps(told_of, indent=2, ensure_ascii=False))
    if stored.refused:
        return _complain("other records of these calls are final; those stand", 1)
    return 0


def _submit(message: DraftReady) -> str:
    client = StageClient(settings().redis_url, settings().broker(), prefix=settings().key_prefix)
    try:
        return client.submit_draft(message)
    except redis.RedisError as error:
        raise StoreUnavailable(type(error).__name__) from None
    finally:
        client.close()


@contextmanager
def _store() -> Iterator[redis.Redis]:
    """The stage's Redis, with its own errors told like those of the stage."""
    client = redis.Redis.from_url(settings().redis_url)
    try:
        yield client
    except redis.RedisError as error:
        raise StoreUnavailable(type(error).__name__) from None
    finally:
        client.close()


def _cancel(chosen: argparse.Namespace) -> int:
    run_id = chosen.run_id
    report = cancel(stage(), run_id)
    match report.answer:
        case Answer.ENDED:
            print(f"run {run_id} is cancelled")
        case Answer.MARKED:
            print(f"nothing of run {run_id} has come yet; its draft will be aborted when it comes")
        case _:
            print(f"run {run_id} had ended before: {report.code}; nothing is changed")
    return 0


def _dead(chosen: argparse.Namespace) -> int:
    letters = DeadLetters(settings().broker())
    found = letters.put_back(chosen.limit) if chosen.put_back else letters.look(chosen.limit)
    for letter in found:
        _print(f"{letter.reason} from {letter.origin or 'a queue'}, {letter.size} bytes")
    _print(f"{len(found)} dead letters" + (" put back" if chosen.put_back else ""))
    return 0


def _settings(_: argparse.Namespace) -> int:
    _print(table())
    return 0


def _judge(chosen: argparse.Namespace) -> int:
    try:
        return serve_judge(["--port", str(chosen.port)])
    except (OSError, OverflowError) as error:
        return _complain(f"the judge cannot listen on port {chosen.port}: {error}", 1)


def _run_id(text: str) -> str:
    try:
        return _RUN_ID.validate_python(text)
    except ValidationError:
        # Its mark could never meet a draft: admission refuses such an id.
        raise argparse.ArgumentTypeError(
            "a run id has 1 to 128 letters, digits, dots, hyphens and underscores, "
            "a letter or digit first"
        ) from None


def _moment(text: str) -> datetime:
    try:
        return _TIMESTAMP.validate_python(text)
    except ValidationError:
        raise argparse.ArgumentTypeError("a time looks like 2026-01-31T12:00:00Z") from None


def _print(text: str) -> None:
    """Print what a person may pipe into ``head``, which closes the pipe early."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    print(text)


def _complain(sentence: str, code: int) -> int:
    print(f"release-stage: {sentence}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
