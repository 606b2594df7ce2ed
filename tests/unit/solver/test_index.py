"""Positions by id, followed from version to version, are those of the list."""

from hypothesis import given
from hypothesis import strategies as st

from app.solver.apply import Positions
from app.solver.model.state import Workload
from tests.support.profiles import examples


def workload(name: str) -> Workload:
    return Workload(id=name, queue="q")


@given(st.lists(st.tuples(st.sets(st.integers(0, 11)), st.integers(0, 4)), max_size=8), st.integers(0, 6))
@examples(60)
def test_positions_that_follow_are_those_of_the_list(steps: list[tuple[set[int], int]], first: int) -> None:
    names: list[str] = [f"w{i}" for i in range(first)]
    at, made = Positions.of([workload(name) for name in names]), first
    for places, more in steps:
        before, said = list(names), dict(at)
        gone: list[str] = [names[place] for place in sorted(places, reverse=True) if place < len(names)]
        added: list[str] = [f"w{made + i}" for i in range(more)]
        made += more
        names = [name for name in names if name not in gone] + added
        following = at.after(gone, added)
        assert {name: following[name] for name in following} == {name: i for i, name in enumerate(names)}
        assert (len(following), list(following)) == (len(names), names)
        assert all(name not in following and following.get(name) is None for name in gone)
        assert dict(at) == said == {name: i for i, name in enumerate(before)}, "a version that is followed stays"
        at = following


def test_the_last_of_several_counts() -> None:
    assert dict(Positions.of([workload(name) for name in "aba"])) == {"a": 2, "b": 1}
