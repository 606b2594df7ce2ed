"""The rounds that docs/engines/kueue.md works out: nothing but Kueue's rules, and no end."""

from typing import Any

from tests.unit.solver.engines.kueue.cluster import asks, configuration, queue, runs
from tests.unit.solver.engines.kueue.rounds import cycles

WHILE_BORROWING = {"reclaim_within_cohort": "LowerPriority", "borrow_within_cohort": {"policy": "LowerPriority"}}
FINAL = ["LessThanOrEqualToFinalShare"]


def pair(name: str, cpu: int, gpu: int, **more: Any) -> dict[str, Any]:
    """A queue or cohort with quota of both."""
    return queue(name, **more) | {"quota": {"cpu": {"guaranteed": cpu}, "gpu": {"guaranteed": gpu}}}


def work(name: str, queue_name: str, priority: int = 0, **requests: int) -> dict[str, Any]:
    task = {"name": "main", "requests": requests, "flavors": dict.fromkeys(requests, "default")}
    return runs(name, queue_name, 0, priority) | {"tasks": [task]}


def waits(name: str, queue_name: str, priority: int = 0, **requests: int) -> dict[str, Any]:
    return asks(name, queue_name, 0, priority) | {"tasks": [{"name": "main", "requests": requests}]}


def final_share(of: dict[str, Any]) -> dict[str, Any]:
    of["settings"]["kueue"] |= {"fair_sharing": True, "preemption_strategies": FINAL}
    return of


def test_classical_a_small_loan_goes_before_the_large_one_that_preempted_it() -> None:
    """x borrows 1 from ``mid`` (level 1), y borrows 2 and so from the root too (level 2), at a higher priority."""
    of = configuration(
        queue("root", 1), queue("mid", 1, "root"), queue("a", 0, "mid"),
        queue("b", 0, "mid", preemption=WHILE_BORROWING),
    )  # fmt: skip
    moves = cycles(of, [runs("x", "a", 1)], [asks("y", "b", 2, priority=1)], 6)
    assert moves == [([], ["x"]), (["x"], [])] * 3


def test_classical_two_resources_below_one_cohort() -> None:
    """y stops x for cpu and h for gpu. x is within nominal quota again and comes first; so y no longer fits, and h,
    which waits behind y, takes the gpu."""
    of = configuration(
        pair("co", 0, 2), pair("a", 1, 0, parent="co"), pair("c", 0, 0, parent="co"),
        pair("b", 0, 0, parent="co", preemption=WHILE_BORROWING),
    )  # fmt: skip
    running = [work("x", "a", cpu=1), work("g", "a", 3, gpu=1), work("h", "c", gpu=1)]
    moves = cycles(of, running, [waits("y", "b", 2, cpu=1, gpu=1)], 6)
    assert [(sorted(started), sorted(stopped)) for started, stopped in moves] == [
        ([], ["h", "x"]),
        (["h", "x"], []),
    ] * 3


def test_fair_two_resources_below_one_cohort() -> None:
    """y reclaims gpu, within nominal quota of all that is contested. Its cpu is borrowed, a share of 1000, and x, at
    weight 2 a share of 500, comes first."""
    of = final_share(
        configuration(
            pair("co", 4, 0), pair("a", 0, 0, parent="co", weight=2),
            pair("b", 0, 1, parent="co", preemption={"reclaim_within_cohort": "Any"}),
        )
    )  # fmt: skip
    moves = cycles(of, [work("x", "a", gpu=1)], [waits("y", "b", cpu=4, gpu=1)], 6)
    assert moves == [([], ["x"]), (["x"], [])] * 3


def test_fair_one_resource_below_two_cohorts() -> None:
    """y is within the nominal quota of its queue, so that it reclaims whatever the shares. But it comes up through
    ``mid``, which borrows for z: a share of 500, against x's 250 at weight 2."""
    of = final_share(
        configuration(
            queue("root", 1), queue("mid", parent="root"), queue("a", 0, "root", weight=2),
            queue("b", 1, "mid", preemption={"reclaim_within_cohort": "LowerPriority"}), queue("c", 0, "mid"),
        )
    )  # fmt: skip
    running = [runs("x", "a", 1), runs("z", "c", 1, priority=5)]
    moves = cycles(of, running, [asks("y", "b", 1, priority=1)], 6)
    assert moves == [([], ["x"]), (["x"], [])] * 3
