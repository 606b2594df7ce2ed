"""Where a want may run, and what the nodes of a filter have: random restrictions against their plain reading."""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.engines.ytsaurus.operations import UNLIMITED_STEPS
from app.solver.engines.ytsaurus.preparation import prepare
from app.solver.model.configuration import Configuration
from app.solver.model.state import Ask, State
from tests.unit.solver.engines.ytsaurus.cluster import alloc, node, operation, pool

Json = dict[str, Any]
FILTERS: dict[str, Callable[[Json], bool]] = {
    "zone=a": lambda of: of["zone"] == "a",
    "!zone=b & disk": lambda of: of["zone"] != "b" and "disk" in of,
}
"""Of pools, and what they say of a node's labels."""


def labels(random: Random) -> Json:
    return {"zone": random.choice("ab")} | ({"disk": random.choice(("ssd", "hdd"))} if random.random() < 0.7 else {})


def selector(random: Random) -> Json | None:
    drawn = {"zone": random.choice("ab"), "disk": random.choice(("ssd", "hdd"))}
    return {key: value for key, value in drawn.items() if random.random() < 0.6} if random.random() < 0.7 else None


def task(random: Random, name: str) -> Json:
    of: Json = {"name": name, "requests": {"user_slots": 1, "cpu": 1}}
    chosen = selector(random)
    return of | ({} if chosen is None else {"node_selector": chosen})


def drawn(random: Random) -> tuple[list[Json], list[Json], list[Json], list[Json]]:
    """Pools, nodes, operations and asks."""
    pools = [pool("p"), pool("c", parent="p"), pool("q")]
    for one in pools:
        if random.random() < 0.5:
            one["ytsaurus"] = {"scheduling_tag_filter": random.choice(list(FILTERS))}
    nodes = [node(f"n{i}", 2**i, labels=labels(random)) for i in range(6)]
    nodes[3]["occupied"] = {"cpu": random.choice((0, 3, 9))}
    operations = [operation(f"x{i}", random.choice("cq")) for i in range(3)]
    for one in operations:
        one["tasks"] = [alloc(f"t{i}", on=None) | task(random, f"t{i}") for i in range(random.randint(0, 2))]
    asks: list[Json] = []
    for i in range(5):
        of = random.choice(operations)
        names = [f"n{random.randrange(6)}" for _ in range(4)]
        more: Json = random.choice(({}, {"feasible_nodes": names}, {"required_node": names[0]}))
        tasks = [task(random, f"k{k}") for k in range(random.randint(1, 2))]
        if random.random() < 0.3:
            tasks[0]["required_node"] = names[1]
        asks.append({"id": f"ask{i}", "workload": of["id"], "queue": of["queue"], "tasks": tasks} | more)
    asks.append({"id": "new", "workload": "new", "queue": "q", "tasks": [task(random, "k0"), task(random, "k1")]})
    return pools, nodes, operations, asks


def selects(wanted: Json | None, of: Json) -> bool:
    return all(of["labels"].get(key) == value for key, value in (wanted or {}).items())


def admits(pools: list[Json], name: str | None, of: Json) -> bool:
    """Whether the filters of a pool and of those above it hold."""
    while name is not None:
        own = next(one for one in pools if one["name"] == name)
        filtered = own.get("ytsaurus", {}).get("scheduling_tag_filter")
        if filtered is not None and not FILTERS[filtered](of["labels"]):
            return False
        name = own.get("parent")
    return True


def amount(nodes: list[Json]) -> list[int]:
    """Slots and thousandths of cpu, without what others occupy."""
    cpu = (max(0, of["capacity"]["cpu"] - of.get("occupied", {}).get("cpu", 0)) for of in nodes)
    return [100 * len(nodes), 1000 * sum(cpu)]


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_restrictions(first: int) -> None:
    for seed in range(first, first + 20):
        pools, nodes, operations, asks = drawn(Random(seed))
        configured = solve.configure(msgspec.convert({"engine": "ytsaurus", "queues": pools}, Configuration))
        state = msgspec.convert({"nodes": nodes, "workloads": operations}, State)
        prepared = prepare(solve.load(configured, state).compiled, msgspec.convert(asks, list[Ask]))
        situation, feasible = prepared.situation, prepared.feasible
        for row in range(len(situation.wants)):
            of: Json = asks[int(situation.wants.ask[row])]
            wanted: Json = of["tasks"][int(situation.wants.task[row])]
            required = wanted.get("required_node") or of.get("required_node")
            for i, one in enumerate(nodes):
                may = (
                    one["name"] in of.get("feasible_nodes", [one["name"]])
                    and required in (None, one["name"])
                    and selects(wanted.get("node_selector"), one)
                    and admits(pools, of["queue"], one)
                )
                listed = [*feasible.on.get(i, [])].count(row)
                assert (may, 0) == (True, listed) if feasible.anywhere[row] else may == listed, seed
        for i, one in enumerate([*operations, {"id": "new", "tasks": []}]):
            tasks: list[Json] = [*one["tasks"], *(t for a in asks if a["workload"] == one["id"] for t in a["tasks"])]
            chosen = [t.get("node_selector") for t in tasks]
            limit = amount([n for n in nodes if any(selects(s, n) for s in chosen)])
            unlimited = not all(chosen) or not chosen
            assert situation.tagged[i].tolist() == ([UNLIMITED_STEPS] * 2 if unlimited else limit), seed
        for i, one in enumerate(pools):
            own = one.get("ytsaurus", {}).get("scheduling_tag_filter")
            limit = [UNLIMITED_STEPS] * 2 if own is None else amount([n for n in nodes if FILTERS[own](n["labels"])])
            assert situation.pool_tagged[i].tolist() == limit, seed
        assert situation.pool_tagged[len(pools)].tolist() == [UNLIMITED_STEPS] * 2


def test_a_depth_first_walk() -> None:
    """Below a pool first its child pools, then its operations; however deep."""
    pools = [pool("q"), pool("top"), pool("mid", parent="top"), pool("leaf", parent="mid"), pool("other", parent="top")]
    operations = [operation(name, name) for name in ("top", "other", "q", "leaf", "mid")]
    operations.append(operation("again", "leaf"))
    configured = solve.configure(msgspec.convert({"engine": "ytsaurus", "queues": pools}, Configuration))
    state = msgspec.convert({"nodes": [node()], "workloads": operations}, State)
    prepared = prepare(solve.load(configured, state).compiled, [])
    walk = sorted(zip(prepared.rank.tolist(), prepared.situation.operations.ids, strict=True))
    assert [name for _, name in walk] == ["q", "leaf", "again", "mid", "other", "top"]
