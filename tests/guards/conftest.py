"""Properties are about results, not about how busy the machine is."""

from hypothesis import Phase, settings

settings.register_profile("no-deadline", deadline=None)
settings.register_profile(
    "mutants",
    deadline=None,
    max_examples=10,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
"""Few and fixed examples, for mutation testing: thousands of mutants meet these tests."""
settings.load_profile("no-deadline")
