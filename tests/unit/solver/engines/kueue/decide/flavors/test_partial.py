"""Bisection over a common scaling of pod sets."""

from app.solver.engines.kueue.cycle import largest, may_shrink, scaled
from app.solver.model.state import Task


def pod_sets(*of: tuple[int, int | None]) -> list[Task]:
    return [Task(name=f"p{i}", count=count, min_count=least) for i, (count, least) in enumerate(of)]


def test_pod_sets_give_up_their_part_of_what_they_may_lose() -> None:
    tasks = pod_sets((10, 2), (4, None), (6, 2))
    assert scaled(tasks, 0, 12) == [10, 4, 6]
    assert scaled(tasks, 6, 12) == [6, 4, 4]
    assert scaled(tasks, 12, 12) == [2, 4, 2]
    assert scaled(tasks, 1, 12) == [10, 4, 6], "rounded down for each"


def test_the_largest_size_that_can_be_had() -> None:
    tasks = pod_sets((100, 1))
    tried: list[int] = []

    def attempt(counts: list[int]) -> int | None:
        tried.append(counts[0])
        return counts[0] if counts[0] <= 37 else None

    assert largest(tasks, attempt) == ([37], 37)
    assert len(tried) <= 8


def test_smaller_sizes_are_counted_down_from_what_there_was_before_some_was_done() -> None:
    tasks = [
        Task(name="a", count=6, min_count=5, full_count=10), Task(name="b", count=10, min_count=5),
        Task(name="c", count=1, full_count=3), Task(name="d", count=0, min_count=1, full_count=2),
    ]  # fmt: skip
    assert may_shrink(tasks[:1])
    assert scaled(tasks, 0, 11) == [10, 10, 3, 0]
    assert scaled(tasks, 11, 11) == [5, 5, 3, 0]


def test_nothing_to_be_had() -> None:
    assert largest(pod_sets((5, 2)), lambda _: None) is None
    assert largest(pod_sets((5, 5), (3, None)), lambda counts: counts) is None


def test_who_may_shrink() -> None:
    assert may_shrink(pod_sets((5, None), (3, 2)))
    assert not may_shrink(pod_sets((5, None), (3, 3)))


def test_where_fewer_is_harder_the_bisection_finds_what_it_meets() -> None:
    """Only 8 of 10 can be had: bisection tries 5 first and, finding nothing, goes on below."""
    assert largest(pod_sets((10, 0)), lambda counts: counts if counts == [8] else None) is None


def test_where_fewer_is_never_harder_the_largest_size_is_found() -> None:
    """Each size tried one after the other, from giving up nothing on."""
    for tasks in (pod_sets((6, 0)), pod_sets((4, 1), (7, 3)), pod_sets((2, None), (9, 1))):
        slack = sum(task.count - (task.count if task.min_count is None else task.min_count) for task in tasks)
        for most in range(slack + 2):

            def attempt(counts: list[int], most: int = most, tasks: list[Task] = tasks) -> int | None:
                given_up = sum(task.count for task in tasks) - sum(counts)
                return given_up if given_up >= most else None

            sizes = (scaled(tasks, given_up, slack) for given_up in range(slack + 1))
            expected = next(((counts, found) for counts in sizes if (found := attempt(counts)) is not None), None)
            assert largest(tasks, attempt) == expected
