"""Settings: defaults that hold together, and a sentence for each wrong one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from worker.run.steps import Step
from worker.settings import Settings, WrongSettings, read_settings, table, variable

SECRET = "zz-value-zz"

Environment = dict[str, str]


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in Settings.model_fields:
        monkeypatch.delenv(variable(field), raising=False)


def refusal(monkeypatch: pytest.MonkeyPatch, environment: Environment) -> str:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(WrongSettings) as raised:
        read_settings()
    assert raised.value.__suppress_context__, "no traceback may quote what was set"
    return str(raised.value)


@pytest.mark.scenario("settings", "Defaults hold together")
def test_defaults_are_valid_and_reach_the_stage() -> None:
    """Every limit of the policy and the stage is the setting of its name."""
    chosen = read_settings()
    policy, limits = chosen.policy(), chosen.limits()
    same = {
        "attempt_timeout", "soft_margin", "hard_margin", "review_total_timeout", "lease_margin",
        "light_soft_limit", "light_hard_limit", "resend_first", "resend_max",
    }  # fmt: skip
    assert all(getattr(policy, name) == getattr(chosen, name) for name in same)
    same = {name for name in Settings.model_fields if hasattr(limits, name)}
    assert same >= {"message_bytes", "review_input_bytes", "repair_output_tokens"}
    assert all(getattr(limits, name) == getattr(chosen, name) for name in same)
    for step in Step:
        assert policy.soft_limit(step) < policy.hard_limit(step) < policy.lease(step)
        assert policy.lease(step) < chosen.visibility_timeout
    assert chosen.attempt_timeout < policy.soft_limit(Step.REVIEW_SEMANTICS)
    assert chosen.longest_deadline < chosen.retention


def test_each_setting_is_read_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The three that other tools name too have no prefix."""
    values = {
        "REDIS_URL": "unix:///run/redis.sock",
        "OPENAI_BASE_URL": "https://judge.example/v1",
        "OPENAI_API_KEY": SECRET,
        "RELEASE_MODEL": "judge",
        "RELEASE_ATTEMPT_TIMEOUT": "20.5",
        "RELEASE_EVIDENCE_REPAIR": "false",
        "RELEASE_LOCALE": "zh-CN",
        "RELEASE_RESPONSE_FORMAT": "none",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    chosen = read_settings()
    assert chosen.broker() == "redis+socket:///run/redis.sock?virtual_host=0"
    assert chosen.openai_base_url == "https://judge.example/v1"
    assert chosen.openai_api_key.get_secret_value() == SECRET
    assert SECRET not in repr(chosen)
    assert (chosen.model, chosen.attempt_timeout) == ("judge", 20.5)
    assert (chosen.locale, chosen.response_format) == ("zh-CN", "none")
    assert chosen.policy().repair_attempts == 0


SECONDS = [
    "ATTEMPT_TIMEOUT", "REVIEW_TOTAL_TIMEOUT", "SOFT_MARGIN", "HARD_MARGIN", "LEASE_MARGIN",
    "LIGHT_SOFT_LIMIT", "LIGHT_HARD_LIMIT", "RESEND_FIRST", "RESEND_MAX", "VISIBILITY_TIMEOUT",
    "DEFAULT_DEADLINE", "LONGEST_DEADLINE", "RELAY_INTERVAL", "EVIDENCE_RESERVE",
    "STOP_TIMEOUT",
]  # fmt: skip
WHOLE = [
    "RETENTION", "MESSAGE_BYTES", "REVIEW_INPUT_BYTES", "REVIEW_OUTPUT_BYTES",
    "REVIEW_OUTPUT_TOKENS", "VERIFIER_OUTPUT_BYTES", "VERIFIER_OUTPUT_TOKENS",
    "REPAIR_INPUT_BYTES", "REPAIR_OUTPUT_BYTES", "REPAIR_OUTPUT_TOKENS",
]  # fmt: skip
OUT_OF_RANGE = [
    *((f"RELEASE_{name}", "soon", "must be a number") for name in SECONDS),
    *((f"RELEASE_{name}", "inf", "must be a number") for name in SECONDS),
    *((f"RELEASE_{name}", "0", "must be above 0") for name in (*SECONDS, *WHOLE)),
    *((f"RELEASE_{name}", "-1", "must be above 0") for name in (*SECONDS, *WHOLE)),
    *((f"RELEASE_{name}", "1.5", "must be a whole number") for name in WHOLE),
    *((f"RELEASE_{name}", "", "must be a whole number") for name in WHOLE),
    ("RELEASE_REDIS_CONNECTIONS", "3", "must be 4 or more"),
    ("RELEASE_EVIDENCE_REPAIR", "maybe", "must be true or false"),
    ("RELEASE_REASONING_MODEL", "o1", "must be true or false"),
    ("RELEASE_SHADOW", "2", "must be true or false"),
    ("RELEASE_LOCALE", "fr", "must be 'en' or 'zh-CN'"),
    ("RELEASE_RESPONSE_FORMAT", "xml", "must be 'json_schema', 'json_object' or 'none'"),
    ("RELEASE_KEY_PREFIX", "", "must not be empty"),
    ("RELEASE_KEY_PREFIX", "x" * 65, "must have 64 characters at most"),
    ("RELEASE_MODEL", "", "must not be empty"),
]


@pytest.mark.parametrize(("name", "value", "wanted"), OUT_OF_RANGE)
@pytest.mark.scenario("settings", "A value out of its range")
def test_a_value_out_of_its_range_is_named_with_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, wanted: str
) -> None:
    """One variable, one sentence."""
    assert refusal(monkeypatch, {name: value}) == f"{name} {wanted}"


VISIBILITY = "RELEASE_VISIBILITY_TIMEOUT must be above the longest hard limit with its lease margin"
CONTRADICTIONS: list[tuple[Environment, str]] = [
    ({"RELEASE_SOFT_MARGIN": "5"}, "RELEASE_SOFT_MARGIN must be below RELEASE_HARD_MARGIN"),
    (
        {"RELEASE_LIGHT_SOFT_LIMIT": "35"},
        "RELEASE_LIGHT_SOFT_LIMIT must be below RELEASE_LIGHT_HARD_LIMIT",
    ),
    (
        {"RELEASE_REVIEW_TOTAL_TIMEOUT": "59"},
        "RELEASE_REVIEW_TOTAL_TIMEOUT must not be below RELEASE_ATTEMPT_TIMEOUT",
    ),
    (
        {"RELEASE_VISIBILITY_TIMEOUT": "70"},
        f"{VISIBILITY} (70 s)",
    ),
    (
        {"RELEASE_LIGHT_HARD_LIMIT": "295"},
        f"{VISIBILITY} (300 s)",
    ),
    (
        {"RELEASE_DEFAULT_DEADLINE": "21601"},
        "RELEASE_DEFAULT_DEADLINE must not be above RELEASE_LONGEST_DEADLINE",
    ),
    (
        {"RELEASE_EVIDENCE_RESERVE": "900"},
        "RELEASE_EVIDENCE_RESERVE must be below RELEASE_DEFAULT_DEADLINE",
    ),
    ({"RELEASE_RETENTION": "21600"}, "RELEASE_RETENTION must be above RELEASE_LONGEST_DEADLINE"),
    ({"RELEASE_RESEND_FIRST": "901"}, "RELEASE_RESEND_FIRST must not be above RELEASE_RESEND_MAX"),
]


@pytest.mark.parametrize(("environment", "sentence"), CONTRADICTIONS)
@pytest.mark.scenario("settings", "Settings that contradict each other")
def test_settings_that_contradict_each_other_are_refused(
    monkeypatch: pytest.MonkeyPatch, environment: Environment, sentence: str
) -> None:
    """The sentence names the one to change and the one it stands against."""
    told = refusal(monkeypatch, environment)
    assert told.startswith(sentence)
    assert ";" not in told, "nothing else is wrong"


def test_all_that_is_wrong_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody should have to start a worker once for each mistake."""
    told = refusal(monkeypatch, {"RELEASE_RETENTION": "1", "RELEASE_RESEND_MAX": "1"})
    assert "RELEASE_RETENTION must" in told
    assert "RELEASE_RESEND_FIRST must" in told
    told = refusal(monkeypatch, {"RELEASE_LOCALE": "fr", "RELEASE_MODEL": ""})
    assert told == "RELEASE_MODEL must not be empty; RELEASE_LOCALE must be 'en' or 'zh-CN'"


ADDRESSES = [
    ("REDIS_URL", SECRET),
    ("REDIS_URL", f"http://{SECRET}"),
    ("REDIS_URL", f"redis://:{SECRET}@"),
    ("REDIS_URL", f"redis://host:{SECRET}/0"),
    ("REDIS_URL", "unix://"),
    ("RELEASE_BROKER_URL", f"memory://{SECRET}"),
    ("RELEASE_BROKER_URL", f"amqp://{SECRET}@"),
    ("OPENAI_BASE_URL", f"{SECRET}.example"),
    ("OPENAI_BASE_URL", f"ftp://{SECRET}"),
    ("OPENAI_BASE_URL", f"https://[{SECRET}"),
    ("OPENAI_API_KEY", f"{SECRET}\n"),
    ("OPENAI_API_KEY", f"{SECRET}\u00e9"),
]


@pytest.mark.parametrize(("name", "value"), ADDRESSES)
@pytest.mark.scenario("settings", "No secret in a refusal")
def test_an_address_or_a_key_that_cannot_work_is_refused_unquoted(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """Passwords stand in addresses, so a sentence holds no part of them."""
    told = refusal(monkeypatch, {name: value})
    assert told.startswith(f"{name} must be ")
    assert SECRET not in told


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_URL", "rediss://user:word@redis.example:6380/3"),
        ("REDIS_URL", "redis://[::1]:6379/0"),
        ("RELEASE_BROKER_URL", "amqp://guest:guest@rabbit.example:5672//"),
        ("RELEASE_BROKER_URL", "redis+socket:///run/redis.sock?virtual_host=0"),
        ("RELEASE_BROKER_URL", ""),
        ("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1"),
        ("OPENAI_API_KEY", ""),
    ],
)
def test_addresses_that_can_work_are_taken(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """Both stores, both brokers, any host."""
    monkeypatch.setenv(name, value)
    read_settings()


def test_every_setting_has_a_wrong_value_above() -> None:
    """Who adds a setting says here what is refused."""
    tried = {name for name, *_ in (*OUT_OF_RANGE, *ADDRESSES)}
    assert {variable(field) for field in Settings.model_fields} == tried


WORKER = ["-m", "celery", "-A", "worker.app", "worker", "--pool", "solo"]
RELAY = ["-m", "worker.cli", "relay"]


@pytest.mark.parametrize(
    ("command", "name", "value", "sentence"),
    [
        (WORKER, "RELEASE_ATTEMPT_TIMEOUT", SECRET, "RELEASE_ATTEMPT_TIMEOUT must be a number"),
        (WORKER, "OPENAI_BASE_URL", SECRET, "OPENAI_BASE_URL must be an http:// or https://"),
        (RELAY, "RELEASE_SOFT_MARGIN", "9", "RELEASE_SOFT_MARGIN must be below RELEASE_HARD"),
    ],
    ids=["worker, range", "worker, address", "relay, contradiction"],
)
@pytest.mark.scenario("settings", "A worker that does not start")
def test_a_process_with_a_wrong_setting_stops_with_a_sentence(
    tmp_path: Path, command: list[str], name: str, value: str, sentence: str
) -> None:
    """It exits at once with an error, and what it prints is the sentence alone."""
    environment = {
        **os.environ,
        "REDIS_URL": f"unix://{tmp_path}/nobody.sock",
        name: value,
    }
    ended = subprocess.run(
        [sys.executable, *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode != 0
    said = (ended.stdout + ended.stderr).strip()
    assert said.startswith(f"release-stage: {sentence}")
    assert "\n" not in said
    assert SECRET not in said


def test_the_readme_shows_every_setting() -> None:
    """The table in the README is the one that ``release-stage settings`` prints."""
    readme = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    shown = readme.partition("<!-- settings -->\n")[2].partition("\n<!-- /settings -->")[0]
    assert shown == table()
