"""Which vector tells a mutant from the code: one that decides otherwise, or not at all."""

import gc
from pathlib import Path

import pytest

from tests.mutants.operators import Mutant, mutants
from tests.vectors.files import HERE, read
from tests.vectors.killing import Killing

ROOT = Path(__file__).parents[2]
SHARE = "app/solver/engines/kueue/fair_share.py"


@pytest.fixture(scope="module")
def killing() -> Killing:
    """A few decisions of Kueue: plain ones, then ones of fair sharing; after a service has started in this process."""
    gc.freeze()
    return Killing([*read(HERE / "kueue" / "classic.jsonl.gz", 0, 4), *read(HERE / "kueue" / "fair.jsonl.gz", 0, 4)])


@pytest.mark.slow
def test_a_vector_that_runs_the_line_and_decides_otherwise_kills(killing: Killing) -> None:
    source = (ROOT / SHARE).read_text()
    ends = {one.after: killing.first(one, killing.runs(one)) for one in mutants(SHARE, source)}
    assert {v for v in ends.values() if v is not None} <= {4, 5, 6, 7}, "the share decides where sharing is fair"
    assert any(v is not None for v in ends.values())
    assert None in ends.values(), "a few vectors don't tell everything"


@pytest.mark.slow
def test_the_code_as_it_is_survives(killing: Killing) -> None:
    source = (ROOT / SHARE).read_text()
    some = next(one for one in mutants(SHARE, source) if killing.runs(one))
    same = Mutant(some.path, some.line, some.function, some.lines, source, some.before, some.before)
    assert killing.first(same, range(8)) is None
