"""The jobs that fare most differently, by hand."""

from typing import Any

from app.answering.sources import Compiled
from app.simulations.core.run import Parting, simulate
from app.simulations.core.sink import FIRST, Silence, time_of
from app.simulations.schemas import JobLine
from app.simulations.service import Differing
from tests.support import released
from tests.unit.simulations.running import request_for

S = 10**6


def line(job: str, lasted: float | None, evictions: int = 0, status: Any = None) -> JobLine:
    """A job that was submitted at second 5 of 2000, and finished after so long; None: it didn't."""
    ended = None if lasted is None else time_of(FIRST + round((5 + lasted) * S))
    status = status or ("waiting" if lasted is None else "finished")
    return JobLine(
        job=job, queue="q", status=status, submitted_at=time_of(FIRST + 5 * S), ended_at=ended, evictions=evictions
    )


def test_ending_at_all_counts_most_then_how_much_later_then_evictions() -> None:
    of = Differing()
    first = [
        line("same", 10, 1), line("never", None), line("ends", 10), line("later", 10), line("sooner", 100.5),
        line("often", 10, 1), line("often-alive", None, 1), line("alive", None, 3), line("given-up", 10), line("z", 10),
    ]  # fmt: skip
    for one in first:
        of.add("as it is", one, is_first=True)
    second = [
        line("same", 10, 1), line("never", 7), line("ends", None), line("later", 30, 9), line("sooner", 80),
        line("often", 10, 4), line("often-alive", None, 3), line("alive", None, 3), line("given-up", 9, 0, "cancelled"),
        line("z", 11, 1), line("unknown", 3),
    ]  # fmt: skip
    for one in second:
        of.add("other", one, is_first=False)
    of.add("third", line("z", 12), is_first=False)
    found = [(d.variant, d.job, d.completion, d.completion_here, d.evictions, d.evictions_here) for d in of.largest()]
    assert found == [
        ("other", "ends", 10, None, 0, 0), ("other", "given-up", 10, None, 0, 0), ("other", "never", None, 7, 0, 0),
        ("other", "sooner", 100.5, 80, 0, 0), ("other", "later", 10, 30, 0, 9), ("other", "z", 10, 11, 0, 1),
        ("other", "often", 10, 10, 1, 4), ("other", "often-alive", None, None, 1, 3), ("third", "z", 10, 12, 0, 0),
    ]  # fmt: skip


def test_twenty_of_each_variant_are_told() -> None:
    of = Differing()
    for i in range(30):
        of.add("", line(f"j{i:02}", 10), is_first=True)
    for i in range(30):
        of.add("b", line(f"j{i:02}", 11 + i * 7 % 30), is_first=False)
    found = of.largest()
    assert [d.completion_here for d in found] == list(range(40, 20, -1))


def test_of_equal_differences_evictions_decide_and_then_the_id() -> None:
    of = Differing()
    for name in "abc":
        of.add("", line(name, 10, 2), is_first=True)
    for name, evictions in (("c", 2), ("b", 2), ("a", 0)):
        of.add("x", line(name, 20, evictions), is_first=False)
    assert [d.job for d in of.largest()] == ["a", "b", "c"]


def test_where_courses_part_and_by_which_rule() -> None:
    """Of three releases in turn the second is the first's; another engine parts without a word on what differs."""
    parting, asked = Parting(), [{"ask": released.WAITS, "submitted_at": "5s", "duration": 100}]
    for number, (name, of) in enumerate({"old": "0.13", "as old": "0.13", "new": "0.17", "other": None}.items()):
        configuration = released.configuration(of or "0.13")
        if of is None:
            configuration |= {"engine": "yunikorn", "settings": {}}
            configuration["queues"] = [{"name": "root"}, {"name": "root.a", "parent": "root"}]
        state = released.STATE if of is not None else {"nodes": released.STATE["nodes"]}
        asks = asked if of is not None else [{**asked[0], "ask": {**released.WAITS, "queue": "root.a"}}]
        remaining = {"r": 50} if of is not None else {}
        request = request_for(configuration, asks, state=state, remaining=remaining, options={})
        course = parting.other(name) if number else parting.first(name)
        simulate(request, Compiled(None), Silence(), lambda: False, course=course)
    assert set(parting.parted) == {"new", "other"}
    new = parting.parted["new"]
    assert (new.round, new.at) == (1, time_of(FIRST + 5 * S))
    assert [(one.ask, one.field, one.values, one.rules) for one in new.differences] == [
        ("x", "node", {"old": "n", "new": None}, [released.RULE])
    ]
    assert parting.parted["other"].differences == []
