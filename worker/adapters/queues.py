"""The queues and the exchange by name, for worker and client."""

from kombu import Exchange, Queue

DRAFTS = Queue("release.drafts", durable=True)
CONTROL = Queue("release.control", durable=True)
DEAD = Queue("release.dead", durable=True)
EVENTS = Exchange("release.events", type="topic", durable=True)
RESULTS = Queue("release.results", exchange=EVENTS, routing_key="#", durable=True)
TASKS = Queue("release.tasks", durable=True)
"""Where the steps of all runs wait for a worker."""
