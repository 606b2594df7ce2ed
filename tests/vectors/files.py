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


@lru_cache(maxsize=2)
def read(path: Path) -> list[dict[str, Any]]:
    """The vectors of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]
