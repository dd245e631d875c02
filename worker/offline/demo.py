"""``make demo``: recorded incidents through real workers, and what each reader would get.

Starts Redis, the rule-based judge, a worker with two processes and a relay,
publishes every recorded draft and document of claims, answers what is asked for about
the latter, and stops all of it again. With DEMO_EXTERNAL=1 it
uses REDIS_URL and OPENAI_BASE_URL instead of servers of its own; then only the
endings that do not hang on the judge are compared.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import redis

from contracts import channels
from contracts.envelope import Envelope
from contracts.strict_json import canonical
from worker.adapters.keys import Keys
from worker.adapters.redis_records import RedisRecords
from worker.claims.evaluation import CHANNEL
from worker.client import InvocationWriter, ResultConsumer, StageClient
from worker.offline.incidents import ClaimsCase, DraftCase, Ending, Incident, JudgeNeed, load
from worker.offline.judge import JudgeServer
from worker.offline.judge_rules import NOTICE
from worker.offline.judge_script import hang, status
from worker.offline.processes import NotReady, start_relay, start_worker, wait_until
from worker.offline.redis_server import RedisServer
from worker.run.policy import Policy
from worker.stage.show import show

PATIENCE = 90.0
_REPORT_TYPES = ("ReleaseSucceeded", "ReleaseFallback", "ReleaseAborted")


@dataclass(frozen=True)
class Started:
    """One published draft, or one document of claims."""

    incident: Incident
    case: DraftCase | ClaimsCase
    run_id: str
    expected: Ending

    @property
    def session_id(self) -> str:
        return f"demo-{self.incident.name}"


@dataclass(frozen=True)
class Servers:
    redis_url: str
    judge: JudgeServer | None
    environment: dict[str, str]


def run_demo(directory: Path) -> int:
    """Run everything that is recorded; returns 0 if each run ended as expected, else 1."""
    directory.mkdir(parents=True, exist_ok=True)
    results: dict[str, Envelope] = {}
    with _servers() as servers, ExitStack() as stack:
        stack.enter_context(start_worker("worker", servers.environment, directory, concurrency=2))
        stack.enter_context(start_relay("relay", servers.environment, directory))
        print(f"worker and relay are up, their logs are in {directory}/")
        client = StageClient(servers.redis_url)
        stack.callback(client.close)
        store = redis.Redis.from_url(servers.redis_url)
        writer = InvocationWriter(store)
        started = _publish_all(client, writer, servers)
        name = f"demo-{uuid4()}"
        consumer = ResultConsumer(servers.redis_url, name=name)
        stack.callback(consumer.close)
        requests = ResultConsumer(servers.redis_url, name=name, reply_to=channels.REQUESTS)
        stack.callback(requests.close)
        waiting = {one.run_id: one for one in started}
        wrong = 0
        records = RedisRecords(store, Keys(), retention=1)

        def on_request(envelope: Envelope) -> None:
            one = waiting.get(envelope.subject)
            if one is not None:
                _answer(client, writer, one, envelope)

        def on_result(envelope: Envelope) -> None:
            nonlocal wrong
            one = waiting.pop(envelope.subject, None)
            if one is not None:
                results[envelope.subject] = envelope
                wrong += not _report(one, envelope, show(records, Policy(), one.run_id) or {})

        def all_ended() -> bool:
            requests.consume(on_request, timeout=0.1)
            consumer.consume(on_result, timeout=0.1)
            return not waiting

        try:
            wait_until(all_ended, PATIENCE, "all endings")
        except NotReady as error:
            print(f"demo: {error}; missing: {', '.join(one.case.name for one in waiting.values())}")
            wrong += len(waiting)
    _write(directory / "results.jsonl", results)
    kinds = Counter(envelope.type.split(".")[1] for envelope in results.values())
    succeeded, fallback, aborted = (kinds[name] for name in _REPORT_TYPES)
    print(f"\n{wrong} of {len(started)} runs ended otherwise than expected" if wrong else "")
    print(
        f"demo: {len(started)} runs, {succeeded} succeeded, {fallback} fallback, {aborted} aborted"
    )
    return 1 if wrong else 0


@contextmanager
def _servers() -> Iterator[Servers]:
    if os.environ.get("DEMO_EXTERNAL") == "1":
        url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
        print(f"using {url.rpartition('@')[2]} and the judge of OPENAI_BASE_URL, as asked")
        yield Servers(url, None, {})
        return
    with RedisServer() as server, JudgeServer() as judge:
        print("a private Redis and the rule-based judge are up")
        print(NOTICE, file=sys.stderr)
        environment = {
            "REDIS_URL": server.url,
            "RELEASE_BROKER_URL": server.broker_url,
            "OPENAI_BASE_URL": judge.base_url,
            "OPENAI_API_KEY": "none",
        }
        yield Servers(server.url, judge, environment)


def _publish_all(client: StageClient, writer: InvocationWriter, servers: Servers) -> list[Started]:
    started = []
    for incident in load():
        print(f"\n{incident.title}")
        cases: tuple[DraftCase | ClaimsCase, ...] = (*incident.cases, *incident.claims)
        for case in cases:
            if case.judge is not JudgeNeed.RULES and servers.judge is None:
                continue
            one = _start(incident, case)
            _script(servers.judge, case)
            if isinstance(case, ClaimsCase):
                _publish_claims(client, writer, one, case)
            else:
                _publish(client, writer, servers.judge, one, case)
            started.append(one)
            print(f"  published {case.name}")
    print()
    return started


def _start(incident: Incident, case: DraftCase | ClaimsCase) -> Started:
    expected = case.expected if isinstance(case, ClaimsCase) else case.ending(repair=True)
    return Started(incident, case, f"{case.name}-{uuid4().hex[:8]}", expected)


def _script(judge: JudgeServer | None, case: DraftCase | ClaimsCase) -> None:
    if judge is not None and case.judge is JudgeNeed.DOWN:
        judge.add(status(503).on(case.query).always())
    if judge is not None and case.judge is JudgeNeed.SLOW:
        judge.add(hang().on(case.query).always())


def _publish(
    client: StageClient,
    writer: InvocationWriter,
    judge: JudgeServer | None,
    one: Started,
    case: DraftCase,
) -> None:
    for record in one.incident.records(case, one.run_id, one.session_id):
        writer.write(record)
    for record in one.incident.foreign_records(case, f"{one.run_id}-other", one.session_id):
        writer.write(record)
    client.submit_draft(one.incident.message(case, one.run_id, one.session_id, datetime.now(UTC)))
    if case.cancel:
        if judge is not None:
            judge.wait(lambda _: bool(judge.asked_about(case.query)), PATIENCE)
        client.cancel_run(one.run_id)


def _publish_claims(
    client: StageClient,
    writer: InvocationWriter,
    one: Started,
    case: ClaimsCase,
    *,
    round_: int = 0,
) -> None:
    late = round_ == 1
    for record in one.incident.claim_records(case, one.run_id, one.session_id, late=late):
        writer.write(record)
    client.submit_claims(
        one.incident.claims_message(case, one.run_id, one.session_id, round_=round_)
    )


def _answer(
    client: StageClient, writer: InvocationWriter, one: Started, envelope: Envelope
) -> None:
    """Do as an agent that is asked for evidence: look again, and hand in its claims anew."""
    data: dict[str, Any] = envelope.data
    for gap in data["gaps"]:
        print(f"{one.case.name}: evidence asked for, {gap['tool_name']}: {gap['missing']}")
    if isinstance(one.case, ClaimsCase):
        _publish_claims(client, writer, one, one.case, round_=1)


def _report(one: Started, envelope: Envelope, record: dict[str, Any]) -> bool:
    """Print one ending in words for a person; tells whether it was the expected one."""
    got = _ending(envelope)
    expected = one.expected
    print(f"{one.case.name}: {got.type} {got.code or ''}{' (repaired)' if got.repaired else ''}")
    for line in (*_why(record), *_stands(envelope)):
        print(f"    {line}")
    if got != expected:
        print(f"    EXPECTED {expected.type} {expected.code or ''} repaired={expected.repaired}")
    return got == expected


def _ending(envelope: Envelope) -> Ending:
    data: dict[str, Any] = envelope.data
    name = envelope.type.split(".")[1]
    code = data.get("reason") or data.get("fallback", {}).get("type")
    return Ending.model_validate_json(
        canonical({"type": name, "code": code, "repaired": data.get("repaired", False)})
    )


def _why(record: dict[str, Any]) -> Iterator[str]:
    for key, attempt in record.get("attempts", {}).items():
        _, step, number = key.split(".")
        for violation in attempt.get("violations", ())[:3]:
            yield f"check {number}: {violation['code']} at {violation['target']}"
        if step in ("review_semantics", "repair_evidence"):
            reason = attempt.get("reason", "")
            yield f"{step} {number}: {attempt.get('outcome', 'open')} {reason}".rstrip()
    evaluation = record.get("self_evaluation", {}).get(CHANNEL, {})
    for error in evaluation.get("gatekeeper_result", {}).get("errors", ())[:3]:
        yield f"gate: {error['rule']} {error['code']} at {error['target']}"
    if "verdict" in evaluation:
        yield f"verdict: {evaluation['verdict']} {evaluation['rationale']}"
    if evaluation.get("failure_reasons"):
        yield f"reasons: {', '.join(evaluation['failure_reasons'])}"


def _stands(envelope: Envelope) -> Iterator[str]:
    data: dict[str, Any] = envelope.data
    fallback = data.get("fallback", {})
    for fact in fallback.get("observed_facts", ())[:3]:
        yield f"observed: {fact}"
    sources = fallback.get("verified_sources", ())
    if sources:
        names = ", ".join(f"{source['tool']} in {source['source']}" for source in sources)
        yield f"looked at: {names}"
    answer = data.get("answer", {})
    for statement in (*answer.get("confirmed", ()), *answer.get("possible", ())):
        yield f"{statement['label'].lower()}: {statement['text']}"
    for missing in answer.get("gaps", ()):
        yield f"missing: {missing['text']}"
    if "draft" in data:
        yield f"released: {data['draft']['conclusion']['text']}"


def _write(path: Path, results: dict[str, Envelope]) -> None:
    lines = (envelope.model_dump_json(exclude_unset=True) for envelope in results.values())
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
