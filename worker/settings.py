"""All settings, from the environment. A wrong one stops the process with a sentence.

Each field's variable is its name in upper case with the prefix ``RELEASE_``,
except the three that other tools name too: REDIS_URL, OPENAI_BASE_URL and
OPENAI_API_KEY. The README has the table.
"""

from typing import Annotated, Literal

from pydantic import AliasChoices, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from contracts.fallback import Locale
from worker.adapters.queues import broker_url_of
from worker.run.policy import Policy
from worker.stage.engine import Limits

Seconds = Annotated[float, Field(gt=0)]
Bytes = Annotated[int, Field(gt=0)]


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
    model: str = "gpt-4.1-mini"
    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"

    attempt_timeout: Seconds = 60.0
    review_total_timeout: Seconds = 100.0
    soft_margin: Seconds = 2.0
    hard_margin: Seconds = 5.0
    lease_margin: Seconds = 5.0
    light_soft_limit: Seconds = 30.0
    light_hard_limit: Seconds = 35.0
    evidence_repair: bool = True
    resend_first: Seconds = 60.0
    resend_max: Seconds = 900.0
    visibility_timeout: Seconds = 300.0
    default_deadline: Seconds = 900.0
    longest_deadline: Seconds = 21_600.0

    message_bytes: Bytes = 1_048_576
    review_input_bytes: Bytes = 262_144
    review_output_bytes: Bytes = 16_384
    review_output_tokens: int = Field(1_024, gt=0)
    repair_input_bytes: Bytes = 262_144
    repair_output_bytes: Bytes = 262_144
    repair_output_tokens: int = Field(32_768, gt=0)

    locale: Locale = "en"
    relay_interval: Seconds = 0.5

    @model_validator(mode="after")
    def _hold_together(self) -> "Settings":
        policy = self.policy()
        longest_hard = max(self.attempt_timeout + self.hard_margin, self.light_hard_limit)
        rules = (
            (
                self.soft_margin < self.hard_margin,
                "RELEASE_SOFT_MARGIN must be below RELEASE_HARD_MARGIN",
            ),
            (
                self.light_soft_limit < self.light_hard_limit,
                "RELEASE_LIGHT_SOFT_LIMIT must be below RELEASE_LIGHT_HARD_LIMIT",
            ),
            (
                self.attempt_timeout <= self.review_total_timeout,
                "RELEASE_REVIEW_TOTAL_TIMEOUT must not be below RELEASE_ATTEMPT_TIMEOUT",
            ),
            (
                policy.longest_lease() < self.visibility_timeout,
                "RELEASE_VISIBILITY_TIMEOUT must be above the longest hard limit with its lease "
                f"margin ({longest_hard + self.lease_margin:g} s), or healthy steps run twice",
            ),
            (
                self.default_deadline <= self.longest_deadline,
                "RELEASE_DEFAULT_DEADLINE must not be above RELEASE_LONGEST_DEADLINE",
            ),
            (
                self.longest_deadline < self.retention,
                "RELEASE_RETENTION must be above RELEASE_LONGEST_DEADLINE, or a draft of an "
                "expired run could be released a second time",
            ),
            (
                self.resend_first <= self.resend_max,
                "RELEASE_RESEND_FIRST must not be above RELEASE_RESEND_MAX",
            ),
        )
        for holds, sentence in rules:
            if not holds:
                raise ValueError(sentence)
        return self

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
            repair_output_tokens=self.repair_output_tokens,
            default_deadline=self.default_deadline,
            longest_deadline=self.longest_deadline,
        )

    def broker(self) -> str:
        """The broker's URL as kombu writes it; the store's own where none is set."""
        return self.broker_url or broker_url_of(self.redis_url)


def read_settings() -> Settings:
    """Read the environment; raises WrongSettings with what to change."""
    try:
        return Settings()
    except ValidationError as error:
        lines = []
        for problem in error.errors(include_input=False):
            name = f"RELEASE_{problem['loc'][0]}".upper() if problem["loc"] else ""
            lines.append(f"{name} {problem['msg']}".strip().removeprefix("Value error, "))
        raise WrongSettings("; ".join(lines)) from None
