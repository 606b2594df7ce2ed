"""``python -m tests.mutants``: how many of a seeded sample of mutants the tests notice, package by package.

The same tree, seed, sample and package give the same mutants. What each test reaches is recorded first, on the code as
it is; a mutant meets the tests that call the function around it (all of its package's where it is outside of any), the
quickest first, until one fails, and no more than BUDGET seconds of them.
"""

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.mutants.equivalent import equivalents, key
from tests.mutants.operators import Mutant, mutants
from tests.mutants.packages import arguments, package_of, packages
from tests.mutants.workshop import Reached, Workshop, workshop

ROOT = Path(__file__).resolve().parents[2]
_RECORDING = 3600.0
"""Seconds for all tests of a package, while they are watched."""
_START = 40.0
"""Seconds that a run may take beside its tests; and tests may take this times as long as on the code as it is."""
_FACTOR = 5.0


class Options(NamedTuple):
    """What a run is asked for."""

    seed: int
    sample: int
    """Mutants of each package; 0: all."""
    budget: float
    tests: list[str]
    """What pytest collects; none: where the tests of the package are."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--package", default="", help="one package, or the start of the paths of modules, without app/")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=25, help="mutants of each package; 0: all")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of tests that a mutant meets at most")
    parser.add_argument("--tests", nargs="*", default=[], help="paths of tests, instead of all of the package's")
    parser.add_argument("--list", action="store_true", help="only show the sample, as diffs")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    options = Options(given.seed, given.sample, given.budget, given.tests)
    chosen = _chosen(given.package)
    if not chosen:
        parser.error(f"no module of app begins with {given.package!r}")
    samples = {package: _sample(modules, options) for package, modules in chosen.items()}
    if given.list:
        for mutant in (mutant for sample in samples.values() for mutant in sample):
            print(mutant.difference((ROOT / mutant.path).read_text()), "\n")  # noqa: T201
        return 0
    with workshop(ROOT) as shop:
        table = [_package(shop, package, sample, options) for package, sample in samples.items()]
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


def _sample(modules: Sequence[str], options: Options) -> list[Mutant]:
    every = [mutant for path in modules for mutant in mutants(path, (ROOT / path).read_text())]
    if not options.sample or options.sample >= len(every):
        return every
    drawn = sorted(Random(options.seed).sample(range(len(every)), options.sample))
    return [every[i] for i in drawn]


def _package(shop: Workshop, package: str, sample: Sequence[Mutant], options: Options) -> tuple[str, Counter[str]]:
    """Name and how many mutants of the sample met which end."""
    _say(f"{package}: {len(sample)} mutants; its tests are watched first")
    begun = time.monotonic()
    reached = shop.record(options.tests or arguments(shop.root, package), _RECORDING)
    red = [test.name for test in reached if not test.passed]
    _say(
        f"  {len(reached)} tests in {time.monotonic() - begun:.0f} s{f'; left out, as they fail: {red}' if red else ''}"
    )
    passing = sorted((test for test in reached if test.passed), key=lambda test: (test.seconds, test.name))
    ends: Counter[str] = Counter()
    known = equivalents()
    with shop.collected([test.name for test in passing]):
        for i, mutant in enumerate(sample):
            end = "equivalent" if key(mutant) in known else _end(shop, mutant, passing, options.budget)
            ends[end] += 1
            _say(f"  {i + 1}/{len(sample)} {mutant.path}:{mutant.line} {end}")
            if end not in ("killed", "timed out", "equivalent"):
                print(mutant.difference((ROOT / mutant.path).read_text()), flush=True)  # noqa: T201
    return package, ends


def _end(shop: Workshop, mutant: Mutant, tests: Sequence[Reached], budget: float) -> str:
    """What became of a mutant: ``killed``, ``timed out``, ``survived`` or ``not reached``."""
    if mutant.function is not None:
        name = f"{mutant.path}:{mutant.function[0]}"
        tests = [test for test in tests if name in test.functions]
    if not tests:
        return "not reached"
    met: list[str] = []
    seconds = 0.0
    for test in tests:
        if met and seconds + test.seconds > budget:
            break
        met.append(test.name)
        seconds += test.seconds
    return shop.verdict(mutant, met, _START + _FACTOR * seconds)


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
