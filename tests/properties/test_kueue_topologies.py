"""Laws of decisions where pods are placed by topologies, on random clusters of racks, in both modes."""

from typing import Any

import msgspec
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.solver.apply import Index
from app.solver.delta import apply_delta
from app.solver.engines.kueue.engine import ENGINE
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.request import DecisionRequest
from app.solver.model.state import Delta
from app.solver.question import Question
from tests.support.profiles import Met, examples
from tests.unit.solver.engines.kueue.cluster import NOW, asks, configuration, decide, flavors, queue, runs, victims

Json = dict[str, Any]
RACK, HOST = "rack", "kubernetes.io/hostname"
LAWS = examples(150, suppress_health_check=[HealthCheck.too_slow])
REQUESTS: list[Json] = [
    {"required": RACK}, {"required": HOST}, {"preferred": RACK}, {"preferred": HOST}, {"unconstrained": True},
    {"required": RACK, "slice_required": HOST, "slice_size": 2}, {"slice_required": RACK, "slice_size": 2},
]  # fmt: skip
Cluster = tuple[Json, list[Json], list[Json], list[Json]]


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """A configuration, nodes, what runs (never more than there is on a host), and what is asked for."""
    policies = {
        "within_cluster_queue": draw(st.sampled_from(["Never", "LowerPriority"])),
        "reclaim_within_cohort": draw(st.sampled_from(["Never", "LowerPriority", "Any"])),
    }
    if policies["reclaim_within_cohort"] != "Never" and draw(st.booleans()):
        policies["borrow_within_cohort"] = {"policy": "LowerPriority"}
    of = configuration(
        queue("root"), *(
            queue(name, parent="root", preemption=policies, **flavors(f=draw(st.integers(0, 14)))) for name in "ab"
        ),
        fair=draw(st.booleans()), flavors=[{"name": "f", "topology": "t"}],
        topologies=[{"name": "t", "levels": [RACK, HOST]}],
    )  # fmt: skip
    nodes = [host(i, draw(st.sampled_from([2, 4, 4]))) for i in range(draw(st.integers(2, 6)))]
    left = {node["name"]: node["capacity"]["cpu"] for node in nodes}
    running: list[Json] = []
    for i in range(draw(st.integers(0, 7))):
        cpu = draw(st.integers(1, 3))
        where = [name for name in sorted(left) if left[name] >= cpu and draw(st.booleans())]
        if where:
            running.append(work(f"w{i}", draw(st.sampled_from("ab")), cpu, where, draw(st.integers(0, 2))))
            for name in where:
                left[name] -= cpu
    pending = [
        ask(f"x{i}", draw(st.sampled_from("ab")), draw(st.integers(1, 3)), draw(st.integers(1, 6)),
            draw(st.integers(0, 3)), draw(st.sampled_from(REQUESTS)))
        for i in range(draw(st.integers(1, 3)))
    ]  # fmt: skip
    return of, nodes, running, pending


def host(i: int, cpu: int) -> Json:
    return {"name": f"h{i}", "labels": {RACK: f"r{i % 2}", HOST: f"h{i}"}, "capacity": {"cpu": cpu, "pods": 9}}


def work(name: str, of: str, cpu: int, where: list[str], priority: int) -> Json:
    made = runs(name, of, cpu, priority, flavor="f")
    domains = [{"values": [at], "count": 1} for at in where]
    made["tasks"][0] |= {"count": len(where), "topology_assignment": {"levels": [HOST], "domains": domains}}
    return made


def ask(name: str, of: str, cpu: int, count: int, priority: int, request: Json) -> Json:
    made = asks(name, of, cpu, priority, count=count)
    made["tasks"][0]["topology_request"] = request
    return made


@LAWS
@given(clusters(), st.sampled_from(["independent", "cycle"]))
def test_explaining_changes_nothing_and_its_victims_are_the_answers(of: Cluster, mode: str) -> None:
    settings, nodes, running, pending = of
    plain = decide(settings, running, pending, mode=mode, nodes=nodes)
    for level in ("summary", "full"):
        told = decide(settings, running, pending, mode=mode, nodes=nodes, explain=level)
        explained = {name: one.pop("explanation") for name, one in told["decisions"].items()}
        assert told == plain
        for name, one in told["decisions"].items():
            if level == "full":
                named = [c["workload"] for c in explained[name]["candidates"] if c["verdict"] == "victim"]
                assert sorted(named) == sorted(victims(one))
            assert (one["outcome"] in ("admit", "preempt")) or explained[name]["blocker"]


@LAWS
@given(clusters())
def test_it_fits_where_it_was_told_to_once_its_victims_are_gone_and_not_before(met: Met, of: Cluster) -> None:
    settings, nodes, running, pending = of
    for one in pending:
        (decision,) = decide(settings, running, [one], nodes=nodes)["decisions"].values()
        gone = victims(decision)
        if not met(gone):
            assert decision["outcome"] != "preempt"
            continue
        assert decision["outcome"] == "preempt"
        after = [workload for workload in running if workload["id"] not in gone]
        (admitted,) = decide(settings, after, [one], nodes=nodes)["decisions"].values()
        assert admitted["outcome"] == "admit"
        assert admitted["topology_assignment"] == decision["topology_assignment"]
        for spared in gone[:-1] if not settings["settings"]["kueue"]["fair_sharing"] else gone:
            back = [workload for workload in running if workload["id"] not in gone or workload["id"] == spared]
            (still,) = decide(settings, back, [one], nodes=nodes)["decisions"].values()
            within = still["outcome"] != "admit" or still["borrowing"] != decision["borrowing"]
            assert within, "who is not needed is put back"


@LAWS
@given(clusters())
def test_no_host_holds_more_than_it_has_after_a_cycle(of: Cluster) -> None:
    settings, nodes, running, pending = of
    answer = decide(settings, running, pending, mode="cycle", nodes=nodes)
    left = {node["name"]: node["capacity"]["cpu"] for node in nodes}
    tasks = {one["id"]: one["tasks"][0] for one in pending}
    for workload in running:
        for domain in workload["tasks"][0]["topology_assignment"]["domains"]:
            left[domain["values"][0]] -= workload["tasks"][0]["requests"]["cpu"] * domain["count"]
    for name, decision in answer["decisions"].items():
        if decision["outcome"] == "admit":
            for domain in decision["topology_assignment"]["main"]["domains"]:
                left[domain["values"][0]] -= tasks[name]["requests"]["cpu"] * domain["count"]
    assert min(left.values()) >= 0


@LAWS
@given(clusters(), clusters(), st.data())
def test_a_state_followed_by_deltas_decides_as_one_compiled_afresh(of: Cluster, other: Cluster, data: Any) -> None:
    settings, nodes, running, pending = of
    body = {"configuration": settings, "asks": pending, "now": NOW, "state": {"workloads": running, "nodes": nodes}}
    request = msgspec.convert(body, DecisionRequest)
    assert request.now is not None
    configured = ENGINE.configure(msgspec.convert(settings, Configuration))
    state = request.state
    index, kept = Index(state), ENGINE.load(configured, state)
    question = Question(micros(request.now), request.asks, "independent")
    names = [one["id"] for one in running]
    for step in range(3):
        change = [one for one in other[2] if one["id"] in names and data.draw(st.booleans())]
        gone = [name for name in names if name not in [one["id"] for one in change] and data.draw(st.booleans())]
        added = [one | {"id": f"{one['id']}-{step}"} for one in other[2] if data.draw(st.booleans())]
        delta = {"generation": step, "workloads": {"add": added, "change": change, "remove": gone}}
        state, index, changes = apply_delta(state, index, msgspec.convert(delta, Delta))
        kept, fresh = ENGINE.update(kept, configured, state, changes), ENGINE.load(configured, state)
        assert kept.rooms is not None
        assert fresh.rooms is not None
        assert kept.rooms.left == fresh.rooms.left
        assert ENGINE.plan(kept, question) == ENGINE.plan(fresh, question)
        names = [one.id for one in state.workloads]
