"""Topologies in decisions, worked out by hand: two racks of two hosts with 4 cpu each."""

from typing import Any

import pytest

from app.solver.model.problems import InvalidInput
from tests.unit.solver.engines.kueue.cluster import (
    asks,
    configuration,
    decide,
    flavors,
    one,
    queue,
    runs,
    shares,
    victims,
)

Json = dict[str, Any]
RACK, HOST = "rack", "kubernetes.io/hostname"
LOWER = {"within_cluster_queue": "LowerPriority"}
NODES = [
    {"name": name, "labels": {RACK: rack, HOST: name}, "capacity": {"cpu": 4, "pods": 10}}
    for rack, name in (("r1", "a"), ("r1", "b"), ("r2", "c"), ("r2", "d"))
]


def of(cpu: int = 16, *more: Json, **fields: Any) -> Json:
    return configuration(
        queue("q", preemption=LOWER, **flavors(f=cpu)), *more, flavors=[{"name": "f", "topology": "t"}],
        topologies=[{"name": "t", "levels": [RACK, HOST]}], **fields,
    )  # fmt: skip


def wants(name: str, cpu: float, count: int, request: Json, priority: int = 0, **more: Any) -> Json:
    ask = asks(name, "q", cpu, priority, count=count, **more)
    ask["tasks"][0]["topology_request"] = request
    return ask


def on(name: str, cpu: float, *hosts: str, priority: int = 0) -> Json:
    """It runs with a pod on each of these hosts."""
    work = runs(name, "q", cpu, priority, flavor="f")
    domains = [{"values": [host], "count": 1} for host in hosts]
    work["tasks"][0] |= {"count": len(hosts), "topology_assignment": {"levels": [HOST], "domains": domains}}
    return work


def places(decision: Json, task: str = "main") -> dict[str, int]:
    found = decision["topology_assignment"][task]
    assert found["levels"] == [HOST]
    return {domain["values"][0]: domain["count"] for domain in found["domains"]}


def test_pods_that_must_run_in_one_rack_take_the_rack_that_holds_them_best() -> None:
    running = [on("w", 2, "c")]  # rack 1 has 8 cpu left, rack 2 has 6
    decision = one(of(), running, wants("x", 2, 3, {"required": RACK}), nodes=NODES)
    assert (decision["outcome"], places(decision)) == ("admit", {"c": 1, "d": 2})
    decision = one(of(), running, wants("x", 2, 4, {"required": RACK}), nodes=NODES)
    assert places(decision) == {"a": 2, "b": 2}


def test_who_prefers_one_rack_takes_several_where_none_holds_all() -> None:
    running = [on("w", 2, "c"), on("v", 2, "a")]
    assert one(of(), running, wants("x", 2, 5, {"required": RACK}), nodes=NODES)["outcome"] == "wait"
    decision = one(of(), running, wants("x", 2, 5, {"preferred": RACK}), nodes=NODES)
    assert sum(places(decision).values()) == 5
    assert decision["outcome"] == "admit"


def test_who_asks_for_no_place_in_particular_goes_where_least_is_left() -> None:
    running = [on("w", 3, "d"), on("v", 1, "a")]
    decision = one(of(), running, wants("x", 1, 1, {"unconstrained": True}), nodes=NODES)
    assert places(decision) == {"d": 1}
    decision = one(of(), running, asks("x", "q", 1), nodes=NODES)
    assert places(decision) == {"d": 1}, "all flavors of its queue have a topology: the same is meant"


def test_with_quota_to_spare_somebody_stops_for_room_on_nodes() -> None:
    """9 of 16 cpu are used, one pod of 4 on each host but one of 1: nowhere in one rack are there two pods of 4."""
    running = [on("w", 4, "a"), on("v", 4, "c"), on("u", 1, "d", priority=1)]
    ask = wants("x", 4, 2, {"required": RACK}, priority=5)
    decision = one(of(), running, ask, nodes=NODES)
    assert decision["outcome"] == "preempt"
    assert (victims(decision), places(decision)) == (["w"], {"a": 1, "b": 1})
    decision = one(of(), running, ask | {"priority": 0}, nodes=NODES)
    assert (decision["outcome"], victims(decision)) == ("wait", [])


def test_who_frees_nothing_that_helps_is_put_back() -> None:
    """In the order of candidates n goes first; it makes no room for a whole host of 4, and stays in the end."""
    running = [on("n", 1, "b"), on("w", 4, "a", priority=1), on("v", 4, "c", priority=2), on("u", 4, "d", priority=3)]
    decision = one(of(20), running, wants("x", 4, 2, {"required": RACK}, priority=5), nodes=NODES, explain="full")
    assert (decision["outcome"], victims(decision)) == ("preempt", ["n", "w"])
    decision = one(of(20), running, wants("x", 3, 2, {"required": RACK}, priority=5), nodes=NODES, explain="full")
    assert (decision["outcome"], victims(decision)) == ("preempt", ["w"])
    told = {c["workload"]: c for c in decision["explanation"]["candidates"]}
    assert (told["n"]["verdict"], told["n"]["rule"]) == ("put-back", "still-fits")
    assert (told["n"]["numbers"]["pods_in"], told["w"]["numbers"]["pods_in"]) == ({"r1": 1}, {"r1": 1})
    assert told["n"]["detail"] == "the ask fits with it back", "its rack is the one"
    running[0] = on("n", 1, "c")
    decision = one(of(20), running, wants("x", 3, 2, {"required": RACK}, priority=5), nodes=NODES, explain="full")
    told = {c["workload"]: c for c in decision["explanation"]["candidates"]}
    assert told["n"]["detail"] == "the ask fits with it back: it frees nothing where the ask's pods go"


def test_every_domain_that_is_looked_at_is_told_with_what_is_free() -> None:
    running = [on("w", 3, "a"), on("v", 2, "c", priority=9)]
    decision = one(of(), running, wants("x", 2, 4, {"required": RACK}, priority=5), nodes=NODES, explain="full")
    assert victims(decision) == ["w"]
    assert decision["conditions"][0]["message"] == (
        "main: only 3 of 4 pods fit. Pending the preemption of 1 workload(s)"
    )
    before, after = (s for s in decision["explanation"]["steps"] if s["rule"] == "domains-looked-at")
    assert before["detail"] == "main: room in one rack for 4 pods: r2 has 3, r1 has 2"
    assert before["numbers"]["domains"] == [
        {"domain": "r2", "fits": 3, "free": {"cpu": 6, "pods": 19}},
        {"domain": "r1", "fits": 2, "free": {"cpu": 5, "pods": 19}},
    ]
    assert after["detail"] == "main: room in one rack for 4 pods: r1 has 4, r2 has 3", "with the victim gone"
    contested = next(s for s in decision["explanation"]["steps"] if "requested" in s.get("numbers", {}))
    assert (contested["rule"], contested["detail"]) == (
        "nodes-short", "f/cpu: quota is available, places on nodes are not",
    )  # fmt: skip
    # Who only prefers a rack is looked for in all of them together, after each for itself.
    levels = {"topologies": [{"name": "t", "levels": ["block", RACK, HOST]}]}
    nodes = [node | {"labels": node["labels"] | {"block": "b"}} for node in NODES]
    decision = one(of() | levels, running, wants("x", 2, 5, {"preferred": RACK}), nodes=nodes, explain="full")
    steps = [s["numbers"] for s in decision["explanation"]["steps"] if s["rule"] == "domains-looked-at"]
    assert [(s["level"], [d["fits"] for d in s["domains"]]) for s in steps] == [(RACK, [3, 2]), ("block", [5])]


def test_an_ask_that_names_its_flavors_is_placed_like_any_other() -> None:
    running = [on("w", 4, *"ac", priority=9), on("v", 4, "b")]
    ask = wants("x", 4, 2, {"required": RACK}, flavors={"cpu": "f"})
    assert one(of(32), running, ask, nodes=NODES)["conditions"][0]["message"] == (
        "main: only 1 of 2 pods fit; no workload may be preempted"
    )
    ask["tasks"][0]["count"] = 1
    assert places(one(of(32), running, ask, nodes=NODES)) == {"d": 1}
    ask["tasks"][0] |= {"count": 2, "topology_request": {"required": HOST}}
    assert (
        "even with none of Kueue's work running" in one(of(32), running, ask, nodes=NODES)["conditions"][0]["message"]
    )
    ask["tasks"][0] |= {"count": 2, "topology_request": {"preferred": RACK}}
    decision = one(of(32), running, ask | {"priority": 5}, nodes=NODES)
    assert (victims(decision), places(decision)) == (["v"], {"b": 1, "d": 1})


def test_what_no_empty_cluster_has_room_for_waits_and_stops_nobody() -> None:
    decision = one(
        of(), [on("w", 4, "a")], wants("x", 5, 1, {"required": HOST}, priority=5), nodes=NODES, explain="full"
    )
    assert (decision["outcome"], victims(decision)) == ("wait", [])
    assert "even with none of Kueue's work running" in decision["conditions"][0]["message"]
    assert [step["rule"] for step in decision["explanation"]["steps"]].count("nodes-short") == 2


def test_what_would_let_it_in_knows_the_nodes() -> None:
    """Rack 1 has room for 2 pods of 3 cpu, rack 2 for one: all 3 fit only where they may be in several racks."""
    running = [on("w", 2, "c", priority=9)]
    decision = one(of(), running, wants("x", 3, 3, {"required": RACK}), nodes=NODES, explain="full")
    assert decision["outcome"] == "wait"
    blocker = decision["explanation"]["blocker"]
    assert "main fits now with rack preferred, not required" in blocker
    assert "2 of the 3 pods of main fit now" in blocker
    running = [on("w", 4, *"abc", priority=9)]
    decision = one(of(), running, wants("x", 3, 1, {"required": HOST}) | {"priority": 1}, nodes=NODES, explain="full")
    assert places(decision) == {"d": 1}
    decision = one(of(20), running, wants("x", 2, 3, {"required": RACK}), nodes=NODES, explain="full")
    blocker = decision["explanation"]["blocker"]
    assert blocker.startswith(
        "main: only 2 of 3 pods fit; nearest is r2, with room for 2; "
        "what runs there (w) has a priority that the policy does not let the ask preempt; "
    )
    assert "2 of the 3 pods of main fit now" in blocker
    assert "preferred" not in blocker, "there is no third place anywhere"


def test_slices_come_whole_within_their_level() -> None:
    """Slices of 3 pods within a rack: rack 1 has room for 4 pods, rack 2 for 3."""
    running = [on("w", 2, "c")]
    request = {"preferred": RACK, "slice_required": RACK, "slice_size": 3}
    found = places(one(of(), running, wants("x", 2, 6, request), nodes=NODES))
    racks = {rack: sum(found.get(host, 0) for host in hosts) for rack, hosts in {"r1": "ab", "r2": "cd"}.items()}
    assert racks == {"r1": 3, "r2": 3}
    assert one(of(), [*running, on("v", 2, "d")], wants("x", 2, 6, request), nodes=NODES)["outcome"] == "wait"


def test_a_leader_goes_with_its_workers() -> None:
    ask = wants("x", 2, 3, {"required": RACK, "pod_set_group": "g"})
    leader = {
        "name": "leader",
        "count": 1,
        "requests": {"cpu": 2},
        "topology_request": ask["tasks"][0]["topology_request"],
    }
    decision = one(of(), [on("w", 2, "a")], ask | {"tasks": [leader, *ask["tasks"]]}, nodes=NODES)
    assert set(places(decision)) | set(places(decision, "leader")) == {"c", "d"}
    assert sum(places(decision).values()) == 3


def test_nodes_that_the_pods_may_not_use_are_none() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    nodes = [{**NODES[0], "taints": [taint]}, {**NODES[1], "schedulable": False}, NODES[2] | {"labels": {HOST: "c"}}]
    ask = wants("x", 4, 1, {"required": HOST})
    assert one(of(), [], ask, nodes=nodes)["outcome"] == "wait"
    tolerant = wants("x", 4, 1, {"required": HOST}, tolerations=[{"key": "k", "operator": "Exists"}])
    assert places(one(of(), [], tolerant, nodes=nodes)) == {"a": 1}
    borne = of()
    borne["flavors"][0]["tolerations"] = [{"key": "k", "operator": "Exists"}]
    assert places(one(borne, [], ask, nodes=nodes)) == {"a": 1}


def test_pods_outside_of_kueue_hold_their_room() -> None:
    nodes = [node | {"occupied": {"cpu": 3, "pods": 1}} for node in NODES]
    assert one(of(), [], wants("x", 2, 1, {"required": HOST}), nodes=nodes)["outcome"] == "wait"
    assert places(one(of(), [], wants("x", 1, 4, {"preferred": RACK}), nodes=nodes)) == dict.fromkeys("abcd", 1)


def test_heads_of_one_cycle_do_not_take_the_same_nodes() -> None:
    """Each for itself would take host a; the second is assigned again and takes b."""
    second = queue("p", preemption=LOWER, **flavors(f=16))
    pending = [wants("x", 4, 1, {"required": HOST}, priority=1), wants("y", 4, 1, {"required": HOST}) | {"queue": "p"}]
    answer = decide(of(16, second), [], pending, mode="cycle", nodes=NODES)
    assert [places(answer["decisions"][name]) for name in ("x", "y")] == [{"a": 1}, {"b": 1}]
    nodes = [node for node in NODES if node["labels"][HOST] == "a"]
    answer = decide(of(16, second), [], pending, mode="cycle", nodes=nodes, explain="full")
    assert answer["decisions"]["y"]["explanation"]["blocker"].startswith(
        "main: only 0 of 1 pods fit; nearest is r1/a, with room for 0; x took nodes there before it in this cycle"
    )


def test_a_flavor_without_the_level_or_without_a_topology_is_refused() -> None:
    plain = configuration(queue("q", **flavors(f=16)), flavors=[{"name": "f"}])
    assert one(plain, [], wants("x", 1, 1, {"required": RACK}), nodes=NODES)["outcome"] != "admit"
    assert one(of(), [], wants("x", 1, 1, {"required": "block"}), nodes=NODES)["outcome"] != "admit"
    mixed = configuration(
        queue("q", **flavors(f=16, g=16)), flavors=[{"name": "f", "topology": "t"}, {"name": "g"}],
        topologies=[{"name": "t", "levels": [HOST]}],
    )  # fmt: skip
    assert one(mixed, [], asks("x", "q", 1), nodes=NODES)["assignment"] == {"main": {"cpu": "g"}}


def test_a_topology_that_is_not_there_is_named() -> None:
    lost = of() | {"topologies": []}
    with pytest.raises(InvalidInput) as refused:
        one(lost, [], asks("x", "q", 1), nodes=NODES)
    assert [p.pointer for p in refused.value.problems] == ["/configuration/flavors/0/topology"]


def test_what_is_free_is_told_by_level() -> None:
    racks, hosts = shares(of(), [on("w", 3, "a", "c")], "topologies", nodes=NODES)["f"]
    assert (racks["level"], racks["domains_in_all"], hosts["domains_in_all"]) == (RACK, 2, 4)
    assert racks["domains"][0] == {
        "values": ["r1"], "free": {"cpu": 5, "pods": 19}, "largest": {"cpu": 4, "pods": 10},
    }  # fmt: skip
    assert [domain["free"]["cpu"] for domain in hosts["domains"]] == [1, 4, 1, 4]


@pytest.mark.parametrize(("leader", "flavor"), [({"cpu": 1}, "a"), ({"cpu": 1, "memory": 1}, "b")])
def test_a_group_goes_on_with_flavors_where_its_first_pod_set_stopped_for_memory(leader: Json, flavor: str) -> None:
    both = {"cpu": {"guaranteed": 8}, "memory": {"guaranteed": 8}}
    offers = [{"name": name, "quota": both} for name in ("a", "b")]
    of = configuration(
        queue("q", resource_groups=[{"resources": ["cpu", "memory"], "flavors": offers}]),
        flavors=[{"name": "a", "topology": "t"}, {"name": "b", "topology": "t"}],
        topologies=[{"name": "t", "levels": [HOST]}],
    )
    ask = wants("x", 1, 1, {"required": HOST, "pod_set_group": "g"})
    first = ask["tasks"][0] | {"name": "leader", "requests": leader}
    workers = ask["tasks"][0] | {"count": 2, "requests": {"cpu": 1, "memory": 1}}
    stopped = {task["name"]: dict.fromkeys(task["requests"], 0) for task in (first, workers)}
    ask |= {"tasks": [first, workers], "kueue": {"flavor_scan": {"flavors": stopped}}}
    nodes = [{"name": "a", "labels": {HOST: "a"}, "capacity": {"cpu": 8, "memory": 8, "pods": 10}}]
    assert one(of, [], ask, nodes=nodes)["assignment"]["main"] == {"cpu": flavor, "memory": flavor}
