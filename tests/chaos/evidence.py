"""The agents that are asked for evidence: some answer in time, some too late, some never."""

import time
from collections.abc import Iterable
from contextlib import suppress
from threading import Event, Thread

from contracts import channels
from contracts.envelope import Envelope
from tests.chaos.house import House
from tests.chaos.plan import Plan
from tests.chaos.producers import AGAIN, AWAY, Producer
from worker.client import ResultConsumer, StageClient


class EvidenceAgents(Thread):
    """Reads the requests for evidence until it is stopped, and answers as it is planned.

    A reader of a Redis broker may lose a request; then its run goes on without an answer.
    """

    def __init__(self, house: House, producer: Producer, plans: Iterable[Plan]) -> None:
        super().__init__(name="evidence", daemon=True)
        self.asked: set[str] = set()
        self.answered: set[str] = set()
        self.error: BaseException | None = None
        self._house = house
        self._say = producer
        self._plans = {plan.run_id: plan for plan in plans}
        self._due: list[tuple[float, Plan]] = []
        self._stopped = Event()

    def run(self) -> None:
        client = StageClient(self._house.store.url, self._house.broker_url)
        reader = ResultConsumer(
            self._house.store.url,
            self._house.broker_url,
            name="chaos",
            reply_to=channels.REQUESTS,
        )
        try:
            while not self._stopped.is_set():
                try:
                    reader.consume(self._note, timeout=AGAIN)
                except AWAY:
                    self._stopped.wait(AGAIN)
                self._answer_due(client)
        except BaseException as error:  # noqa: BLE001 - raised again where it is stopped
            self.error = error
        finally:
            with suppress(*AWAY):
                reader.close()
            client.close()

    def stop(self) -> None:
        """Read and answer no more; raises what reading or answering raised."""
        self._stopped.set()
        self.join()
        if self.error is not None:
            raise self.error

    def _note(self, request: Envelope) -> None:
        plan = self._plans[request.subject]
        self.asked.add(plan.run_id)
        if plan.kind.evidence is not None:
            self._due.append((time.monotonic() + plan.evidence_after, plan))

    def _answer_due(self, client: StageClient) -> None:
        now = time.monotonic()
        due = [plan for moment, plan in self._due if moment <= now]
        self._due = [one for one in self._due if one[0] > now]
        for plan in due:
            self._answer(plan, client)

    def _answer(self, plan: Plan, client: StageClient) -> None:
        message = plan.evidence()
        assert message is not None
        self._say.insist(lambda: self._say.submit(message, plan.way, client))
        self.answered.add(plan.run_id)
