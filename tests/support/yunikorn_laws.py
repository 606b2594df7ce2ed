"""What tests of yunikorn laws share with those beside them."""

from typing import Any

from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from tests.support.profiles import examples
from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

RESOURCES = ("vcore", "memory")


LEAVES = ("root.a", "root.b.c", "root.b.d", "root.b.cc", "root.e.f")


QUICK = examples(
    150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


def _amounts(draw: Any, most: int) -> Json:
    names = draw(st.sampled_from([("vcore",), ("vcore",), RESOURCES, ("memory",)]))
    return {r: draw(st.integers(1, most)) for r in names}


def _quota(draw: Any, ceiling: dict[str, int]) -> dict[str, tuple[int | None, int | None]]:
    """Guarantees and limits below those of the parents, which ``ceiling`` keeps and this tightens."""
    out: dict[str, tuple[int | None, int | None]] = {}
    for r in RESOURCES:
        limit = draw(st.one_of(st.none(), st.none(), st.integers(2, 14)))
        if limit is not None:
            limit = ceiling[r] = min(limit, ceiling.get(r, limit))
        guaranteed = draw(st.one_of(st.none(), st.integers(0, 8)))
        if guaranteed is not None:
            guaranteed = min(guaranteed, ceiling.get(r, guaranteed))
        if guaranteed is not None or limit is not None:
            out[r] = (guaranteed, limit)
    return out


@st.composite
def worlds(draw: Any) -> World:
    """A tree of at most five leaves, nodes that are nearly full, running tasks of all kinds."""
    leaves = draw(st.lists(st.sampled_from(LEAVES), min_size=2, max_size=4, unique=True))
    names = sorted({".".join(leaf.split(".")[: i + 1]) for leaf in leaves for i in range(leaf.count(".") + 1)})
    ceilings: dict[str, dict[str, int]] = {"root": {}}
    queues = [queue("root")]
    for name in names[1:]:
        ceiling = ceilings[name] = dict(ceilings[name.rpartition(".")[0]])
        policy = draw(st.sampled_from(["default", "default", "default", "fence"]))
        queues.append(queue(name, _quota(draw, ceiling), preemption_policy=policy))
    hungry = leaves[0]
    if draw(st.booleans()):
        queues = [queue(hungry, {"vcore": 8}) if q["name"] == hungry else q for q in queues]
        for q in queues:
            if hungry.startswith(q["name"]) and q["name"] != hungry:
                q.pop("quota", None)
    nodes = [
        node(f"n{i}", {r: draw(st.integers(3, 7)) for r in RESOURCES}) for i in range(draw(st.integers(1, 3)))
    ]  # fmt: skip
    workloads = {leaf: app(f"app-{leaf}", leaf) for leaf in leaves}
    for at in nodes:
        free = dict(at["capacity"])
        for i in range(7):
            wanted = {r: min(n, free[r]) for r, n in _amounts(draw, 3).items() if free[r]}
            if wanted:
                for r, n in wanted.items():
                    free[r] -= n
                leaf = draw(st.sampled_from(leaves[1:]))
                workloads[leaf]["tasks"].append(_task(draw, f"{at['name']}-{i}", at["name"], wanted))
    return World(queues=queues, nodes=nodes, workloads=list(workloads.values()))


def _task(draw: Any, name: str, on: str, wanted: Json) -> Json:
    return task(
        name, on, wanted, draw(st.integers(100, 104)), priority=draw(st.integers(0, 2)),
        preemptible=draw(st.sampled_from([True, True, False])), originator=draw(st.sampled_from([False, False, True])),
    )  # fmt: skip


@st.composite
def tenants(draw: Any) -> World:
    """Two tenants on full nodes, of a few teams each; one team may be split once more. A parent guarantees the sum of
    its children, or a little more or less, or nothing."""
    split = draw(st.booleans())
    teams = ["root.p.a", "root.p.b", "root.q.c", "root.q.d"]
    leaves = [*teams[1:], "root.p.a.x", "root.p.a.y"] if split else teams
    guaranteed: dict[str, Json] = {leaf: _promise(draw) for leaf in leaves}
    parents = [*(["root.p.a"] if split else []), "root.p", "root.q"]
    for parent in parents:
        below = [of for name, of in guaranteed.items() if name.rpartition(".")[0] == parent]
        total = {r: sum(of.get(r, 0) for of in below) for r in RESOURCES if any(r in of for of in below)}
        off = draw(st.sampled_from([0, 0, 0, -1, 2]))
        keep = draw(st.sampled_from([True, True, True, False]))
        guaranteed[parent] = {r: max(0, n + off) for r, n in total.items()} if keep else {}
    queues = [queue("root"), *(queue(name, guaranteed[name]) for name in sorted(guaranteed))]
    capacity = {"vcore": draw(st.integers(3, 6)), "memory": draw(st.sampled_from([6, 60]))}
    nodes = [node(f"n{i}", capacity) for i in range(draw(st.integers(1, 3)))]
    workloads = {leaf: app(f"app-{leaf}", leaf) for leaf in leaves}
    for at in nodes:
        free = dict(capacity)
        for i in range(6):
            wanted = {r: min(n, free[r]) for r, n in _amounts(draw, 3).items() if free[r]}
            for r, n in wanted.items():
                free[r] -= n
            if wanted:
                leaf = draw(st.sampled_from(leaves))
                workloads[leaf]["tasks"].append(_task(draw, f"{at['name']}-{i}", at["name"], wanted))
    return World(queues=queues, nodes=nodes, workloads=list(workloads.values()))


def _promise(draw: Any) -> Json:
    names = draw(st.sampled_from([(), ("vcore",), ("vcore",), ("vcore",), RESOURCES, ("memory",)]))
    return {r: draw(st.integers(0, 6)) for r in names}


@st.composite
def asks_of(draw: Any, of: World, most: int) -> list[Json]:
    leaves = [w["queue"] for w in of.workloads]
    leaves += leaves[:1] * 3
    out: list[Json] = []
    for i in range(draw(st.integers(1, most))):
        leaf = draw(st.sampled_from(leaves))
        more: Json = {"workload": f"app-{leaf}", "priority": draw(st.integers(0, 2))}
        out.append(ask(f"ask-{i}", leaf, _amounts(draw, 4), draw(st.integers(31, 100)), **more))
    return out
