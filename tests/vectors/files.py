"""Where vectors lie: ../shared/vectors beside a full checkout, and a selection in this folder."""

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared" / "vectors"
ENGINES = ("kueue", "yunikorn", "kai", "ytsaurus")


def files(root: Path) -> list[Path]:
    """Vector files of all engines below ``root``, in a fixed order; none where the folder is missing.

    In a full checkout those that are still to come to the engines' own folders are below ``coming``."""
    folders = [root / part / engine for engine in ENGINES for part in ("", "coming")]
    return [path for folder in folders for path in sorted(folder.glob("*.jsonl.gz"))]


def count(path: Path) -> int:
    """How many vectors a file has, without parsing them."""
    with gzip.open(path) as lines:
        return sum(1 for line in lines if line.strip())


@lru_cache(maxsize=8)
def _lines(path: Path) -> list[bytes]:
    with gzip.open(path) as lines:
        return [line for line in lines if line.strip()]


def read(path: Path, start: int = 0, number: int | None = None) -> list[dict[str, Any]]:
    """The vectors of a file, or ``number`` of them from number ``start`` on."""
    lines = _lines(path)
    return [json.loads(line) for line in lines[start : len(lines) if number is None else start + number]]
