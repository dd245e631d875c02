"""Check that every scenario of the specs is proved by a test.

``openspec validate`` reads the form of a spec. This reads what it does not notice: two
scenarios of one capability with the same title, a scenario without WHEN or THEN, a
scenario that no test proves, and a test that claims to prove a scenario there is not.

A test proves a scenario by its marker, and by nothing else::

    @pytest.mark.scenario("capability", "title")

Markers are read from the source of the tests, so that nothing has to run. Only a function
that pytest collects counts, and one that may be skipped or may fail proves nothing.

Run as ``python openspec/check.py [repository]``: prints each problem, exits 1 if any.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_HEADING = re.compile(r"^(#{2,4}) +(.*?) *$")
_SCENARIO = "Scenario:"
_STEP = re.compile(r"^\s*[-*] \*\*(WHEN|THEN)\*\*")
_DROPPED = "REMOVED Requirements"
_OFF = frozenset({"pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail"})

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_Marked = (*_Function, ast.ClassDef)
_MarkedNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Scenario:
    capability: str
    title: str
    place: str
    steps: set[str] = field(default_factory=set, compare=False)

    @property
    def name(self) -> str:
        return f"{self.capability}: {self.title}"


@dataclass(frozen=True)
class Mark:
    """A marker on a test; ``flaw`` tells why it proves nothing."""

    name: str
    place: str
    flaw: str | None = None


def scenarios(root: Path) -> list[Scenario]:
    """All scenarios of the specs of today and of the changes under way, in file order."""
    specs = sorted(root.glob("openspec/specs/*/spec.md"))
    changes = sorted(root.glob("openspec/changes/*/specs/*/spec.md"))
    found: list[Scenario] = []
    for path in specs + [path for path in changes if "archive" not in path.parts]:
        found += _read_spec(path, path.relative_to(root))
    return found


def _read_spec(path: Path, shown: Path) -> Iterator[Scenario]:
    current: Scenario | None = None
    dropped = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        heading = _HEADING.match(line)
        step = _STEP.match(line)
        if heading:
            if len(heading[1]) == 2:
                dropped = heading[2] == _DROPPED
            if current:
                yield current
            current = None
            if heading[2].startswith(_SCENARIO) and not dropped:
                title = heading[2].removeprefix(_SCENARIO).strip()
                current = Scenario(path.parent.name, title, f"{shown}:{number}")
        elif step and current:
            current.steps.add(step[1])
    if current:
        yield current


def marks(root: Path) -> list[Mark]:
    """All scenario markers in ``tests/``, with what is wrong with them."""
    found: list[Mark] = []
    for path in sorted(root.glob("tests/**/*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        collected = set(_collected(tree)) if path.name.startswith("test_") else set()
        for node in ast.walk(tree):
            if isinstance(node, _Marked):
                runs = node in collected
                found += _read_marks(node, str(path.relative_to(root)), runs=runs)
    return found


def _collected(tree: ast.Module) -> Iterator[ast.stmt]:
    """The functions that pytest runs: top-level ones, and those of top-level ``Test`` classes."""
    for node in tree.body:
        inside = isinstance(node, ast.ClassDef) and node.name.startswith("Test")
        for item in node.body if isinstance(node, ast.ClassDef) and inside else [node]:
            if isinstance(item, _Function) and item.name.startswith("test_"):
                yield item


def _read_marks(node: _MarkedNode, shown: str, *, runs: bool) -> Iterator[Mark]:
    decorators = [_dotted(item) for item in node.decorator_list]
    for item, name in zip(node.decorator_list, decorators, strict=True):
        if name != "pytest.mark.scenario":
            continue
        words = _two_words(item)
        flaw = None
        if words is None:
            flaw = "needs a capability and a title, both written out"
        elif not runs:
            flaw = "stands where pytest runs no test"
        elif not _OFF.isdisjoint(decorators):
            flaw = "stands on a test that may be skipped or fail"
        yield Mark(": ".join(words or ("?",)), f"{shown}:{item.lineno}", flaw)


def _two_words(decorator: ast.expr) -> tuple[str, str] | None:
    match decorator:
        case ast.Call(
            args=[ast.Constant(value=str() as capability), ast.Constant(value=str() as title)],
            keywords=[],
        ):
            return capability, title
        case _:
            return None


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Call(func=func):
            return _dotted(func)
        case ast.Attribute(value=value, attr=attr):
            return f"{_dotted(value)}.{attr}"
        case ast.Name(id=name):
            return name
        case _:
            return "?"


def problems(root: Path) -> list[str]:
    """Everything that is wrong, one line each, with its place; empty when all is well."""
    found: list[str] = []
    known: dict[str, Scenario] = {}
    for scenario in scenarios(root):
        found += [
            f"{scenario.place}: scenario '{scenario.name}' has no {step}"
            for step in ("WHEN", "THEN")
            if step not in scenario.steps
        ]
        twin = known.setdefault(scenario.name, scenario)
        if twin is not scenario and _same_document(twin, scenario):
            found.append(f"{scenario.place}: '{scenario.name}' stands already at {twin.place}")

    proved = set()
    for mark in marks(root):
        if mark.flaw:
            found.append(f"{mark.place}: the scenario marker {mark.flaw}")
        elif mark.name not in known:
            found.append(f"{mark.place}: there is no scenario '{mark.name}'")
        else:
            proved.add(mark.name)
    found += [
        f"{scenario.place}: no test proves '{name}'"
        for name, scenario in known.items()
        if name not in proved
    ]
    return found


def _same_document(one: Scenario, other: Scenario) -> bool:
    """A change repeats the scenarios that it modifies; inside one document nothing repeats."""
    return one.place.rsplit(":", 1)[0] == other.place.rsplit(":", 1)[0]


def main(root: Path) -> int:
    found = problems(root)
    for line in found:
        print(line)
    count = len({scenario.name for scenario in scenarios(root)})
    print(f"scenarios: {count}, problems: {len(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent))
