"""Where vectors lie: ../shared/vectors beside a full checkout, and a selection in this folder."""

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.solver.engines import ENGINES
from tests.support.profiles import PROFILE

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared" / "vectors"
AT_HAND = SHARED if SHARED.is_dir() and PROFILE != "quick" else HERE
"""What is replayed: the selection in quick tests and where there is nothing else, which is a part of the collection."""
NEXT = ("kueue/*", "kube-scheduler/*", "kai/0.17-*")
"""Vectors below ``next``, recorded ahead of the work, that agree by now, but for those that are ``UNMET``."""
UNMET = {
    "d-reclaim-00701": "jobs go into the tree of queues in the order of a map, and a queue that is not on top keeps "
    "the child that was first then: 60 runs of the origin came to 7 answers, the likeliest 19 times",
    "cpu-01034": "more steps than draws may spend (17 answers in 85 runs of the origin, 43 times the likeliest)",
    "conscap-03148": "150 answers in 200 runs of the origin: a draw hardly meets one of five that were recorded",
}
"""Answers of KAI 0.17 that hang on chance, of which none that was recorded is named, and why. The replay says so when
one is."""
OF_CHANCE = "0.17-any.jsonl.gz"
"""The file that these two are about. Other files have some of the ids too."""
NAMED = {
    "all-03007": "7 answers in 60 runs of the origin; two were recorded, and a third is drawn as often as these",
    "conscap-01128": "98 answers in 200 runs of the origin, the likeliest 6 times",
    "conscap-01147": "24 answers in 200 runs, the likeliest recorded one 15 times",
    "conscap-01151": "30 answers in 200 runs, the likeliest recorded one 27 times",
    "conscap-01178": "52 answers in 200 runs, the likeliest recorded one 10 times",
    "conscap-03083": "122 answers in 200 runs, the likeliest recorded one 6 times",
}
"""Answers of KAI 0.17 that hang on chance so that no likeliest one can be told from the five runs of a record. What was
recorded is among the outcomes that the answer names."""


def files(root: Path) -> list[Path]:
    """Vector files of all engines below ``root``, in a fixed order; none where the folder is missing.

    In a full checkout those that were recorded ahead of the work are below ``next``."""
    patterns = [f"{engine}/*" for engine in ENGINES] + [f"next/{those}" for those in NEXT]
    return [path for pattern in patterns for path in sorted(root.glob(f"{pattern}.jsonl.gz"))]


def recorded(kind: str) -> list[Path]:
    """Files of Kueue's other recordings of a ``kind``: placements, courses over time."""
    return sorted((SHARED / "next" / kind if AT_HAND == SHARED else HERE / kind).glob("*.jsonl.gz"))


def parts(path: Path, size: int) -> int:
    """How many tests a file is dealt to, each with about ``size`` bytes of it as it lies there, without reading it."""
    return -(-path.stat().st_size // size)


@lru_cache(maxsize=8)
def lines(path: Path) -> list[bytes]:
    """The vectors of a file, unparsed."""
    with gzip.open(path) as found:
        return [line for line in found if line.strip()]


def selected(path: Path) -> Path:
    """Where the selection from a file of the collection lies, if any of it is selected."""
    return HERE / path.parent.name / path.name


def read(path: Path, start: int = 0, number: int | None = None) -> list[dict[str, Any]]:
    """The vectors of a file, or ``number`` of them from number ``start`` on."""
    found = lines(path)
    return [json.loads(line) for line in found[start : len(found) if number is None else start + number]]
