"""Trees of sub groups: what comes next, what goes first, and what is said of those that are none."""

from typing import Any

import msgspec
import pytest

from app.solver.engines.kai.gangs import Gang, compile_gang, gang_problems
from app.solver.model.kai import SubGroup

LEADER = {"name": "leader", "min_available": 1}
WORKERS = [{"name": f"w{i}", "parent": "workers", "min_available": 2} for i in range(3)]


def groups(*given: Any) -> list[SubGroup]:
    return msgspec.convert(list(given), list[SubGroup])


def gang(min_workers: int | None, *, flat: bool = False) -> Gang:
    """A leader, and three groups of workers of which some are needed."""
    return compile_gang(groups(LEADER, *WORKERS, {"name": "workers", "min_sub_group": min_workers}), None, flat=flat)


def pods(**counts: int) -> dict[str, list[int]]:
    """Pods by pod set: the second of w1 is 201."""
    first = {"leader": 0, "w0": 100, "w1": 200, "w2": 300}
    return {name: list(range(first[name], first[name] + count)) for name, count in counts.items()}


EVERYBODY = pods(leader=1, w0=3, w1=3, w2=3)


@pytest.mark.parametrize(
    ("needed", "active", "next_pods"),
    [
        (None, {}, [0, 100, 101, 200, 201, 300, 301]),
        (2, {}, [0, 100, 101, 200, 201]),
        (2, pods(leader=1, w1=2), [100, 101, 300, 301]),  # those below their need come before those at it
        (1, pods(leader=1, w1=2), [100, 101]),  # a gang that stands takes a whole group more
        (1, pods(leader=1, w0=2, w1=2, w2=3), [102]),  # the leader has nobody more to offer
    ],
)
def test_what_comes_next(needed: int | None, active: dict[str, list[int]], next_pods: list[int]) -> None:
    able = {name: [t for t in of if t not in active.get(name, ())] for name, of in EVERYBODY.items()}
    assert gang(needed).next_pods(active, able) == next_pods


@pytest.mark.parametrize(
    ("needed", "active", "first_to_go"),
    [
        (None, pods(leader=1, w0=2, w1=2, w2=2), [0, 100, 101, 200, 201, 300, 301]),
        (None, pods(leader=1, w0=2, w1=3, w2=2), [200]),
        (2, pods(leader=1, w0=2, w1=2, w2=2), [300, 301]),
        (2, pods(leader=1, w0=3, w1=2, w2=2), [100]),
        (2, pods(leader=1, w0=2, w1=2), [0, 100, 101, 200, 201]),
        (2, pods(w0=1), [100]),
    ],
)
def test_what_goes_first(needed: int | None, active: dict[str, list[int]], first_to_go: list[int]) -> None:
    assert gang(needed).first_to_go(active) == first_to_go


def test_whether_it_stands() -> None:
    two = gang(2)
    assert two.needs == 5
    assert two.satisfied(pods(leader=1, w0=2, w2=2))
    assert not two.every_set_satisfied(pods(leader=1, w0=2, w2=2))
    assert not two.satisfied(pods(w0=2, w1=2, w2=2))
    assert [two.rank(pods(leader=1, w0=2, w1=2, w2=n)) for n in (1, 2, 3)] == [0, 1, 2]


def test_a_part_needs_no_more_than_it_has() -> None:
    part = gang(2).part(pods(leader=1, w0=1))
    assert part.next_pods({}, pods(leader=1, w0=1)) == [0, 100]
    assert part.satisfied(pods(leader=1, w0=1))


@pytest.mark.parametrize(
    ("active", "able", "next_pods"),
    [
        ({}, EVERYBODY, [0, 100, 101, 200, 201, 300, 301]),
        (pods(leader=1, w0=2), pods(w0=3, w1=3), [200, 201, 102]),  # w2 has none to place, so that one more of w0 goes
        (pods(leader=1, w0=3, w1=2, w2=2), pods(w0=4, w2=4), [302]),
        (pods(leader=1, w0=2, w1=2), {}, []),
    ],
)
def test_flat_as_many_pod_sets_give_as_lack_pods(
    active: dict[str, list[int]], able: dict[str, list[int]], next_pods: list[int]
) -> None:
    waiting = {name: [t for t in of if t not in active.get(name, ())] for name, of in able.items()}
    assert gang(None, flat=True).next_pods(active, waiting) == next_pods


def test_flat_a_pod_set_needs_one_pod_at_least() -> None:
    given = groups(LEADER, {"name": "spare", "min_available": 0})
    assert compile_gang(given, None, flat=True).needs == 2
    assert compile_gang(given, None, flat=False).needs == 1


def test_flat_pods_are_placed_along_the_tree() -> None:
    given = groups(
        {"name": "a"}, {"name": "z", "parent": "s"}, {"name": "b", "parent": "t"}, {"name": "s"}, {"name": "t"},
        {"name": "y", "parent": "u"}, {"name": "u", "parent": "s"}, {"name": "x", "parent": "s"},
    )  # fmt: skip
    flat, named = compile_gang(given, None, flat=True), "abxyz"
    assert "".join(named[t] for t in flat.placing_order(range(5), named.__getitem__)) == "yxzba"
    assert flat.part({name: [0] for name in named}).placing_order([0, 4], named.__getitem__) == [4, 0]
    tree = compile_gang(given, None, flat=False)
    assert tree.placing_order([4, 0], named.__getitem__) == [4, 0]


def test_flat_all_pod_sets_are_needed() -> None:
    flat = gang(1, flat=True)
    assert flat.needs == 7
    assert not flat.satisfied(pods(leader=1, w0=2, w1=2))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([LEADER, LEADER], {"/asks/0/sub_groups/1/name": "there is a sub group 'leader' already"}),
        ([LEADER | {"parent": "nobody"}], {"/asks/0/sub_groups/0/parent": "no sub group 'nobody'"}),
        (
            [LEADER, {"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}],
            {f"/asks/0/sub_groups/{i}/parent": "it is below itself, or more than 32 levels deep" for i in (1, 2)},
        ),
        ([LEADER, {"name": "w", "parent": "leader"}], {"/task": "'leader' is no sub group that pods are in"}),
    ],
)
def test_what_is_no_tree_is_told_by_its_place(given: list[Any], said: dict[str, str]) -> None:
    found = list(gang_problems(groups(*given), [(("task",), "leader")], ("asks", 0)))
    assert {problem.pointer: problem.detail for problem in found} == said
    for flat in (False, True):
        compile_gang(groups(*given), None, flat=flat)  # told of later: it must not end in between
