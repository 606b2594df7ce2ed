"""What a follower keeps: why a snapshot is put whole is counted, however its loss is noticed."""

from dataclasses import replace as replaced
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from app.following.grouped import Translated, translate
from app.following.keeping import Keeper, NotYet
from app.following.translator import Translator, use_of
from app.solver.model.base import NativeDocuments
from app.solver.model.configuration import Configuration, EngineName, Queue
from app.solver.model.state import Ask, DisruptionBudget, Node, Task, Workload
from tests.support.changing import World
from tests.support.near import Near

NAME = "kept"


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


def test_a_node_that_can_not_be_said_goes_with_what_is_on_it_and_comes_back(service: TestClient) -> None:
    near = Near(service)
    keeper = Keeper(near, "tenants", "tenants")
    named = {name: Workload(id=name, queue="q", tasks=[Task(name="t", node=name)]) for name in ("n", "bad")}
    bound = Ask(id="ask", queue="q", tasks=[Task(name="t", required_node="bad")])
    nodes = {name: Node(name=name, capacity={"cpu": 1}) for name in ("n", "bad")}
    configuration = Configuration(engine="kube-scheduler", queues=[Queue(name="q")])
    good = replaced(translated(), configuration=configuration, nodes=nodes, workloads=named, asks={"ask": bound})
    keeper.keep(good, {}, writer=True)
    whole = state(service)
    bad = replaced(good, nodes=nodes | {"bad": replace(nodes["bad"], labels={"zone": "a\0"})})
    keeper.keep(bad, {}, writer=True)
    assert [one["name"] for one in state(service)["nodes"]] == ["n"]
    assert [one["id"] for one in state(service)["workloads"]] == ["n"]
    assert [one.detail for one in keeper.left_out()] == [
        "node bad, with all that is on it, is left out: labels/zone: the text holds a NUL",
        "ask is left out: tasks/0/required_node: no node 'bad'",
    ]
    assert [one["detail"] for one in state(service)["findings"]] == [one.detail for one in keeper.left_out()]
    assert service.get("/v1/snapshots/tenants/asks").json()["items"] == []
    near.asked.clear()
    keeper.keep(good, {}, writer=True)
    assert near.asked == ["POST snapshots/tenants/deltas"]
    assert (state(service), keeper.left_out()) == (whole, [])
    assert len(service.get("/v1/snapshots/tenants/asks").json()["items"]) == 1, "it waited for its node alone"


def test_a_budget_that_can_not_be_said_is_left_out_and_that_is_said(service: TestClient) -> None:
    keeper = Keeper(Near(service), "tenants", "tenants")
    configuration = Configuration(engine="kube-scheduler", queues=[Queue(name="q")])
    budgets = [DisruptionBudget(name=name, queue="q", disruptions_allowed=allowed) for name, allowed in BUDGETS]
    keeper.keep(replaced(translated(), configuration=configuration, budgets=budgets), {}, writer=True)
    assert [one["name"] for one in state(service)["disruption_budgets"]] == ["sound"]
    (said,) = keeper.left_out()
    assert said.detail.startswith("PodDisruptionBudget q/odd, so that what it protects may be a victim, is left out: ")
    assert [one["detail"] for one in state(service)["findings"]] == [said.detail]


BUDGETS = [("odd", 2**31), ("sound", 1)]


def test_an_object_of_a_configuration_that_is_refused_keeps_no_other_from_being_written(service: TestClient) -> None:
    """A queue that a tenant names in an annotation; an administrator's with a parent that is gone; what is kept
    whole."""
    near = Near(service)
    keeper, other = Keeper(near, "tenants", "tenants"), Keeper(Near(service), "tenants", "other")
    good = Configuration(engine="yunikorn", queues=[Queue(name="root"), Queue(name="root.a", parent="root")])
    large = {"kind": "LocalQueue", "metadata": {"name": "large", "annotations": {"a": "x" * 2**20}}}
    natives = [{**large, "metadata": {**large["metadata"], "name": f"l{i}"}} for i in range(5)]
    odd = [
        Queue(name="root.a\0b", parent="root"),
        Queue(name="lost", parent="gone"),
        Queue(name="below", parent="lost"),
    ]
    bad = replace(good, queues=[*good.queues, *odd], native=NativeDocuments(objects=natives))
    running = {name: Workload(id=name, queue=name, tasks=[]) for name in ("root.a", "root.a\0b", "lost")}
    found = replaced(translated(), configuration=bad, workloads=running)
    keeper.keep(found, {}, writer=True)
    stored = service.get("/v1/configurations/tenants").json()["configuration"]
    assert [one["name"] for one in stored["queues"]] == ["root", "root.a"]
    assert [one["metadata"]["name"] for one in stored["native"]["objects"]] == ["l2", "l3", "l4"]
    assert {one["detail"].split(":")[0] for one in stored["findings"]} >= {
        "queue root.a\ufffdb, with all work in it, is left out", "queue lost, with all work in it, is left out",
        "LocalQueue l0 is left out of what is kept whole",
    }  # fmt: skip
    assert [one["queue"] for one in state(service)["workloads"]] == ["root.a"]
    other.keep(found, {}, writer=False)
    kept = service.get("/v1/snapshots/other/state").json()
    assert [one["queue"] for one in kept["workloads"]] == ["root.a"], "who does not write goes on too"
    mended = replace(bad, queues=[*good.queues, Queue(name="gone", parent="root"), *odd[1:]], native=None)
    for made, writes in ((keeper, True), (other, False)):
        made.keep(replaced(found, configuration=mended, workloads={}), {}, writer=writes)
        assert (made.left_out(), made.refused) == ([], [])
    stored = service.get("/v1/configurations/tenants").json()["configuration"]
    assert [one["name"] for one in stored["queues"]][2:] == ["gone", "lost", "below"]


def test_who_does_not_write_waits_for_a_configuration_that_lacks_nothing(service: TestClient) -> None:
    with pytest.raises(NotYet):
        Keeper(Near(service), "tenants", "tenants").keep(translated(), {}, writer=False)


def test_names_of_any_letters_and_length_are_no_hindrance(service: TestClient) -> None:
    """A comment tells them."""
    names = [f"root.{i}{letter}" for i, letter in enumerate(["\r\n", "\x1b", "\u2028", "x" * 300, *"ü" * 40])]
    keeper = Keeper(Near(service), "tenants", "tenants")
    found = replaced(translated(), configuration=Configuration(engine="yunikorn", queues=[Queue(name="root")]))
    keeper.keep(found, {}, writer=True)
    queues = [Queue(name=name, parent="root") for name in names]
    more = replaced(found, configuration=replace(found.configuration, queues=[Queue(name="root"), *queues]))
    for each in (more, found, more):
        keeper.keep(each, {}, writer=True)
    stored = service.get("/v1/configurations/tenants").json()["configuration"]
    assert [one["name"] for one in stored["queues"]][1:] == names
