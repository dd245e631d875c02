"""A small real search over the runbooks that lie beside the incidents.

Sections are ranked by the rarity of the query's words that they hold. Chinese
text is cut into pairs of characters, since it has no spaces.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path

LIBRARY = Path(__file__).parent.parent
_WORD = re.compile(r"[a-z0-9_]{2,}|[\u4e00-\u9fff]+")
_LEAST_SHARE = 0.35
"""A section is a hit only if it holds this share of the query's weight."""


@dataclass(frozen=True)
class Section:
    document_id: str
    title: str
    text: str


def search(query: str, limit: int = 2) -> list[Section]:
    """The best sections for a query, best first; empty if none comes near."""
    sections = library()
    bags = [words(f"{section.title} {section.text}") for section in sections]
    wanted = words(query)
    weight = {
        word: math.log((1 + len(bags)) / (1 + sum(word in bag for bag in bags))) for word in wanted
    }
    whole = sum(weight.values()) or 1.0
    scored = [(sum(weight[word] for word in wanted & bag) / whole, bag) for bag in bags]
    best = sorted(range(len(sections)), key=lambda n: -scored[n][0])[:limit]
    return [sections[n] for n in best if scored[n][0] >= _LEAST_SHARE]


def library() -> list[Section]:
    """Every section of every runbook, in the order of their files."""
    found: list[Section] = []
    for path in sorted(LIBRARY.glob("*/runbook.md")):
        name, *sections = path.read_text(encoding="utf-8").split("\n## ")
        book = path.parent.name.replace("_", "-")
        for number, section in enumerate(sections, 1):
            title, _, text = section.partition("\n")
            heading = f"{name.splitlines()[0].lstrip('# ')}: {title.strip()}"
            found.append(Section(f"runbook/{book}#{number}", heading, " ".join(text.split())))
    return found


def words(text: str) -> frozenset[str]:
    """Lower-case words, and the pairs of neighbouring Chinese characters."""
    found: set[str] = set()
    for run in _WORD.findall(text.lower()):
        if run[0] < "\u4e00":
            found.add(run)
        else:
            found.update(run[n : n + 2] for n in range(len(run) - 1))
    return frozenset(found)
