"""What a follower keeps: why a snapshot is put whole is counted, however its loss is noticed."""

from dataclasses import replace as replaced
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from app.following.grouped import Translated, translate
from app.following.keeping import ApiError, Arbiter, Keeper, Reply, use_of
from app.following.translator import Translator
from app.solver.model.configuration import Configuration, EngineName, Queue
from app.solver.model.state import Ask, Node, Task, Workload
from tests.support.changing import World

NAME = "kept"


class Near(Arbiter):
    """The service of a test."""

    def __init__(self, service: TestClient) -> None:
        self._service = service

    def ask(self, method: str, *path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        content = None if body is None else msgspec.json.encode(body)
        sent = {"Content-Type": "application/json"} | (headers or {})
        answer = self._service.request(method, "/".join(["/v1", *path]), content=content, headers=sent)
        if answer.status_code < 300:
            return Reply(answer.content, answer.headers.get("ETag"))
        errors = {error["pointer"]: error["detail"] for error in answer.json().get("errors", ()) if "pointer" in error}
        raise ApiError(answer.status_code, answer.json().get("code") or "", answer.text, errors)


def translated() -> Translated:
    configuration = Configuration(engine="kueue", queues=[Queue(name="q")])
    return Translated(configuration, nodes={}, workloads={}, asks={}, findings=[], local_queues={}, priority_classes={})


@pytest.mark.parametrize("engine", ["kueue", "kai", "yunikorn"])
def test_after_any_sequence_of_changes_the_snapshot_is_what_a_list_gives(
    engine: EngineName, service: TestClient
) -> None:
    world, following, keeper = World(engine, 4711), Translator(engine), Keeper(Near(service), NAME, NAME)
    for step in range(151):
        world.change()
        if step % 60 == 59:
            world.reconfigure()
        if step % 2 == 0:
            found = following.translate(view := world.seen())
            keeper.keep(found, view.versions, writer=True)
    wanted = translate(engine, world.seen(again=True))
    kept = service.get(f"/v1/snapshots/{NAME}/state").json()
    assert {one["name"]: one for one in kept.get("nodes", [])} == plain(wanted.nodes)
    assert {one["id"]: one for one in kept.get("workloads", [])} == plain(wanted.workloads)
    asks = service.get(f"/v1/snapshots/{NAME}/asks").json()["items"]
    assert {one["id"]: one for one in asks} == plain(wanted.asks)
    assert wanted.workloads
    assert wanted.asks
    assert keeper.puts.keys() == {"configuration"}


def plain(found: Any) -> Any:
    """As the service shows it."""
    return msgspec.json.decode(msgspec.json.encode(found))


def lose(service: TestClient) -> None:
    service.delete(f"/v1/snapshots/{NAME}").raise_for_status()


def change(service: TestClient) -> None:
    generation = service.get(f"/v1/snapshots/{NAME}").json()["generation"]
    service.post(f"/v1/snapshots/{NAME}/deltas", json={"generation": generation}).raise_for_status()


@pytest.mark.parametrize("looked", [False, True], ids=["by a change", "by a look"])
@pytest.mark.parametrize(("mishap", "why"), [(lose, "snapshot_lost"), (change, "stale_generation")])
def test_a_snapshot_that_is_not_as_it_was_left_is_put_again_and_counted(
    service: TestClient, mishap: Any, why: str, looked: bool
) -> None:
    keeper = Keeper(Near(service), NAME, NAME)
    keeper.keep(translated(), {}, writer=True)
    assert keeper.check()
    mishap(service)
    if looked:
        assert not keeper.check()
    keeper.keep(translated(), {}, writer=True)
    assert keeper.puts == {"configuration": 1, why: 1}
    keeper.keep(translated(), {}, writer=True)
    assert keeper.puts.total() == 2
    assert keeper.check()


HUGE, LONG = "18014398509481984", "x" * 600
"""Two containers that ask for as much as one may, together. An annotation may be of any length."""


def work(cpu: str, queue: str = "q") -> dict[str, Workload]:
    """Two that run; ``cpu`` is what one of them asks for."""
    tasks = {"good": [Task(name="t", requests={"cpu": 1})], "bad": [Task(name="t", requests={"cpu": cpu})]}
    queues = {"good": "q", "bad": queue}
    return {name: Workload(id=name, queue=queues[name], tasks=of) for name, of in tasks.items()}


@pytest.mark.parametrize("given", [(HUGE, "q"), ("1", LONG), ("1", "q\0")], ids=["too much", "too long", "a NUL"])
def test_what_one_tenant_asks_for_does_not_keep_a_cluster_from_being_followed(
    given: tuple[str, str], service: TestClient
) -> None:
    keeper = Keeper(Near(service), "tenants", "tenants")
    ask = Ask(id="next", queue="q", tasks=[Task(name="t", requests={"cpu": given[0]})])
    asks = {"next": replace(ask, queue=given[1]), "other": replace(ask, id="other", tasks=[])}
    configuration = Configuration(engine="kai", queues=[Queue(name="q")])
    bad = replaced(translated(), configuration=configuration, workloads=work(*given), asks=asks)
    keeper.keep(bad, {}, writer=True)
    assert [one["id"] for one in state(service)["workloads"]] == ["good"]
    assert {one.detail.split(":")[0] for one in keeper.left_out()} == {"bad is left out", "next is left out"}
    assert [one["rule"] for one in state(service)["findings"]] == ["refused", "refused"]
    use_of(cast(Translated, keeper.content()), datetime.now(UTC))
    puts = keeper.puts.total()
    more = replaced(bad, workloads=bad.workloads | {"new": Workload(id="new", queue="q", tasks=[])})
    keeper.keep(more, {}, writer=True)
    assert (keeper.puts.total(), len(state(service)["workloads"])) == (puts, 2), "others are told of as changes"
    keeper.keep(replaced(more, workloads=more.workloads | work("1")), {}, writer=True)
    assert (len(keeper.left_out()), len(state(service)["workloads"])) == (1, 3), "once it is mended it is kept"


def test_an_amount_that_no_engine_has_read_is_not_counted() -> None:
    """Kueue's state is kept with an amount that no quota is about; following it must not end with that."""
    running = work("18000000000000000001m")
    use = use_of(replaced(translated(), workloads=running), datetime.now(UTC))
    assert use.queues["q"].usage == {"": {"cpu": 1.0}}


def state(service: TestClient) -> Any:
    return service.get("/v1/snapshots/tenants/state").json()


def test_what_is_no_work_stops_it_as_before(service: TestClient) -> None:
    keeper = Keeper(Near(service), "nodes", "nodes")
    bad = replaced(translated(), nodes={LONG: Node(name=LONG, capacity={"cpu": 1})}, workloads=work("1", LONG))
    with pytest.raises(ApiError, match="512"):
        keeper.keep(bad, {}, writer=True)
    assert keeper.left_out() == []
