"""Who answers, how long a small one is tried here, and what is kept for the next large one."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from app.answering.operations import Answerer, Inquiry, Operation, Reply
from app.base.errors import DeadlinePassed, Unavailable
from app.base.ticket import Class, Ticket, TooSlow, held, holding
from app.solver.question import safe_point
from app.workers.dispatcher import Dispatcher, Offload
from app.workers.worker import Reserve
from tests.support.instead import Instead
from tests.support.threads import threads

NOW = datetime(2026, 11, 21, tzinfo=UTC)


class Calls:
    """Stands for a pool, or for an answerer: what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def run(self, asked: Inquiry, body: bytes) -> Reply:
        self.asked.append(("here", asked.snapshot, held()))
        return Reply(b"here")

    def call(self, asked: Inquiry, body: bytes, ticket: Ticket, **where: Any) -> Reply:
        self.asked.append((asked.snapshot, where.get("reference"), where.get("worker"), ticket.of))
        return Reply(b"there")

    def __len__(self) -> int:
        return 2

    def start(self) -> None:
        self.asked.append("started")

    def close(self) -> None:
        self.asked.append("closed")

    def waiting(self) -> Counter[str]:
        return Counter(large=3)

    def alive(self) -> int:
        return 2

    def busy(self) -> int:
        return 1

    def snapshot_totals(self) -> tuple[int, int]:
        return 4, 40


def dispatcher(pool: Any = None, **more: Any) -> tuple[Dispatcher, Calls]:
    here = Calls()
    return Dispatcher(cast("Answerer", here), pool, threads(), **({"small": 10, "seconds": 60.0} | more)), here


NAMED = b'{"state":{"snapshot":"s"},"configuration":"c"}'


def test_classes_of_requests() -> None:
    made, _ = dispatcher(small=len(NAMED))
    decision, manifest = Operation.DECISION, Operation.IMPORT
    assert made.class_of(decision, NAMED) == "snapshot"
    assert made.class_of(decision, NAMED + b" ") == "large"
    assert made.class_of(decision, b"{}") == "small"
    assert {made.class_of(Operation.SNAPSHOT_PUT, b"x" * size, "s") for size in (2, 99)} == {"snapshot"}
    assert [made.class_of(manifest, b"x" * size) for size in (len(NAMED), len(NAMED) + 1)] == ["slow", "large"]


def test_who_answers_what() -> None:
    pool = Calls()
    made, here = dispatcher(pool)
    decision, large = Inquiry(Operation.DECISION, NOW), b"x" * 11
    assert made.run(decision, b"{}").body == b"here"
    assert made.run(decision, large).body == b"there"
    made.run(decision, NAMED + b" " * 20, ("t", "d"))
    made.run(decision, NAMED)
    made.run(Inquiry(Operation.SNAPSHOT_GET, NOW, "kept"), b"")
    made.run(Inquiry(Operation.PREEMPTION, NOW, "kept", configuration="prod"), b"{}")
    made.run(Inquiry(Operation.IMPORT, NOW), large)
    with holding(Ticket.now("slow", 5)):
        made.run(decision, b"{}")
    assert pool.asked == [
        ("", None, None, "large"), ("t", "d", None, "large"), ("s", "c", None, "large"),
        ("kept", None, None, "snapshot"), ("kept", "prod", None, "snapshot"), ("", None, None, "large"),
        ("", None, None, "slow"),
    ]  # fmt: skip
    assert [one[:2] for one in here.asked] == [("here", "")]
    alone, here = dispatcher()
    assert alone.run(decision, large).body == b"here"


def test_everywhere_is_every_worker() -> None:
    pool = Calls()
    made, _ = dispatcher(pool)
    assert [one.body for one in made.everywhere(Inquiry(Operation.SNAPSHOT_LIST, NOW))] == [b"there"] * 2
    assert [one[2:] for one in pool.asked] == [(0, "large"), (1, "large")]
    alone, _ = dispatcher()
    assert [one.body for one in alone.everywhere(Inquiry(Operation.SNAPSHOT_LIST, NOW))] == [b"here"]
    assert (sum(alone.waiting().values()), alone.workers()) == (0, (0, 0))
    made.close()
    assert pool.asked[-1] == "closed"


def test_what_is_told_of_workers_is_the_pools(instead: Instead) -> None:
    instead("app.workers.dispatcher", ENGINES=())
    pool = Calls()
    made, here = dispatcher(pool)
    made.start()
    assert made.waiting() == {"small": 0, "slow": 0, "large": 3, "snapshot": 0}
    assert (made.workers(), made.snapshot_totals()) == ((2, 1), (4, 40))
    made.close()
    assert (pool.asked, here.asked) == (["started", "closed"], [])
    with pytest.raises(Unavailable, match=r"^the service is shutting down$") as refused:
        made.here(lambda: 7)
    assert refused.value.headers == {"Retry-After": "1"}


class Times:
    """A clock, and how much of the processor was used by then."""

    def __init__(self) -> None:
        self.now = self.used = 0.0

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self.used


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    made = Times()
    for module in ("app.workers.dispatcher", "app.base.ticket"):
        Instead(monkeypatch)(module, time=made)
    return made


class Crowd:
    """Stands for threads with so many small requests inside."""

    def __init__(self, small: int) -> None:
        self._small = small

    def inside(self, of: Class) -> int:
        return self._small if of == "small" else 9


def safe(made: Dispatcher, times: Times, ticket: Ticket, *steps: tuple[float, float]) -> int | None:
    """The first of ``steps``, each an instant and the processor's time by then, at which the work is too slow."""
    reached: list[int] = []

    def work() -> None:
        for i, (times.now, times.used) in enumerate(steps):
            reached.append(i)
            safe_point()

    times.now = times.used = 0.0
    try:
        with holding(ticket):
            made.here(work)
    except TooSlow:
        return reached[-1]
    return None


@pytest.mark.parametrize(
    ("at_once", "pooled", "crowded", "steps", "slow"),
    [
        # On the event loop: two milliseconds of the processor, looked at every two.
        (True, True, False, [(0.0021, 0.0), (0.0042, 0.0019), (0.0063, 0.0021)], 2),
        (True, True, False, [(0.0021, 0.5), (0.0042, 0.5019), (0.0063, 0.5021)], 2),
        (True, True, False, [(0.002, 0.0), (0.004, 0.003)], 1),
        (True, False, False, [(0.0021, 0.0), (0.0030, 0.9)], None),
        (True, False, False, [(0.0021, 0.5), (0.0042, 0.503)], 1),
        # A small one where others can take it: a tenth of a second, or five milliseconds in a crowd.
        (False, True, False, [(0.0051, 0.0), (0.2, 0.1), (0.3, 0.1001)], 2),
        (False, True, True, [(0.0051, 0.0), (0.2, 0.005), (0.3, 0.0051)], 2),
        (False, True, True, [(0.0051, 0.5), (0.2, 0.504), (0.3, 0.506)], 2),
        (False, False, True, [(0.0051, 0.0), (10.0, 9.0)], None),
    ],
)
def test_how_long_a_small_one_is_tried(
    times: Times, at_once: bool, pooled: bool, crowded: bool, steps: list[tuple[float, float]], slow: int | None
) -> None:
    made, _ = dispatcher(Calls() if pooled else None)
    small = Crowd(2 if crowded else 1)
    made.offload = cast("Offload", small)
    assert safe(made, times, Ticket("small", 100.0, 100.0, at_once), *steps) == slow
    assert safe(made, times, Ticket("slow", 100.0, 100.0), (0.1, 0.0), (90.0, 89.0)) is None


def test_work_here_ends_with_its_ticket(times: Times) -> None:
    made, _ = dispatcher(seconds=7.0)
    assert safe(made, times, Ticket("slow", 1.0, 1.0), (0.9, 0.0)) is None
    with pytest.raises(DeadlinePassed, match=r"^no answer within 1 s"):
        safe(made, times, Ticket("slow", 1.0, 1.0), (1.0, 0.0))

    def late() -> None:
        times.now += 7.0
        safe_point()

    with pytest.raises(DeadlinePassed, match=r"^no answer within 7 s"):
        made.here(late)


def test_a_ticket_counts_down(times: Times) -> None:
    ticket = Ticket.now("large", 2.0)
    times.now = 1.5
    assert (ticket.end, ticket.left, held()) == (2.0, 0.5, None)
    ticket.check()
    times.now = 2.0
    assert ticket.left == 0.0
    with pytest.raises(DeadlinePassed):
        ticket.check()
    times.now = 3.0
    assert ticket.left == 0.0
    with holding(ticket):
        with holding(Ticket("small", 1.0, 1.0)):
            assert held() != ticket
        assert held() == ticket
    assert held() is None


def test_a_reserve_is_a_quarter_larger_than_asked_for_and_no_larger_than_its_bound() -> None:
    reserve = Reserve(40 << 20)

    def filled(body: int) -> int:
        reserve.grow(body)
        return reserve._filled  # pyright: ignore[reportPrivateUsage]

    mebibyte = 1 << 20
    assert filled(mebibyte) == 9 * mebibyte * 5 // 4
    assert filled(mebibyte * 5 // 4) == 9 * mebibyte * 5 // 4
    assert filled(2 * mebibyte) == 18 * mebibyte * 5 // 4
    assert filled(100 * mebibyte) == 40 * mebibyte
