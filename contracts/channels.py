"""The names of the queues that the release stage and its neighbours share."""

DRAFTS = "release.drafts"
"""Agents write ``DraftReady`` and ``ExecutorOutputReady`` here."""

CONTROL = "release.control"
"""``CancelRun``, in a queue of its own, so that it never waits behind drafts."""

EVENTS = "release.events"
"""The exchange that every ending is published to; ``RESULTS`` is bound to it."""

RESULTS = "release.results"
"""The durable queue of endings."""

REQUESTS = "release.requests"
"""``EvidenceRequested``, unless the run named a reply queue."""

SHADOW = "release.shadow"
"""Where the endings of a stage go that only watches."""

DEAD = "release.dead"
"""What could not be read or was refused, as it came."""

REPLY_PREFIX = "release.reply."
"""A sender's own queue begins so; see ``contracts.base.ReplyTo``."""
