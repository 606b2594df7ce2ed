"""Partial admission: the largest common scaling of an ask's pod sets that can be had.

Kueue searches one number, how many units all pod sets give up together, by bisection; each pod set gives up its
part in proportion to what it may lose. Source of the rule: Kueue's pod set reducer.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from app.solver.model.state import Task

R = TypeVar("R")


def may_shrink(tasks: Sequence[Task]) -> bool:
    """Whether some pod set may start with fewer than its count."""
    return any(t.min_count is not None and t.min_count < t.count for t in tasks)


def scaled(tasks: Sequence[Task], given_up: int, at_most: int) -> list[int]:
    """Counts when ``given_up`` of the ``at_most`` units that all may lose together are given up; rounded down per
    pod set, so that the pod sets keep their proportions and never lose more than they may."""
    return [t.count - _slack(t) * given_up // at_most for t in tasks]


def largest(tasks: Sequence[Task], attempt: Callable[[list[int]], R | None]) -> tuple[list[int], R] | None:
    """The counts that give up least among those the bisection meets, with what ``attempt`` made of them.

    Bisection presumes that fewer units are never harder to place. Preemption can break that; then this finds what
    Kueue finds, which need not be the largest. At most 1 + log2(all slack) attempts.
    """
    slack = sum(map(_slack, tasks))
    if slack == 0:
        return None
    low, high = 0, slack + 1
    best: tuple[int, list[int], R] | None = None
    while low < high:
        middle = (low + high) // 2
        counts = scaled(tasks, middle, slack)
        found = attempt(counts)
        if found is None:
            low = middle + 1
        else:
            high = middle
            best = (middle, counts, found)
    return (best[1], best[2]) if best is not None and best[0] == low else None


def _slack(task: Task) -> int:
    return max(0, task.count - (task.count if task.min_count is None else task.min_count))
