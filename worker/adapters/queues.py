"""The queues and the exchange by name, for worker and client."""

from kombu import Exchange, Queue

DRAFTS = Queue("release.drafts", durable=True)
CONTROL = Queue("release.control", durable=True)
DEAD = Queue("release.dead", durable=True)
EVENTS = Exchange("release.events", type="topic", durable=True)
RESULTS = Queue("release.results", exchange=EVENTS, routing_key="#", durable=True)
TASKS = Queue("release.tasks", durable=True)
"""Where the steps of all runs wait for a worker."""


def broker_url_of(redis_url: str) -> str:
    """The same Redis as kombu writes it: redis-py and kombu name unix sockets differently."""
    if not redis_url.startswith("unix://"):
        return redis_url
    path, _, query = redis_url.removeprefix("unix://").partition("?")
    return f"redis+socket://{path}?virtual_host={query.removeprefix('db=') or '0'}"
