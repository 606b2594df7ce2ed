"""Which mutants a run meets."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.mutants.operators import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]


def sample(modules: Sequence[str], seed: int, number: int) -> list[Mutant]:
    """``number`` mutants of these modules (0: all), in the order of the code; the same for the same tree and seed."""
    every = [mutant for path in modules for mutant in mutants(path, (ROOT / path).read_text())]
    if not number or number >= len(every):
        return every
    drawn = sorted(Random(seed).sample(range(len(every)), number))
    return [every[i] for i in drawn]
