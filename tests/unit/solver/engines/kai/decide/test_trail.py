"""Which failure of a job is its main one, and what a recorder keeps of the rest."""

from itertools import pairwise

import pytest

from app.solver.engines.kai.chance import Trail
from app.solver.engines.kai.explain import Recorder
from app.solver.engines.kai.queue_order import OverBound

TELLING = ["no-easier", "no-room", "too-few-gpus", "too-few-victims", "saturation", "over-limit", "search-cut-short"]
"""From the failure that tells least of what stands in the way; saturation stands for all that a validator refuses."""
ALIKE = [
    ("no-room", "no-victims"), ("no-room", "too-few-gpus-free"), ("saturation", "over-fair-share"),
    ("over-limit", "non-preemptible-over-quota"),
]  # fmt: skip


def main(*rules: str) -> str | None:
    """The main one of these failures of a job, in this order."""
    trail = Trail()
    trail.begin(3, "reclaim")
    for rule in rules:
        trail.note(rule, f"about {rule}", pods=1)
    found = trail.main(3)
    assert found is None or found == ("reclaim", found[1], f"about {found[1]}")
    return None if found is None else found[1]


@pytest.mark.parametrize(("less", "more"), list(pairwise(TELLING)))
def test_the_failure_that_tells_most_is_the_main_one(less: str, more: str) -> None:
    assert main(less) == less
    assert main(less, more) == main(more, less) == more


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_of_those_that_tell_as_much_the_latest_is(one: str, other: str) -> None:
    assert (main(one, other), main(other, one)) == (other, one)


def test_what_succeeded_is_no_failure() -> None:
    assert main("placed", "solved") is None
    assert main("no-easier", "solved", "placed") == "no-easier"


def test_jobs_and_actions_are_told_apart() -> None:
    trail = Trail()
    for job, action in ((1, "allocate"), (2, "reclaim")):
        trail.begin(job, action)
        trail.note("no-room", action)
    trail.begin(1, "preempt")
    trail.cut_short()
    assert trail.main(1) == (
        "preempt", "search-cut-short", "the search for a place ran out of steps before it had seen every scenario",
    )  # fmt: skip
    assert trail.main(2) == ("reclaim", "no-room", "reclaim")
    assert trail.main(3) is None
    assert (trail.of(1), trail.searches(1)) == ([], [])


def test_a_recorder_counts_what_ended_alike_by_part() -> None:
    trail = Recorder()
    trail.begin(1, "reclaim")
    trail.note("no-room", "x", victims=1)
    for size in (1, 1, 2):
        trail.part(size, 2)
        trail.note("no-room", "x", victims=size + 5)
    trail.note("solved", "y")
    trail.begin(1, "preempt")
    trail.note("no-room", "x")
    found = [(t.action, t.part, t.of, t.rule, t.detail, t.count, t.numbers) for t in trail.of(1)]
    assert found == [
        ("reclaim", 0, 0, "no-room", "x", 1, {"victims": 1}), ("reclaim", 1, 2, "no-room", "x", 2, {"victims": 6}),
        ("reclaim", 2, 2, "no-room", "x", 1, {"victims": 7}), ("reclaim", 2, 2, "solved", "y", 1, {}),
        ("preempt", 0, 0, "no-room", "x", 1, {}),
    ]  # fmt: skip
    assert trail.main(1) == ("preempt", "no-room", "x")
    assert trail.of(2) == []


def test_a_search_is_one_once_it_may_take_from_somebody() -> None:
    trail = Recorder()
    trail.begin(1, "reclaim")
    assert trail.searches(1) == []
    trail.search([4, 5])
    trail.begin(1, "preempt")
    trail.search([6])
    assert [(search.action, search.eligible) for search in trail.searches(1)] == [("reclaim", {4, 5}), ("preempt", {6})]


class _Listed:
    """A scenario of three pods of two workloads."""

    listed = {0: [1, 2], 3: [4]}
    pods = 3


def test_a_part_without_a_place_is_told_by_the_bound_that_it_met() -> None:
    bound = OverBound("over-limit", queue=0, resource=2, bound=1, held=1, requested=1)
    for met, rule in ((None, "too-few-victims"), (bound, "over-limit")):
        trail = Recorder()
        trail.begin(1, "preempt")
        trail.no_room(_Listed(), met)  # pyright: ignore[reportArgumentType]  # all that is asked of one
        (found,) = trail.of(1)
        assert (found.rule, found.numbers) == (rule, {"victims": 2, "pods": 3})
