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
"""Vectors below ``next``, recorded ahead of the work, that agree by now."""
OF_CHANCE = "0.17-any.jsonl.gz"
"""The file that ``NAMED`` is about. Other files have some of the ids too."""
NAMED = {
    "d-reclaim-00701": "7 answers in 400 runs of the origin, the likeliest, ours, 185 times",
    "conscap-01128": "136 answers in 400 runs of the origin, the likeliest 35 times",
    "conscap-01147": "27 answers in 400 runs, the likeliest, ours, 117 times",
    "conscap-01151": "29 answers in 400 runs, the likeliest, which was recorded, 54 times, the next 41",
    "conscap-01178": "70 answers in 400 runs, the likeliest 41 times, and it overfills a node",
    "sig-01205": "9 answers in 200 runs, four of them 27 to 37 times",
    "conscap-03083": "180 answers in 400 runs, the likeliest, ours, 15 times",
    "conscap-03148": "273 answers in 400 runs, the likeliest 7 times",
}
"""Answers of KAI 0.17 that hang on chance: the five runs of a record did not meet the likeliest, or several come up
about as often. What was recorded is among the outcomes that the answer names."""


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
        vectors = [line for line in found if line.strip()]
    assert vectors, path
    return vectors


def selected(path: Path) -> Path:
    """Where the selection from a file of the collection lies, if any of it is selected."""
    return HERE / path.parent.name / path.name


def read(path: Path, start: int = 0, number: int | None = None) -> list[dict[str, Any]]:
    """The vectors of a file, or ``number`` of them from number ``start`` on."""
    found = lines(path)
    return [json.loads(line) for line in found[start : len(found) if number is None else start + number]]
