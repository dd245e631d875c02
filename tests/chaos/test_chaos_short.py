"""A short chaos on Redis: the same house, agents and fire as ``make chaos``, for half a minute."""

import random
from pathlib import Path

import pytest

from tests.chaos.chaos import Options, chaos


@pytest.mark.timeout(300)
@pytest.mark.scenario("promise", "Everything dies at random")
@pytest.mark.scenario("promise", "Producers that try again")
@pytest.mark.scenario("promise", "Cancels among the deaths")
@pytest.mark.scenario("promise", "Bad drafts among the deaths")
@pytest.mark.scenario("promise", "Bad claims among the deaths")
def test_each_run_ends_once_while_everything_is_killed(tmp_path: Path) -> None:
    """None is lost or told two ways, none is released after its cancel or against what it says."""
    seed = random.randrange(1_000_000)
    outcome = chaos(Options("redis", runs=120, seconds=12.0, seed=seed, pause=1.2, logs=tmp_path))
    print(outcome.report())
    assert outcome.kept, f"seed {seed}:\n{outcome.report()}"
    assert outcome.faults.keys() >= {"child", "worker", "relay", "redis"}
    assert outcome.verdict.runs == 120
    assert outcome.asked, "no claims came to ask for evidence"
