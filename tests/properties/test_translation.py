"""A situation told in the words of another engine: whatever that has no word for is a finding."""

import re
from typing import Any, get_args

import msgspec
import pytest

from app.answering.translation import read_by, translate
from app.base.decoding import descriptions
from app.solver import solve
from app.solver.model import configuration as configuration_model
from app.solver.model import kai, kueue, ytsaurus, yunikorn
from app.solver.model import state as state_model
from app.solver.model.base import to_datetime
from app.solver.model.configuration import Configuration, EngineName, Flavor, Queue, Quota, Settings, Taint
from app.solver.model.kube_scheduler import (
    HostPort,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from app.solver.model.request import StateOrReference
from app.solver.model.state import (
    Ask,
    DisruptionBudget,
    Expression,
    Node,
    QueueState,
    Reservation,
    Task,
    Toleration,
    Workload,
)

ENGINES: tuple[EngineName, ...] = get_args(EngineName)
PAIRS = [(old, new) for old in ENGINES for new in ENGINES if old != new]


def test_who_reads_a_field_is_what_its_description_says() -> None:
    assert read_by(Task)["state"] == {"yunikorn", "kai", "kube-scheduler"}
    assert read_by(Quota)["weight"] == {"kai"}
    assert read_by(Node)["ytsaurus"] == {"ytsaurus"}, "a block is its engine's"
    assert "requests" not in read_by(Task), "all engines read it"
    assert "uid" not in read_by(Task), "no engine reads it"
    for kind in (Configuration, Queue, Quota, state_model.State, Node, Workload, Ask, Task):
        for name, text in descriptions(kind).items():
            said = re.search(r"Read by (?!no engine|all engines)", text) is not None
            assert said == (name in read_by(kind) and not hasattr(Settings(), name)), (kind.__name__, name)


TASK = Task(
    name="t", requests={"cpu": 1}, usage={"cpu": 1}, node="n", flavors={"cpu": "f"}, priority=3,
    created_at=to_datetime(5), started_at=to_datetime(6), preemptible=False, originator=True, required_node="n",
    state="releasing", min_count=1, full_count=2,
    node_selector={"a": "b"}, tolerations=[Toleration(key="a")], labels={"a": "b"}, host_ports=[HostPort(port=1)],
    pod_affinity=[PodAffinityTerm(topology_key="a")], pod_anti_affinity=[PodAffinityTerm(topology_key="a")],
    topology_spread=[TopologySpreadConstraint(max_skew=1, topology_key="a")], scheduling_gates=["a"],
    nominated_node="n", topology_request=kueue.TopologyRequest(required="r"),
    topology_assignment=kueue.TopologyAssignment(levels=["r"], domains=[]),
    node_affinity=[[Expression(key="a", operator="Exists")]], sub_group="g", gpu_memory=1, gpu_devices=2, gpu_group="0",
)  # fmt: skip
COMMON: dict[str, Any] = {
    "queue": "root.a", "uid": "u", "priority": 4, "created_at": to_datetime(7), "min_available": 1, "weight": 2.0,
    "limit": {"cpu": 4}, "ytsaurus": ytsaurus.Workload(starvation="starving"), "tasks": [TASK], "preemptible": False,
    "sub_groups": [kai.SubGroup(name="g")], "min_sub_group": 1, "preemption_delay": 5,
    "last_evicted_at": to_datetime(9),
}  # fmt: skip
ASK = Ask(
    id="ask", **COMMON, workload="w", preemption_policy="Never", originator=True, required_node="n",
    feasible_nodes=["n"], nominated_node="n",
    yunikorn=yunikorn.Ask(triggered_preemption=True), kueue=kueue.Ask(first_attempt_at=to_datetime(3)),
)  # fmt: skip
RUNNING = Workload(
    id="w", **COMMON, kueue=kueue.Workload(drained=True), yunikorn=yunikorn.Application(),
    started_at=to_datetime(8), evicted=True, disruption_mode="all", on_preemption="Terminate",
    disruption_cost_milestones=[kueue.Milestone(seconds=60, cost=2)], stale_since=to_datetime(4),
    staleness_grace_period=7,
)  # fmt: skip
NODE = Node(
    name="n", capacity={"cpu": 8}, occupied={"cpu": 1}, labels={"a": "b"}, schedulable=False,
    taints=[Taint(key="a", effect="NoSchedule")], ytsaurus=ytsaurus.Node(overcommit_since=to_datetime(2)),
    gpu_memory=100,
)  # fmt: skip
STATE = StateOrReference(
    nodes=[NODE], workloads=[RUNNING], reservations=[Reservation(node="n", ask=ASK)],
    queues={
        "root.a": QueueState(
            ytsaurus=ytsaurus.PoolState(starvation="starving"), kueue=kueue.QueueState(consumed={"cpu": 1}),
            kai=kai.QueueState(usage={"cpu": 0.5}),
        )
    },
    disruption_budgets=[DisruptionBudget(name="b", queue="root.a")],
)  # fmt: skip
CONFIGURATION = Configuration(
    flavors=[Flavor(name="f", node_labels={"a": "b"})], topologies=[kueue.Topology(name="t", levels=["r"])],
    queues=[
        Queue(name="root"),
        Queue(name="root.a", parent="root", priority=2, created_at=to_datetime(1), weight=3.0,
              quota={"cpu": Quota(guaranteed=2, borrowing_limit=1, lending_limit=1, weight=2.0)},
              kueue=kueue.Queue(), yunikorn=yunikorn.Queue(), kai=kai.Queue(), ytsaurus=ytsaurus.Queue()),
    ],
)  # fmt: skip


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_whatever_the_other_engine_does_not_read_is_a_finding(old: EngineName, new: EngineName) -> None:
    found = translate(CONFIGURATION, STATE, [ASK], old, new).findings
    named = [re.sub(r"/\d+", "/#", finding.pointer) for finding in found]
    places: dict[type, str] = {
        Configuration: "/configuration", Queue: "/configuration/queues/#", Node: "/state/nodes/#",
        Workload: "/state/workloads/#", Ask: "/asks/#", Task: "/state/workloads/#/tasks/#",
        QueueState: "/state/queues/root.a",
    }  # fmt: skip
    for kind, place in places.items():
        for name, readers in read_by(kind).items():
            told_by_a_property = kind is Queue and name == "priority" and new == "yunikorn"
            if old in readers and new not in readers and not told_by_a_property:
                assert f"{place}/{name}" in named, (kind.__name__, name)
    for name, readers in read_by(state_model.State).items():
        assert (f"/state/{name}" in named) == (old in readers and new not in readers), name


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_settings_and_blocks_of_an_engine_are_findings_of_every_other(old: EngineName, new: EngineName) -> None:
    """And queues that only lose words are taken by the other."""
    called = old.replace("-", "_")
    model: Any = getattr(configuration_model, f"{called}_model")
    queue, wanted = CONFIGURATION.queues[1], {f"/configuration/settings/{called}"}
    if hasattr(model, "Queue"):
        queue = msgspec.structs.replace(queue, **{called: model.Queue()})
        wanted.add(f"/configuration/queues/1/{called}")
    changes: Any = {"queues": [CONFIGURATION.queues[0], queue], "settings": Settings(**{called: model.Settings()})}
    made = translate(msgspec.structs.replace(CONFIGURATION, **changes), StateOrReference(), [], old, new)
    named = {finding.pointer for finding in made.findings}
    assert wanted <= named
    solve.configure(made.configuration, new)
