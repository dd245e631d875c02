"""Names of the keys in Redis, in one place for worker and client."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Keys:
    """Agents write inbox, invocations and counts; workers write runs, index and outbox."""

    prefix: str = "release:"

    def run(self, run_id: str) -> str:
        """Hash: ``rev``, ``state`` (JSON of the Run) and one field per blob."""
        return f"{self.prefix}run:{run_id}"

    @property
    def open_runs(self) -> str:
        """Sorted set: run id by next due time."""
        return f"{self.prefix}open"

    @property
    def outbox(self) -> str:
        """Stream: one entry per message that is released and not yet known to be sent."""
        return f"{self.prefix}outbox"

    @property
    def outbox_failures(self) -> str:
        """Hash: failed tries by entry id."""
        return f"{self.prefix}outbox:failures"

    @property
    def inbox(self) -> str:
        """Sorted set: ids of the messages in the inbox by the time they were written."""
        return f"{self.prefix}inbox"

    def inbox_entry(self, message_id: str) -> str:
        """String: a message as its client published it, by the message's id."""
        return f"{self.prefix}inbox:{message_id}"

    def invocations(self, run_id: str) -> str:
        """Hash: InvocationRecord JSON by tool call id."""
        return f"{self.prefix}invocations:{run_id}"

    def counts(self, session_id: str) -> str:
        """Hash: ``run:<run id>``, ``model_steps:<run id>`` and ``helper_calls:<run id>``."""
        return f"{self.prefix}counts:{session_id}"

    def raw_responses(self, run_id: str) -> str:
        """Hash: raw tool responses by tool call id. No guard reads it."""
        return f"{self.prefix}raw:{run_id}"

    @property
    def closed_calls(self) -> str:
        """Channel: ids of runs whose model calls must close now."""
        return f"{self.prefix}close"

    @property
    def closed_runs(self) -> str:
        """Sorted set: the same ids by the time of their ending, for an hour."""
        return f"{self.prefix}closed"

    @property
    def relay_lease(self) -> str:
        """String: the name of the active relay, with an expiry."""
        return f"{self.prefix}relay"

    def seen(self, consumer: str, message_id: str) -> str:
        """String: a result message that this consumer has handled."""
        return f"{self.prefix}seen:{consumer}:{message_id}"
