"""Where vectors lie: ../shared/vectors beside a full checkout, and a selection in this folder."""

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.solver.engines import ENGINES

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared" / "vectors"
AT_HAND = SHARED if SHARED.is_dir() else HERE
"""All there are here. The selection is a part of the collection, so nothing is replayed twice."""
NEXT = ("kueue/*", "kube-scheduler/*", "kai/0.17-*")
"""Vectors below ``next``, recorded ahead of the work, that agree by now, but for those that are ``unmet``."""
UNMET = {
    "0.17-any": (
        "d-reclaim-00701", "cpu-01032", "cpu-01034", "all-01090", "all-01187", "all-03007", "all-03019",
        "conscap-01128", "conscap-01147", "conscap-01151", "conscap-01178", "conscap-03083", "conscap-03148",
    ),
}  # fmt: skip
"""By file: recorded answers of KAI 0.17 that are not met yet: orders of maps. The replay
says so when one is. Other files have some of these ids too."""


def unmet(path: Path) -> tuple[str, ...]:
    """Ids of the vectors of a file that are not met yet."""
    return UNMET.get(path.name.removesuffix(".jsonl.gz"), ())


def files(root: Path) -> list[Path]:
    """Vector files of all engines below ``root``, in a fixed order; none where the folder is missing.

    In a full checkout those that were recorded ahead of the work are below ``next``."""
    patterns = [f"{engine}/*" for engine in ENGINES] + [f"next/{those}" for those in NEXT]
    return [path for pattern in patterns for path in sorted(root.glob(f"{pattern}.jsonl.gz"))]


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
