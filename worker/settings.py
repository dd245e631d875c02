"""All settings, from the environment. A wrong one stops the process with a sentence.

Each field's variable is its name in upper case with the prefix ``RELEASE_``,
except the three that other tools name too: REDIS_URL, OPENAI_BASE_URL and
OPENAI_API_KEY. The README has the table.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from contracts.fallback import Locale
from worker.adapters.queues import HOLD_SECONDS, broker_url_of, is_rabbitmq
from worker.run.policy import Policy
from worker.stage.engine import Limits

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Bytes = Annotated[int, Field(gt=0)]


_STORES = ("redis", "rediss", "unix")
_BROKERS = ("redis", "rediss", "redis+socket", "sentinel", "amqp", "amqps", "pyamqp")
_OWN_NAMES = ("redis_url", "openai_base_url", "openai_api_key")


class WrongSettings(Exception):
    """The environment does not describe a worker that could keep its promises."""


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="RELEASE_",
        frozen=True,
        hide_input_in_errors=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    redis_url: str = Field(
        "redis://127.0.0.1:6379/0", validation_alias=AliasChoices("redis_url", "REDIS_URL")
    )
    """Where records, outbox and inbox live. It must persist and must not evict."""
    broker_url: str = ""
    """The broker; empty for the Redis of REDIS_URL, `amqp://…` for a RabbitMQ."""
    key_prefix: str = Field("release:", min_length=1, max_length=64)
    """What the names of all keys in Redis begin with."""
    retention: int = Field(604_800, gt=0)
    """Seconds that the record of an ended run is kept."""
    redis_connections: int = Field(64, ge=4)
    """Connections to Redis that one process may open; at least twice its concurrency."""

    openai_base_url: str = Field(
        "https://api.openai.com/v1",
        validation_alias=AliasChoices("openai_base_url", "OPENAI_BASE_URL"),
    )
    """The OpenAI-compatible endpoint of the judge, up to `/v1`."""
    openai_api_key: SecretStr = Field(
        SecretStr(""), validation_alias=AliasChoices("openai_api_key", "OPENAI_API_KEY")
    )
    """Its key; may be empty for a server that asks for none."""
    model: str = Field("gpt-4.1-mini", min_length=1)
    """The judge's name at that endpoint."""
    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    """How the answer's form is asked for; servers differ. The local check is the same."""
    reasoning_model: bool = False
    """Send `max_completion_tokens` and no temperature, as reasoning models demand."""

    attempt_timeout: Seconds = 60.0
    """Seconds for one model call, connecting and reading included."""
    review_total_timeout: Seconds = 100.0
    """Seconds for all attempts of one review or verification; queueing does not count."""
    soft_margin: Seconds = 2.0
    """Seconds behind the attempt timeout at which Celery interrupts what the call missed."""
    hard_margin: Seconds = 5.0
    """The same for killing the process."""
    lease_margin: Seconds = 5.0
    """Seconds behind the hard limit at which an attempt counts as lost."""
    light_soft_limit: Seconds = 30.0
    """Seconds for a step that asks no model, before it is interrupted."""
    light_hard_limit: Seconds = 35.0
    """The same before its process is killed."""
    evidence_repair: bool = True
    """Let a model mend broken references once."""
    evidence_reserve: Seconds = 30.0
    """A claims run stops waiting for more evidence so many seconds before its deadline."""
    resend_first: Seconds = 60.0
    """Seconds after which a step that nobody has started is sent again; then doubling."""
    resend_max: Seconds = 900.0
    """The longest such wait."""
    visibility_timeout: Seconds = 300.0
    """Seconds after which a Redis broker gives an unacknowledged message to another worker."""
    stop_timeout: Seconds = 30.0
    """Seconds that a stopped worker waits for running steps (with `REMAP_SIGTERM=SIGQUIT`)."""
    default_deadline: Seconds = 900.0
    """Seconds from a message's `time` to its run's deadline, unless it names one."""
    longest_deadline: Seconds = 21_600.0
    """The latest deadline that a message may name; older messages are refused."""

    message_bytes: Bytes = 1_048_576
    """The largest message that is admitted."""
    review_input_bytes: Bytes = 262_144
    """The largest question of the review or the verifier; over it the guard is unavailable."""
    review_output_bytes: Bytes = 16_384
    """The largest answer of the review."""
    review_output_tokens: int = Field(1_024, gt=0)
    """The same in tokens, as told to the provider."""
    verifier_output_bytes: Bytes = 131_072
    """The largest answer of the claim verifier."""
    verifier_output_tokens: int = Field(16_384, gt=0)
    """The same in tokens."""
    repair_input_bytes: Bytes = 262_144
    """The largest question of the repair; over it the repair fails."""
    repair_output_bytes: Bytes = 262_144
    """The largest answer of the repair."""
    repair_output_tokens: int = Field(32_768, gt=0)
    """The same in tokens."""

    locale: Locale = "en"
    """Language of fallbacks for drafts that name none that is known."""
    relay_interval: Seconds = 0.5
    """Seconds between two rounds of the relay."""
    shadow: bool = False
    """Watch only: endings go to the queue `release.shadow`, and nobody is answered or asked."""

    @model_validator(mode="after")
    def _hold_together(self) -> "Settings":
        broken = "; ".join((*self._wrong_addresses(), *self._broken_times()))
        if broken:
            raise ValueError(broken)
        return self

    def _wrong_addresses(self) -> Iterator[str]:
        """What to change about each address and key that cannot work."""
        key = self.openai_api_key.get_secret_value()
        if not _names_place(self.redis_url, _STORES):
            yield "REDIS_URL must be a redis://, rediss:// or unix:// address"
        if self.broker_url and not _names_place(self.broker_url, _BROKERS):
            yield (
                "RELEASE_BROKER_URL must be an amqp://, redis:// or redis+socket:// address, or "
                "empty for the Redis of REDIS_URL"
            )
        if not _names_place(self.openai_base_url, ("http", "https")):
            yield "OPENAI_BASE_URL must be an http:// or https:// address that names a host"
        if key and not (key.isascii() and key.isprintable()):
            yield "OPENAI_API_KEY must be printable ASCII"

    def _broken_times(self) -> Iterator[str]:
        """What to change about each two times that cannot both hold."""
        if self.soft_margin >= self.hard_margin:
            yield (
                "RELEASE_SOFT_MARGIN must be below RELEASE_HARD_MARGIN, or a call is killed "
                "before it is interrupted"
            )
        if self.light_soft_limit >= self.light_hard_limit:
            yield (
                "RELEASE_LIGHT_SOFT_LIMIT must be below RELEASE_LIGHT_HARD_LIMIT, or a step is "
                "killed before it is interrupted"
            )
        if self.review_total_timeout < self.attempt_timeout:
            yield (
                "RELEASE_REVIEW_TOTAL_TIMEOUT must not be below RELEASE_ATTEMPT_TIMEOUT, or no "
                "attempt has its time"
            )
        lease = self.policy().longest_lease()
        if self.visibility_timeout <= lease:
            yield (
                "RELEASE_VISIBILITY_TIMEOUT must be above the longest hard limit with its lease "
                f"margin ({lease:g} s), or healthy steps run twice"
            )
        if is_rabbitmq(self.broker()) and lease >= HOLD_SECONDS:
            yield (
                "RELEASE_ATTEMPT_TIMEOUT and RELEASE_LIGHT_HARD_LIMIT must keep the longest hard "
                f"limit with its lease margin ({lease:g} s) below RabbitMQ's acknowledgement "
                f"timeout ({HOLD_SECONDS} s), or it takes healthy steps away"
            )
        if self.default_deadline > self.longest_deadline:
            yield "RELEASE_DEFAULT_DEADLINE must not be above RELEASE_LONGEST_DEADLINE"
        if self.evidence_reserve >= self.default_deadline:
            yield (
                "RELEASE_EVIDENCE_RESERVE must be below RELEASE_DEFAULT_DEADLINE, or no time is "
                "left to wait for evidence"
            )
        if self.retention <= self.longest_deadline:
            yield (
                "RELEASE_RETENTION must be above RELEASE_LONGEST_DEADLINE, or a draft of an "
                "expired run could be released a second time"
            )
        if self.resend_first > self.resend_max:
            yield "RELEASE_RESEND_FIRST must not be above RELEASE_RESEND_MAX"

    def policy(self) -> Policy:
        return Policy(
            attempt_timeout=self.attempt_timeout,
            soft_margin=self.soft_margin,
            hard_margin=self.hard_margin,
            review_total_timeout=self.review_total_timeout,
            repair_attempts=1 if self.evidence_repair else 0,
            light_soft_limit=self.light_soft_limit,
            light_hard_limit=self.light_hard_limit,
            lease_margin=self.lease_margin,
            evidence_reserve=self.evidence_reserve,
            ask_for_evidence=not self.shadow,
            resend_first=self.resend_first,
            resend_max=self.resend_max,
        )

    def limits(self) -> Limits:
        return Limits(
            message_bytes=self.message_bytes,
            review_input_bytes=self.review_input_bytes,
            repair_input_bytes=self.repair_input_bytes,
            review_output_bytes=self.review_output_bytes,
            repair_output_bytes=self.repair_output_bytes,
            review_output_tokens=self.review_output_tokens,
            verifier_output_bytes=self.verifier_output_bytes,
            verifier_output_tokens=self.verifier_output_tokens,
            repair_output_tokens=self.repair_output_tokens,
            default_deadline=self.default_deadline,
            longest_deadline=self.longest_deadline,
        )

    def broker(self) -> str:
        """The broker's URL as kombu writes it; the store's own where none is set."""
        return self.broker_url or broker_url_of(self.redis_url)


def read_settings() -> Settings:
    """Read the environment; raises WrongSettings with what to change and no value."""
    try:
        return Settings()
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False)
        raise WrongSettings("; ".join(_sentence(problem) for problem in problems)) from None


def table() -> str:
    """All settings as a table in Markdown: variable, default and meaning."""
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        value = field.default
        if isinstance(value, SecretStr):
            value = value.get_secret_value()
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, float):
            value = f"{value:g}"
        shown = f"`{value}`" if value != "" else ""
        rows.append(f"| `{variable(name)}` | {shown} | {field.description} |")
    return "\n".join(rows)


def _sentence(problem: "ErrorDetails") -> str:
    """Say what a setting must be, in words of ours: pydantic speaks of inputs and types."""
    bounds = problem.get("ctx", {})
    if problem["type"] == "value_error":
        return str(bounds["error"])
    match problem["type"]:
        case "greater_than":
            wanted = f"must be above {bounds['gt']:g}"
        case "greater_than_equal":
            wanted = f"must be {bounds['ge']:g} or more"
        case "float_parsing" | "finite_number":
            wanted = "must be a number"
        case "int_parsing" | "int_from_float" | "int_parsing_size":
            wanted = "must be a whole number"
        case "bool_parsing":
            wanted = "must be true or false"
        case "literal_error":
            wanted = f"must be {bounds['expected']}"
        case "string_too_short":
            wanted = "must not be empty"
        case "string_too_long":
            wanted = f"must have {bounds['max_length']} characters at most"
        case _:
            wanted = "is not valid"
    return f"{variable(str(problem['loc'][0]))} {wanted}"


def variable(field: str) -> str:
    """The environment variable of a field."""
    name = field.upper()
    return name if field.lower() in _OWN_NAMES else f"RELEASE_{name.removeprefix('RELEASE_')}"


def _names_place(url: str, schemes: tuple[str, ...]) -> bool:
    """Tell whether an address has one of these schemes and a host, or a path to a socket."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for what is no port
    except ValueError:
        return False
    socket = parts.scheme in ("unix", "redis+socket")
    return parts.scheme in schemes and bool(parts.path if socket else parts.hostname)
