"""What a follower keeps at the service: one snapshot, also where others write it, and the last good configuration."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from app.answering.snapshot_bodies import Counts, SnapshotStatus
from app.following import keeping
from app.following.arbiter import Arbiter, Refused, Reply
from app.following.keeping import Keeper, NotYet
from app.following.translating import Translated
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.decision import ConfigurationUsed
from app.solver.model.state import Workload

EVERY = 2.0
WANTED = Configuration(engine="kueue")


class Service:
    """Configurations that are as they should be, and one snapshot."""

    def __init__(self, stored: Configuration = WANTED) -> None:
        self.generation = 0
        self.stored = stored
        self.put: Any = None

    def ask(self, method: str, kind: str, *_: str, body: Any = None, headers: Any = None) -> Reply:
        """As the real one answers. Raises Refused."""
        del headers
        if kind == "configurations":
            if method == "PUT":
                raise Refused(422, "invalid", "no such parent")
            return Reply(msgspec.json.encode({"configuration": self.stored}), '"1"')
        self.put = body if method == "PUT" else self.put
        if method == "POST" and body.generation != self.generation:
            raise Refused(409, "stale_generation", "stale")
        self.generation += method != "GET"
        used = ConfigurationUsed(digest="d")
        counts = Counts(nodes=0, workloads=0, tasks=0, reservations=0, asks=0)
        return Reply(msgspec.json.encode(SnapshotStatus(
            name="s", generation=self.generation, engine="kueue", configuration=used, counts=counts, age_seconds=0.0,
            idle_seconds=0.0, bytes=1,
        )), None)  # fmt: skip


def turn(keeper: Keeper) -> str | None:
    """What a follower does every two seconds; why it leaves the snapshot to somebody else."""
    keeper.check()
    if (left := keeper.left()) is not None:
        return left
    try:
        keeper.keep(Translated(WANTED, {}, {}, {}, [], {}, {}), {}, writer=False)
    except NotYet as error:
        return str(error)
    return None


def test_two_that_write_one_snapshot_do_not_fight_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 1000.0
    monkeypatch.setattr(keeping, "time", SimpleNamespace(monotonic=lambda: clock))
    service = Service()
    two = [Keeper(cast(Arbiter, service), "c", "s") for _ in range(2)]
    said: list[str | None] = []
    both = 0
    for _ in range(1800):
        clock += EVERY
        told = [turn(keeper) for keeper in two]
        said += told
        both += told == [None, None]
    puts = sum(keeper.puts.total() for keeper in two)
    assert puts < 60, "they took it from one another again and again"
    assert both < 60
    assert sum(one is None for one in said) > 1700, "nobody kept it"
    assert "is written by somebody else too" in str(next(one for one in said if one))
    left = two[0] if two[0].left() is None else two[1]
    for _ in range(400):
        clock += EVERY
        turn(left)
    assert turn(left) is None, "who is alone keeps it"
    assert left.status is not None
    assert left.status.generation == service.generation


def test_a_snapshot_that_was_written_once_by_another_is_taken_back_at_once() -> None:
    service = Service()
    keeper = Keeper(cast(Arbiter, service), "c", "s")
    assert turn(keeper) is None
    service.generation += 1
    assert turn(keeper) is None
    assert keeper.puts == {"configuration": 1, "stale_generation": 1}


def test_a_configuration_that_is_refused_is_a_finding_and_the_last_good_one_stays() -> None:
    service = Service(Configuration(engine="kueue", queues=[Queue(name="known")]))
    wanted = Configuration(engine="kueue", queues=[Queue(name="known"), Queue(name="wrong", parent="nobody")])
    running = {name: Workload(id=name, queue=name) for name in ("known", "wrong")}
    keeper = Keeper(cast(Arbiter, service), "c", "s")
    keeper.keep(Translated(wanted, {}, running, {}, [], {}, {}), {}, writer=True)
    assert [(one.severity, one.detail) for one in keeper.refused] == [("error", "no such parent")]
    assert [one.id for one in service.put.state.workloads] == ["known"]
    with pytest.raises(NotYet, match="by another follower"):
        Keeper(cast(Arbiter, service), "c", "s").keep(Translated(wanted, {}, {}, {}, [], {}, {}), {}, writer=False)
