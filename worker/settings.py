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
        env_prefix="RELEASE_", frozen=True, hide_input_in_errors=True, populate_by_name=True
    )

    redis_url: str = Field(
        "redis://127.0.0.1:6379/0", validation_alias=AliasChoices("redis_url", "REDIS_URL")
    )
    broker_url: str = ""
    key_prefix: str = Field("release:", min_length=1, max_length=64)
    retention: int = Field(604_800, gt=0)
    redis_connections: int = Field(64, ge=4)

    openai_base_url: str = Field(
        "https://api.openai.com/v1",
        validation_alias=AliasChoices("openai_base_url", "OPENAI_BASE_URL"),
    )
    openai_api_key: SecretStr = Field(
        SecretStr(""), validation_alias=AliasChoices("openai_api_key", "OPENAI_API_KEY")
    )
    model: str = Field("gpt-4.1-mini", min_length=1)
    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"

    attempt_timeout: Seconds = 60.0
    review_total_timeout: Seconds = 100.0
    soft_margin: Seconds = 2.0
    hard_margin: Seconds = 5.0
    lease_margin: Seconds = 5.0
    light_soft_limit: Seconds = 30.0
    light_hard_limit: Seconds = 35.0
    evidence_repair: bool = True
    evidence_reserve: Seconds = 30.0
    resend_first: Seconds = 60.0
    resend_max: Seconds = 900.0
    visibility_timeout: Seconds = 300.0
    default_deadline: Seconds = 900.0
    longest_deadline: Seconds = 21_600.0

    message_bytes: Bytes = 1_048_576
    review_input_bytes: Bytes = 262_144
    review_output_bytes: Bytes = 16_384
    review_output_tokens: int = Field(1_024, gt=0)
    verifier_output_bytes: Bytes = 131_072
    verifier_output_tokens: int = Field(16_384, gt=0)
    repair_input_bytes: Bytes = 262_144
    repair_output_bytes: Bytes = 262_144
    repair_output_tokens: int = Field(32_768, gt=0)

    locale: Locale = "en"
    relay_interval: Seconds = 0.5

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
