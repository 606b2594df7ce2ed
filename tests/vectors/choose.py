"""Choose the committed selection anew: ``python -m tests.vectors.choose [--seed N] [--sample N] [engine...]``.

By what it kills: of a seeded sample of an engine's mutants (``tests.mutants``), each is held against the vectors chosen
so far that run its line, then against others in a seeded order; the first that disagrees is chosen. What is left of the
size is filled evenly from each recorded file, so that every part of it is there. Nothing of the origins' own tests or
texts. The same tree, vectors, seed and sample choose the same.
"""

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.mutants.packages import packages
from tests.mutants.sampling import sample
from tests.vectors.files import ENGINES, HERE, SHARED, files
from tests.vectors.killing import Killing

BYTES_AN_ENGINE = 300_000
_TRIED = 250
"""Vectors that a mutant meets at most beside those chosen already."""


class Line(NamedTuple):
    """A recorded vector: its file, and its text."""

    path: Path
    text: bytes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.vectors.choose", description=__doc__)
    parser.add_argument("engines", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=200, help="mutants of each engine")
    parser.add_argument("--pool", type=int, default=1500, help="vectors of each engine that mutants may meet")
    parser.add_argument("--check", action="store_true", help="only tell what the committed selection kills")
    given = parser.parse_args()
    for engine in given.engines or ENGINES:
        recorded = _recorded(engine)
        chosen = _killers(engine, recorded, given)
        if not given.check:
            _write(engine, recorded, chosen)
    return 0


def _recorded(engine: str) -> dict[Path, list[bytes]]:
    """The vectors of each file that may be committed."""
    found: dict[Path, list[bytes]] = {}
    for path in files(SHARED):
        if path.parent.name == engine and not path.name.startswith(("upstream", "documented")):
            with gzip.open(path) as source:
                found[path] = source.readlines()
    return found


def _killers(engine: str, recorded: dict[Path, list[bytes]], given: argparse.Namespace) -> list[Line]:
    """Vectors that between them kill what any of the pool kills; with ``check`` those of the selection come first."""
    every = [Line(path, text) for path, lines in recorded.items() for text in lines]
    pool = Random(given.seed).sample(every, min(given.pool, len(every)))
    committed = {
        text
        for path in HERE.glob(f"{engine}/*.jsonl.gz")
        for text in gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    }
    selection = [line for line in every if line.text in committed] if given.check else []
    pool = [*selection, *(line for line in pool if line.text not in committed or not given.check)]
    killing = Killing([json.loads(line.text) for line in pool])
    chosen: list[int] = list(range(len(selection)))
    ours = others = none = 0
    for mutant in sample(packages_of(engine), given.seed, given.sample):
        running = killing.runs(mutant)
        known = [v for v in chosen if v in running]
        fresh = [v for v in running if v not in set(chosen)][:_TRIED]
        killer = killing.first(mutant, [*known, *fresh])
        if killer is None:
            none += 1
        elif killer in known:
            ours += 1
        else:
            others += 1
            if not given.check:
                chosen.append(killer)
    met = f"{ours + others} of {ours + others + none} mutants killed by vectors"
    print(f"{engine}: {met}, {ours} by those chosen before")  # noqa: T201
    return [pool[v] for v in chosen]


def packages_of(engine: str) -> Sequence[str]:
    """The modules of an engine."""
    return packages(HERE.parents[1])[f"solver/engines/{engine.replace('-', '_')}"]


def _write(engine: str, recorded: dict[Path, list[bytes]], chosen: Sequence[Line]) -> None:
    """``chosen`` and as much more of each file as the size allows, in the order of the file."""
    wanted = {line.text for line in chosen}
    spent = sum(len(gzip.compress(line.text, 9)) for line in chosen) // 2  # together they compress better
    share = max(BYTES_AN_ENGINE - spent, 0) / sum(path.stat().st_size for path in recorded)
    (HERE / engine).mkdir(exist_ok=True)
    for path, lines in recorded.items():
        every = max(1, round(1 / share)) if len(lines) > 20 else 1
        kept = [text for i, text in enumerate(lines) if i % every == 0 or text in wanted]
        (HERE / engine / path.name).write_bytes(gzip.compress(b"".join(kept), 9, mtime=0))


if __name__ == "__main__":
    raise SystemExit(main())
