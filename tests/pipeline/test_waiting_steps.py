"""How many steps wait for a worker, asked of each broker."""

import pytest

from tests.pipeline.harness import CHECK, LocalStage, new_run_id
from worker.offline.rabbitmq_server import RabbitServer
from worker.ports import SendFailed


def test_waiting_steps_are_counted_as_long_as_the_broker_answers(
    breakable: LocalStage, request: pytest.FixtureRequest
) -> None:
    """None at first, then those that were sent; a broker that is away says so at once."""
    assert breakable.dispatcher.waiting() == 0
    for _ in range(3):
        breakable.deliver(new_run_id(), CHECK)
    breakable.wait_for(lambda: breakable.dispatcher.waiting() == 3, "three steps")
    if not breakable.broker.is_rabbitmq:
        breakable.redis_server.kill()
        with pytest.raises(SendFailed):
            breakable.dispatcher.waiting()
        return
    server: RabbitServer = request.getfixturevalue("rabbit")
    server.kill()
    try:
        with pytest.raises(SendFailed):
            breakable.dispatcher.waiting()
    finally:
        server.start()
