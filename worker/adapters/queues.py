"""The queues and the exchange as kombu declares them, for worker and client."""

from kombu import Exchange, Queue

from contracts import channels

DRAFTS = Queue(channels.DRAFTS, durable=True)
CONTROL = Queue(channels.CONTROL, durable=True)
DEAD = Queue(channels.DEAD, durable=True)
EVENTS = Exchange(channels.EVENTS, type="topic", durable=True)
RESULTS = Queue(channels.RESULTS, exchange=EVENTS, routing_key="#", durable=True)
TASKS = Queue("release.tasks", durable=True)
"""Where the steps of all runs wait for a worker."""


def broker_url_of(redis_url: str) -> str:
    """The same Redis as kombu writes it: redis-py and kombu name unix sockets differently."""
    if not redis_url.startswith("unix://"):
        return redis_url
    path, _, query = redis_url.removeprefix("unix://").partition("?")
    return f"redis+socket://{path}?virtual_host={query.removeprefix('db=') or '0'}"
