"""The exact search of a node against trying every set, and how far it goes."""

import random
from collections.abc import Iterator, Sequence
from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.solver.engines.yunikorn.ask import SmallestSet


class Law:
    """Each group of tasks has so much that may go; who takes more is kept. ``taken``: who is taken, as told."""

    def __init__(self, groups: Sequence[int], sizes: Sequence[int], most: Sequence[int]) -> None:
        self._groups, self._sizes, self._left = groups, sizes, list(most)
        self.asked = 0

    def lets(self, task: int) -> bool:
        self.asked += 1
        return self._sizes[task] <= self._left[self._groups[task]]

    def take(self, task: int) -> None:
        self._left[self._groups[task]] -= self._sizes[task]

    def give_back(self, task: int) -> None:
        self._left[self._groups[task]] += self._sizes[task]


def search(law: Law, missing: Sequence[int], helps: Sequence[Sequence[int]], steps: int = 10**6) -> SmallestSet:
    """Of tasks 0, 1, ... in this order, who give ``helps`` to each of what is ``missing``."""
    needs = SimpleNamespace(of=[SimpleNamespace(amount=amount) for amount in missing], help_of=lambda task: helps[task])
    return SmallestSet(cast(Any, law), cast(Any, needs), range(len(helps)), steps)


def lawful(law: Law, chosen: Sequence[int]) -> bool:
    taken: list[int] = []
    for task in chosen:
        if not law.lets(task):
            break
        law.take(task)
        taken.append(task)
    for task in taken:
        law.give_back(task)
    return len(taken) == len(chosen)


def sets(missing: Sequence[int], helps: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """All that cover what is missing, by size, those of one size in the order of taking."""
    for size in range(1, len(helps) + 1):
        for chosen in combinations(range(len(helps)), size):
            if all(sum(helps[task][i] for task in chosen) >= lack for i, lack in enumerate(missing)):
                yield list(chosen)


def test_it_finds_the_first_of_the_smallest_lawful_sets() -> None:
    rng = random.Random(1)
    found = 0
    for _ in range(300):
        count = rng.randint(1, 6)
        helps = [[rng.randint(0, 3), rng.choice((0, 1))] for _ in range(count)]
        missing = [rng.randint(0, 6), rng.randint(0, 2)]
        law = Law([rng.randint(0, 1) for _ in helps], [rng.randint(0, 2) for _ in helps], [rng.randint(0, 3)] * 2)
        expected = next((chosen for chosen in sets(missing, helps) if lawful(law, chosen)), None)
        assert search(law, missing, helps).find() == expected, (helps, missing)
        found += expected is not None
    assert 75 < found < 225, "cases with a set, and without"


ALL = Law([0] * 4, [0] * 4, [0])


@pytest.mark.parametrize(("steps", "found"), [(0, None), (9, None), (10, [2, 3]), (11, [2, 3])])
def test_it_tries_no_more_tasks_than_it_may(steps: int, found: list[int] | None) -> None:
    """Alone 0, 1 and 2, from each of which on there is enough, and not 3; 0 with 1 and 2, since 3 is short of what 0
    leaves; 1 with 2; and 2 with 3: ten tasks."""
    helps = [[1, 0], [0, 0], [1, 1], [1, 1]]
    one = search(ALL, [2, 2], helps, steps)
    assert one.find() == found
    assert one.steps >= 0


def test_what_is_left_of_the_steps_is_told() -> None:
    one = search(ALL, [1], [[0], [0], [1], [1]], 10)
    assert (one.find(), one.steps) == ([2], 7), "three are tried"
    assert search(ALL, [9], [[1], [1], [1], [1]], 10).find() is None


def test_nobody_is_tried_where_all_that_are_left_are_short() -> None:
    law = Law([0] * 4, [0] * 4, [0])
    one = search(law, [3, 1], [[1, 0], [1, 0], [1, 0], [1, 0]], 100)
    assert (one.find(), one.steps, law.asked) == (None, 100, 0)


def test_nobody_is_tried_where_too_few_are_left() -> None:
    """The last gives enough and may not go: alone 0, 1, 2; 0 with 1 and 2, 1 with 2; all three: eleven are tried."""
    law = Law([0, 0, 0], [0, 0, 9], [0])
    one = search(law, [4], [[1], [1], [4]], 100)
    assert (one.find(), one.steps) == (None, 89)
