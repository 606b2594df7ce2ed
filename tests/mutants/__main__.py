"""``python -m tests.mutants``: how many of a seeded sample of mutants the tests notice, package by package.

The same tree, seed, sample and package give the same mutants. A mutant of an engine meets the committed vectors first.
What each test reaches is recorded, on the code as it is; a mutant that is left meets the tests that run the changed
lines (all of its package's where they run at import), the quickest first, until one fails, then those that start
processes with the code, and no more than BUDGET seconds of them.
"""

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutants.equivalent import equivalents, key
from tests.mutants.operators import Mutant
from tests.mutants.packages import chosen_tests, files, package_of, packages
from tests.mutants.recordings import Reached, Recordings
from tests.mutants.sampling import sample
from tests.mutants.workshop import Workshop, may_notice, workshop
from tests.vectors.files import HERE, read
from tests.vectors.killing import Killing

ROOT = Path(__file__).resolve().parents[2]
_RECORDING = 3600.0
"""Seconds for a batch of files of tests, while they are watched."""
_BATCH = 16


class Options(NamedTuple):
    """What a run is asked for."""

    seed: int
    sample: int
    """Mutants of each package; 0: all."""
    budget: float
    tests: list[str]
    """Files of tests; none: those of the package."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--package", default="", help="one package, or the start of the paths of modules, without app/")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=25, help="mutants of each package; 0: all")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of tests that a mutant meets at most")
    parser.add_argument(
        "--tests", nargs="*", default=[], help="files or folders of tests, instead of all of the package's"
    )
    parser.add_argument("--list", action="store_true", help="only show the sample, as diffs")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    try:
        options = Options(given.seed, given.sample, given.budget, chosen_tests(ROOT, given.tests))
    except FileNotFoundError as missing:
        parser.error(f"no tests at {missing}")
    chosen = _chosen(given.package)
    if not chosen:
        parser.error(f"no module of app begins with {given.package!r}")
    drawn = {package: sample(modules, options.seed, options.sample) for package, modules in chosen.items()}
    if given.list:
        for mutant in (mutant for some in drawn.values() for mutant in some):
            print(mutant.difference((ROOT / mutant.path).read_text()), "\n")  # noqa: T201
        return 0
    with workshop(ROOT) as shop:
        table = [_package(shop, package, some, options) for package, some in drawn.items()]
    _show(table)
    return 0


def _stop(number: int, frame: object) -> None:
    """Leave by an exception, so that what was started is stopped and the copy goes away."""
    sys.exit(128 + number)


def _chosen(asked: str) -> dict[str, list[str]]:
    """Modules by package, of the package named or of those whose path begins so."""
    every = packages(ROOT)
    if asked in every:
        return {asked: every[asked]}
    fitting = [path for modules in every.values() for path in modules if path.startswith(f"app/{asked}")]
    out: dict[str, list[str]] = {}
    for path in fitting:
        out.setdefault(package_of(Path(path)), []).append(path)
    return out


def _watched(shop: Workshop, package: str, options: Options) -> list[Reached]:
    """The tests that may notice a change in a package and pass on the code as it is, the quickest first."""
    chosen = options.tests or files(shop.root, package)
    kept = Recordings(shop.root, ROOT / ".cache" / "mutants")
    stale = [file for file in chosen if kept.read(file) is None]
    for start in range(0, len(stale), _BATCH):
        batch = stale[start : start + _BATCH]
        begun = time.monotonic()
        found = shop.record(batch, _RECORDING)
        for file in batch:
            kept.keep(file, {name: one for name, one in found.items() if name.split("::")[0] == file})
        _say(f"  {len(found)} tests of {len(batch)} files watched in {time.monotonic() - begun:.0f} s")
    tests = [test for file in chosen for test in kept.read(file) or ()]
    red = [test.name for test in tests if not test.passed]
    _say(f"  {len(tests)} tests{f'; left out, as they fail: {red}' if red else ''}")
    return sorted((test for test in tests if test.passed), key=lambda test: (test.seconds, test.name))


def _package(shop: Workshop, package: str, chosen: Sequence[Mutant], options: Options) -> tuple[str, Counter[str]]:
    """Name and how many mutants of the sample met which end."""
    _say(f"{package}: {len(chosen)} mutants")
    known = equivalents()
    told = _told_by_vectors(package, [mutant for mutant in chosen if key(mutant) not in known])
    done = known.keys() | told
    tests = _watched(shop, package, options) if any(key(mutant) not in done for mutant in chosen) else []
    met = [[] if key(mutant) in done else _met(mutant, tests, options.budget) for mutant in chosen]
    names = {test.name for some in met for test in some}
    ends: Counter[str] = Counter()
    with shop.collected([test.name for test in tests if test.name in names]):
        for i, (mutant, some) in enumerate(zip(chosen, met, strict=True)):
            end = shop.verdict(mutant, some) if some else "not reached"
            end = "equivalent" if key(mutant) in known else "killed" if key(mutant) in told else end
            ends[end] += 1
            _say(f"  {i + 1}/{len(chosen)} {mutant.path}:{mutant.line} {end}")
            if end not in ("killed", "timed out", "equivalent"):
                _say(mutant.difference((shop.root / mutant.path).read_text()))
    return package, ends


def _told_by_vectors(package: str, chosen: Sequence[Mutant]) -> set[tuple[str, str, str]]:
    """Mutants of an engine on which a committed vector disagrees: much the cheapest way to ask."""
    paths = sorted(HERE.glob(f"{package.rpartition('/')[2]}/*.jsonl.gz")) if "engines/" in package else []
    if not paths:
        return set()
    killing = Killing([vector for path in paths for vector in read(path)])
    found = {key(mutant) for mutant in chosen if killing.first(mutant, killing.runs(mutant)) is not None}
    _say(f"  {len(found)} killed by the committed vectors")
    return found


def _met(mutant: Mutant, tests: Sequence[Reached], budget: float) -> list[Reached]:
    """The tests that a mutant meets, in order."""
    met: list[Reached] = []
    seconds = 0.0
    for test in may_notice(mutant, tests):
        if met and seconds + test.seconds > budget:
            break
        met.append(test)
        seconds += test.seconds
    return met


def _show(table: Sequence[tuple[str, Counter[str]]]) -> None:
    """Kill rates: of all mutants but the equivalent ones; one that doesn't come to an end is noticed too."""
    columns = ("killed", "timed out", "survived", "not reached", "equivalent")
    _say(f"\n{'package':28}{''.join(f'{column:>13}' for column in columns)}{'rate':>9}")
    total: Counter[str] = Counter()
    for package, ends in table:
        total += ends
        _say(_row(package, ends, columns))
    if len(table) > 1:
        _say(_row("all", total, columns))


def _row(name: str, ends: Counter[str], columns: Sequence[str]) -> str:
    noticed = ends["killed"] + ends["timed out"]
    judged = ends.total() - ends["equivalent"]
    rate = f"{noticed / judged:9.1%}" if judged else f"{'-':>9}"
    return f"{name:28}{''.join(f'{ends[column]:13}' for column in columns)}{rate}"


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
