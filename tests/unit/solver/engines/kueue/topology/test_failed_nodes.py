"""Work on nodes that failed: two racks of two hosts with 4 cpu each, one of which is gone."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.simulations.running import played
from tests.unit.solver.engines.kueue.cluster import asks, configuration, decide, flavors, queue, runs

Json = dict[str, Any]
RACK, HOST = "rack", "kubernetes.io/hostname"
NODES = {
    name: {"name": name, "labels": {RACK: rack, HOST: name}, "capacity": {"cpu": 4, "pods": 10}}
    for rack, name in (("r1", "a"), ("r1", "b"), ("r2", "c"), ("r2", "d"))
}
PREEMPTS = {"within_cluster_queue": "LowerPriority"}


def cluster(**more: Any) -> Json:
    return configuration(
        queue("q", preemption=PREEMPTS, **flavors(f=16)), flavors=[{"name": "f", "topology": "t"}],
        topologies=[{"name": "t", "levels": [RACK, HOST]}], **more,
    )  # fmt: skip


def on(name: str, cpu: float, hosts: str, failed: str = "", request: Json | None = None, **more: Any) -> Json:
    """It runs with a pod on each of these hosts, of which some have failed."""
    work = runs(name, "q", cpu, flavor="f", **more)
    domains = [{"values": [host], "count": count} for host, count in sorted(Counter(hosts).items())]
    work["tasks"][0] |= {"count": len(hosts), "topology_assignment": {"levels": [HOST], "domains": domains}}
    if request is not None:
        work["tasks"][0]["topology_request"] = request
    return work | {"kueue": {"unhealthy_nodes": list(failed)}}


def after(running: list[Json], without: str = "a", pending: list[Json] | None = None) -> Json:
    nodes = [node for name, node in NODES.items() if name not in without]
    return decide(cluster(), running, pending or [], mode="cycle", nodes=nodes)


def hosts(answer: Json, workload: str = "w") -> dict[str, int]:
    domains = answer["notes"]["topology_assignments"][workload]["main"]["domains"]
    return {domain["values"][0]: domain["count"] for domain in domains}


def evicted(answer: Json) -> list[tuple[str, str]]:
    return [(one["workload"], one["reason"]) for one in answer["plan"]["evictions"]]


def test_pods_of_a_failed_node_get_another_host() -> None:
    answer = after([on("w", 2, "ac", "a")])
    assert hosts(answer) == {"c": 2}, "the fullest host that holds it"
    assert [(one["workload"], one["node"]) for one in answer["plan"]["placements"]] == [("w", "c")]
    assert evicted(answer) == []


def test_what_must_be_in_one_rack_stays_there_or_is_evicted() -> None:
    together = {"required": RACK}
    assert hosts(after([on("w", 2, "ab", "a", together)])) == {"b": 2}
    full = [on("w", 2, "ab", "a", together), on("v", 2, "b")]
    assert evicted(after(full)) == [("w", "NodeFailures")]
    assert hosts(after([on("w", 2, "ab", "a", {"preferred": RACK}), on("v", 2, "b")])) == {"b": 1, "c": 1}
    assert hosts(after([on("w", 2, "a", "a", together)])) in ({"c": 1}, {"b": 1}), "nothing of it stays: any rack"


def test_a_slice_is_completed_where_it_stands() -> None:
    request = {"preferred": RACK, "slice_required": RACK, "slice_size": 2}
    assert hosts(after([on("w", 1, "abcd", "a", request)])) == {"b": 2, "c": 1, "d": 1}
    full = [on("w", 1, "abcd", "a", request), on("v", 3, "b")]
    assert evicted(after(full)) == [("w", "NodeFailures")], "the other rack has room, and the slice is not there"


def test_nobody_is_preempted_for_a_replacement() -> None:
    running = [on("w", 4, "a", "a", priority=9), *(on(host, 4, host) for host in "bcd")]
    assert evicted(after(running)) == [("w", "NodeFailures")]


@pytest.mark.parametrize("failed", ["ab", "abc"])
def test_with_several_failed_nodes_it_is_evicted(failed: str) -> None:
    assert evicted(after([on("w", 1, "abcd", failed)], without=failed)) == [("w", "NodeFailures")]


def test_what_stays_on_a_host_that_is_gone_too_can_not_be_mended() -> None:
    assert evicted(after([on("w", 1, "abc", "a")], without="ab")) == [("w", "NodeFailures")]


def test_whoever_waits_gets_what_replacements_leave() -> None:
    ask = asks("x", "q", 4)
    running = [on("w", 4, "a", "a"), on("v", 4, "b"), on("u", 4, "c")]
    answer = after(running, pending=[ask])
    assert hosts(answer) == {"d": 1}
    assert answer["decisions"]["x"]["outcome"] == "wait"


@given(st.lists(st.tuples(st.integers(1, 3), st.text("abcd", min_size=1, max_size=3)), max_size=5))
def test_replacements_hold_all_pods_and_take_no_more_than_there_is(work: list[tuple[int, str]]) -> None:
    running = [
        on(f"w{i}", cpu, where, "a" if "a" in where else "", {"preferred": RACK}) for i, (cpu, where) in enumerate(work)
    ]
    answer = after(running)
    gone = {workload for workload, _ in evicted(answer)}
    moved = answer.get("notes", {}).get("topology_assignments", {})
    used: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for i, (cpu, where) in enumerate(work):
        name = f"w{i}"
        assert (name in moved) + (name in gone) == ("a" in where)
        final = hosts(answer, name) if name in moved else Counter(where)
        assert sum(final.values()) == len(where)
        before.update({host: cpu * count for host, count in Counter(where).items()})
        used.update({host: cpu * count for host, count in final.items()})
    assert all(used[host] <= max(4, before[host]) for host in "bcd"), (used, before)


def test_a_simulation_goes_on_where_nodes_went() -> None:
    job = {
        "submitted_at": 0, "duration": 100,
        "ask": {"id": "j", "queue": "q", "tasks": [{
            "name": "main", "count": 2, "requests": {"cpu": 3}, "topology_request": {"required": RACK},
        }]},
    }  # fmt: skip
    gone = [{"at": 10, "nodes": {"remove": ["a"]}}]
    told = played(cluster(), [job], gone, state={"nodes": list(NODES.values())})
    assert [(one.job, one.rule) for line in told.rounds for one in line.evicted] == [("j", "NodeFailures")]
    assert told.of("j").status == "finished", "the other rack takes it"
    small = job | {"ask": job["ask"] | {"tasks": [job["ask"]["tasks"][0] | {"requests": {"cpu": 2}, "count": 1}]}}
    told = played(
        cluster(), [small], [{"at": 10, "nodes": {"remove": ["a", "b"]}}], state={"nodes": list(NODES.values())}
    )
    assert not [one for line in told.rounds for one in line.evicted]
