"""The check that binds scenarios to tests, on small repositories made for it."""

from pathlib import Path

import pytest

from openspec.check import main, problems

SPEC = """\
# intake Specification

## Purpose
Drafts come in as messages and each is admitted once, whatever its sender does.

## Requirements

### Requirement: Repeats are dropped
A repeated draft SHALL be dropped.

#### Scenario: The same draft twice
- **WHEN** a draft is delivered again
- **THEN** one run exists
"""

PROOF = """\
import pytest

@pytest.mark.parametrize("way", ["queue", "task"])
@pytest.mark.scenario("intake", "The same draft twice")
def test_repeat(way):
    assert way
"""


def repository(root: Path, *, spec: str = SPEC, test: str = PROOF) -> Path:
    (root / "openspec/specs/intake").mkdir(parents=True)
    (root / "openspec/specs/intake/spec.md").write_text(spec)
    (root / "tests/deeper").mkdir(parents=True)
    (root / "tests/deeper/test_intake.py").write_text(test)
    return root


def test_a_proved_scenario_is_no_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scenario with WHEN, THEN and a marked test passes, and the check says how many it saw."""
    assert main(repository(tmp_path)) == 0
    assert capsys.readouterr().out == "scenarios: 1, problems: 0\n"


def test_an_unproved_scenario_fails(tmp_path: Path) -> None:
    """A scenario whose marker is missing is named with its place."""
    root = repository(tmp_path, test="def test_repeat():\n    pass\n")
    assert problems(root) == [
        "openspec/specs/intake/spec.md:11: no test proves 'intake: The same draft twice'"
    ]
    assert main(root) == 1


@pytest.mark.parametrize(
    ("test", "told"),
    [
        pytest.param(
            PROOF.replace("same draft", "other draft"),
            "there is no scenario 'intake: The other draft twice'",
            id="unknown title",
        ),
        pytest.param(
            PROOF.replace('"intake", ', '"release", '),
            "there is no scenario 'release: The same draft twice'",
            id="unknown capability",
        ),
        pytest.param(
            PROOF.replace("def test_repeat", "def check_repeat"),
            "stands where pytest runs no test",
            id="no test function",
        ),
        pytest.param(
            PROOF.replace("@pytest.mark.s", "@pytest.mark.skip\n@pytest.mark.s"),
            "may be skipped or fail",
            id="skipped",
        ),
        pytest.param(
            PROOF.replace("@pytest.mark.s", "@pytest.mark.xfail(strict=True)\n@pytest.mark.s"),
            "may be skipped or fail",
            id="expected to fail",
        ),
        pytest.param(
            PROOF.replace('"The same draft twice"', "TITLE"),
            "needs a capability and a title, both written out",
            id="computed title",
        ),
        pytest.param(
            "import pytest\n\n@pytest.mark.scenario('intake', 'The same draft twice')\n"
            "class TestRepeat:\n    pass\n",
            "stands where pytest runs no test",
            id="on a class",
        ),
        pytest.param(
            "import pytest\n\ndef test_outer():\n"
            "    @pytest.mark.scenario('intake', 'The same draft twice')\n"
            "    def test_inner():\n        pass\n",
            "stands where pytest runs no test",
            id="inside another function",
        ),
    ],
)
def test_a_marker_that_proves_nothing_fails(tmp_path: Path, test: str, told: str) -> None:
    """A marker that cannot prove its scenario is a problem, and the scenario stays unproved."""
    found = problems(repository(tmp_path, test=test))
    assert any(told in line for line in found)
    assert any("no test proves" in line for line in found)


def test_a_method_of_a_test_class_proves(tmp_path: Path) -> None:
    """Methods that pytest collects count as tests."""
    test = (
        "import pytest\n\nclass TestRepeat:\n"
        "    @pytest.mark.scenario('intake', 'The same draft twice')\n"
        "    async def test_repeat(self):\n        pass\n"
    )
    assert problems(repository(tmp_path, test=test)) == []


@pytest.mark.parametrize("step", ["WHEN", "THEN"])
def test_a_scenario_without_a_step_fails(tmp_path: Path, step: str) -> None:
    """WHEN and THEN are both needed, since without one of them nothing can be proved."""
    spec = SPEC.replace(f"- **{step}**", "- ")
    assert [line for line in problems(repository(tmp_path, spec=spec)) if step in line] == [
        f"openspec/specs/intake/spec.md:11: scenario 'intake: The same draft twice' has no {step}"
    ]


def test_two_scenarios_of_one_title_fail(tmp_path: Path) -> None:
    """One title names one scenario, or a single test would prove both."""
    spec = SPEC + SPEC[SPEC.index("#### ") :]
    found = problems(repository(tmp_path, spec=spec))
    assert len(found) == 1
    assert "stands already at openspec/specs/intake/spec.md:11" in found[0]


def test_a_change_under_way_must_be_proved(tmp_path: Path) -> None:
    """Scenarios that a change adds count; removed ones and archived changes do not."""
    root = repository(tmp_path)
    change = root / "openspec/changes/late-drafts/specs/intake/spec.md"
    archived = root / "openspec/changes/archive/2026-01-01-old/specs/intake/spec.md"
    for path in (change, archived):
        path.parent.mkdir(parents=True)
    scenario = SPEC[SPEC.index("### ") :]
    change.write_text(
        "## MODIFIED Requirements\n"
        + scenario
        + "\n## ADDED Requirements\n"
        + scenario.replace("The same", "A late")
        + "\n## REMOVED Requirements\n"
        + scenario.replace("The same", "A lost")
    )
    archived.write_text("## ADDED Requirements\n" + scenario.replace("The same", "An old"))
    found = problems(root)
    assert len(found) == 1
    assert "no test proves 'intake: A late draft twice'" in found[0]
