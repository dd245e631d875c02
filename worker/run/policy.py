"""The numbers that decide: timeouts, attempts, leases, waits. All times in seconds."""

from dataclasses import dataclass

from worker.run.steps import MODEL_STEPS, Step


@dataclass(frozen=True)
class Policy:
    """What a deployment may tune; see the configuration table in the README."""

    attempt_timeout: float = 60.0
    """One model call, connecting and reading included."""
    soft_margin: float = 2.0
    hard_margin: float = 5.0
    """Celery's limits stand this far behind the boundary's deadline: they catch what it cannot."""
    review_total_timeout: float = 100.0
    """All attempts of one review, or of one verification, together; queueing does not count."""
    review_attempts: int = 2
    """Of the review of drafts, and of the verifier of claims."""
    repair_attempts: int = 1
    """0 turns the evidence repair off. More than one would be a retry loop."""
    light_soft_limit: float = 30.0
    light_hard_limit: float = 35.0
    """Limits of the steps that ask no model."""
    lease_margin: float = 5.0
    max_grants: int = 3
    """Starts of a step that asks no model; one more ends the run."""
    evidence_reserve: float = 30.0
    """A run stops waiting for more evidence this long before its deadline."""
    ask_for_evidence: bool = True
    resend_first: float = 60.0
    resend_max: float = 900.0
    """An unclaimed step is sent again after these waits, doubling between them."""

    def soft_limit(self, step: Step) -> float:
        if step in MODEL_STEPS:
            return self.attempt_timeout + self.soft_margin
        return self.light_soft_limit

    def hard_limit(self, step: Step) -> float:
        if step in MODEL_STEPS:
            return self.attempt_timeout + self.hard_margin
        return self.light_hard_limit

    def lease(self, step: Step) -> float:
        return self.hard_limit(step) + self.lease_margin

    def longest_lease(self) -> float:
        return max(self.lease(step) for step in Step)
