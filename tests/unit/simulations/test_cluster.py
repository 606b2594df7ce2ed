"""The state of a run, followed: what occupies nodes beside workloads, what is set and unset, what it all comes to."""

from typing import Any

import msgspec
from msgspec.structs import replace

from app.base.decoding import convert
from app.simulations.core.state import Recorder, SimulatedCluster
from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.model.state import NodeChanges, QueueState, Reservation, State, Workload
from app.solver.rounds import Turn
from tests.support.placed_runs import configuration

NODES = [{"name": name, "capacity": {"cpu": 4, "gpu": 4}} for name in ("n1", "n0")]


def workload(name: str, cpu: int = 1, node: str = "n0") -> Workload:
    task = {"name": "t", "requests": {"cpu": cpu}, "node": node}
    return convert({"id": name, "queue": "a", "tasks": [task]}, Workload)


class Changes(Recorder):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def changed(self, delta: Any) -> None:
        self.told.append(msgspec.json.encode(delta.workloads).decode())

    def replaced(self) -> None:
        self.told.append("replaced")


def held(ask: str, node: str) -> Reservation:
    asked = {"id": ask, "queue": "root.a", "tasks": [{"name": "t", "requests": {"cpu": 4}}]}
    return convert({"ask": asked, "node": node}, Reservation)


def kept(engine: str = "ytsaurus", recorder: Recorder | None = None, **state: Any) -> SimulatedCluster:
    given = convert({"nodes": NODES, **state}, State)
    return SimulatedCluster(solve.configure(convert(configuration(engine), Configuration)), given, recorder)


def occupied(of: SimulatedCluster) -> dict[str, Any]:
    return {node.name: node.occupied for node in of.loaded().state.nodes}


def test_nodes_and_workloads_are_in_order_of_name() -> None:
    state = kept(workloads=[msgspec.to_builtins(workload(name)) for name in ("b", "a")]).loaded().state
    assert [node.name for node in state.nodes] == ["n0", "n1"]
    assert [one.id for one in state.workloads] == ["a", "b"]


def test_what_goes_occupies_its_node_until_it_is_gone() -> None:
    of = kept()
    of.occupy("n0", {"cpu": 1500, "pods": 1}, 1)
    of.occupy("n0", {"cpu": 500}, 1)
    of.occupy("nowhere", {"cpu": 500}, 1)
    assert occupied(of) == {"n0": {"cpu": "2000m", "pods": 1}, "n1": {}}
    assert [node.occupied for node in of.nodes] == [{}, {}], "it is no less of the capacity"
    of.occupy("n0", {"cpu": 1500, "pods": 1}, -1)
    assert [node.occupied for node in of.nodes] == [{}, {}]
    assert occupied(of) == {"n0": {"cpu": "500m"}, "n1": {}}
    of.occupy("n0", {"cpu": 500}, -1)
    assert occupied(of) == {"n0": {}, "n1": {}}


def test_what_is_somebody_elses_all_the_while_stays() -> None:
    of = kept(nodes=[{**NODES[1], "occupied": {"cpu": 1}}])
    of.occupy("n0", {"cpu": 500}, 1)
    assert (occupied(of), of.nodes[0].occupied) == ({"n0": {"cpu": "1500m"}}, {"cpu": "1000m"})


def test_a_node_that_changes_keeps_what_goes_there_and_one_that_goes_takes_its_reservations_along() -> None:
    of = kept("yunikorn", Changes())
    of.note(Turn(reservations=[held("x", "n1")]))
    of.occupy("n0", {"cpu": 500}, 1)
    wide, new = {"name": "n0", "capacity": {"cpu": 8}}, {"name": "n00", "capacity": {"cpu": 9}}
    of.change_nodes(convert({"add": [new], "change": [wide]}, NodeChanges))
    state = of.loaded().state
    assert [(node.name, node.capacity["cpu"], node.occupied) for node in state.nodes] == [
        ("n0", 8, {"cpu": "500m"}), ("n00", 9, {}), ("n1", 4, {}),
    ]  # fmt: skip
    assert len(state.reservations) == 1
    of.occupy("n00", {"cpu": 1000}, 1)
    assert occupied(of)["n00"] == {"cpu": "1000m"}
    of.change_nodes(NodeChanges(remove=["n1"]))
    assert of.loaded().state.reservations == []
    assert [node.name for node in of.nodes] == ["n0", "n00"]


def test_workloads_come_change_and_go_by_one_delta_and_none_is_made_of_nothing() -> None:
    told = Changes()
    of = kept(recorder=told, workloads=[msgspec.to_builtins(workload(name)) for name in ("a", "b")])
    before = of.loaded()
    assert of.loaded() is before
    of.set(workload("a", 2))
    of.set(workload("c"))
    of.remove("b")
    of.set(workload("brief"))
    of.remove("brief")
    found = {name: of.workload(name) for name in ("a", "b", "c", "brief", "nobody")}
    assert found == {"a": workload("a", 2), "b": None, "c": workload("c"), "brief": None, "nobody": None}
    assert [one.id for one in of.loaded().state.workloads] == ["a", "c"]
    assert found == {name: of.workload(name) for name in found}
    assert told.told == [], "a round is what it is told before"
    written = of.written()
    assert written is not None
    assert (written.state, written.digest) == (of.loaded().state, of.loaded().digest.hexdigest())
    (delta,) = map(msgspec.json.decode, told.told)
    assert {kind: [one if isinstance(one, str) else one["id"] for one in some] for kind, some in delta.items()} == {
        "add": ["c"], "change": ["a"], "remove": ["b"],
    }  # fmt: skip
    assert of.loaded() is of.loaded()


def test_what_an_engine_carries_over_is_in_the_next_state_and_no_longer_than_its_queue() -> None:
    told = Changes()
    of = kept(recorder=told)
    starving = convert({"ytsaurus": {"starvation": "starving"}}, QueueState)
    closed = replace(of.nodes[0], schedulable=False)
    of.note(Turn(queues={"a": starving}, workloads=[workload("a")], nodes=[closed]))
    of.note(Turn(queues={"b": starving}))
    state = of.loaded().state
    assert [node.schedulable for node in state.nodes] == [False, True]
    assert (dict(state.queues), [one.id for one in state.workloads]) == ({"a": starving, "b": starving}, ["a"])
    own = configuration("ytsaurus")
    of.configure(solve.configure(convert({**own, "queues": own["queues"][:1]}, Configuration)))
    assert (dict(of.loaded().state.queues), told.told[-1]) == ({"a": starving}, "replaced")
    assert len(of.configured.configuration.queues) == 1


def test_reservations_are_all_there_are_in_their_order() -> None:
    of = kept("yunikorn")
    for given in ([held("x", "n1"), held("y", "n0")], [held("y", "n0"), held("x", "n1")], None, []):
        before = of.loaded().state.reservations
        of.note(Turn(reservations=given))
        assert of.loaded().state.reservations == (before if given is None else given)
