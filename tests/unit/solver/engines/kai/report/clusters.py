"""Small KAI clusters that meet many rules at once; ``answers.json`` has what is said of them, word for word.

Each docstring says what must come of it and why: the answers were held against that line by line.
"""

from tests.support.kai_world import NOW, Json
from tests.unit.solver.engines.kai.case import ALL, ask, node, queue, workload

YOUNG, OLD = "2027-01-15T07:59:00Z", "2027-01-01T00:00:00Z"


def _body(queues: list[Json], nodes: list[Json], workloads: list[Json], *asks: Json, **settings: object) -> Json:
    mode = settings.pop("mode", "cycle")
    return {
        "engine": "kai", "mode": mode, "now": NOW.isoformat(), "explain": "full",
        "configuration": {"settings": {"kai": {"actions": ALL} | settings}, "queues": queues},
        "state": {"nodes": nodes, "workloads": workloads}, "asks": list(asks),
    }  # fmt: skip


def _reclaim() -> Json:
    """8 GPUs, 7 used, ``team`` deserves 4 and uses 6. ``odd`` comes first and opens the last whole GPU. ``more`` takes
    from ``b``, the leaf further above its share: ``old`` for its lower priority, then the one pod that ``elastic`` may
    lose. ``young`` has its hour, ``fixed`` all, and ``own`` is of the asking queue, which is at its share of 3 then:
    ``two`` waits."""
    queues = [
        queue("root", gpu=8), queue("team", "root", gpu=4, kai={"reclaim_min_runtime": "1h"}),
        queue("a", "team", gpu=3, kai={"preempt_min_runtime": 60}), queue("b", "team", gpu=1),
        queue("c", "root", gpu=3, gpus={"limit": 5}), queue("d", "root", gpu=1, weight=0),
    ]  # fmt: skip
    running = [
        workload("young", "a", "n", started_at=YOUNG), workload("fixed", "a", "n", preemptible=False),
        workload("elastic", "b", "n", "m", "m", min_available=2, started_at=YOUNG),
        workload("old", "b", "m", priority=40), workload("own", "c", "m"),
    ]  # fmt: skip
    asks = [
        ask("two", "c", 2), ask("more", "c", gpu=2), ask("wide", "c", 6), ask("odd", "d", gpu="500m", priority=70),
    ]  # fmt: skip
    return _body(queues, [node("n"), node("m")], running, *asks)


def _preempt() -> Json:
    """4 + 2 GPUs, all used. ``top`` needs 3 on ``n``: ``low`` and then both of ``pair``, a gang. Nobody of priority 60,
    of ``b``, or younger than 90 seconds goes. ``sel`` may use ``m`` alone, where nobody may be taken;
    ``grown``, one more pod of ``same``, takes ``low``."""
    queues = [
        queue("root", gpu="unlimited", kai={"preempt_min_runtime": 90}),
        queue("a", "root", gpu=6),
        queue("b", "root"),
    ]
    running = [
        workload("low", "a", "n", priority=10, created_at="2026-12-01T00:00:00Z"),
        workload("pair", "a", "n", "n", priority=20), workload("same", "a", "n", priority=60),
        workload("fresh", "a", "m", priority=5, started_at=YOUNG), workload("other", "b", "m", priority=5),
    ]  # fmt: skip
    nodes = [
        node("n", labels={"zone": "x"}),
        node("m", gpu=2, labels={"zone": "y"}, taints=[{"key": "k", "effect": "NoSchedule"}]),
    ]
    on_m = {"task": {"node_selector": {"zone": "y"}, "tolerations": [{"key": "k", "operator": "Exists"}]}}
    asks = [
        ask("top", "a", priority=60, gpu=3), ask("sel", "a", priority=50, **on_m),
        ask("never", "a", task={"node_selector": {"zone": "z"}}), ask("huge", "a", gpu=5, priority=55),
        ask("grown", "a", workload="same", priority=60, min_available=1),
    ]  # fmt: skip
    return _body(queues, nodes, running, *asks, actions=["allocate", "preempt"], mode="independent")


def _consolidation() -> Json:
    """Three nodes of 2 GPUs with one used each. ``grow``, one more pod of ``x``, fills ``n0``; ``big`` (2 GPUs) fits
    once ``y`` moves to ``n2``, and a cap of 1 lets consolidation look at two jobs; nobody moves for ``fix``, which
    isn't preemptible; ``all`` would need more GPUs than are free."""
    queues = [queue("root", gpu="unlimited"), queue("a", "root", gpu=6), queue("b", "root", gpu=2)]
    running = [workload("x", "a", "n0", min_available=1), workload("y", "a", "n1"), workload("z", "b", "n2")]
    asks = [
        ask("big", "a", gpu=2, priority=60), ask("fix", "a", gpu=2, preemptible=False),
        ask("grow", "a", workload="x", min_available=1), ask("all", "b", 2, gpu=2, priority=40),
    ]  # fmt: skip
    nodes = [node(f"n{i}", gpu=2) for i in range(3)]
    return _body(
        queues, nodes, running, *asks, max_consolidation_preemptees=1, rules="shipped", use_scheduling_signatures=False
    )


def _cycle() -> Json:
    """One node of 4 GPUs, one of them being released. ``first`` is of a queue below its quota and gets three, ``waits``
    of another the one that is still to be released; ``late``, of a queue without a quota, had room before, for all its
    higher priority. ``short`` lacks a pod of its gang; ``up`` asks of a queue that has others below it; ``cpu`` wants
    more than any node has, ``little`` no GPU."""
    queues = [queue("root", gpu="unlimited"), queue("a", "root"), queue("b", "root", gpu=3), queue("e", "root", gpu=1)]
    running = [
        workload("gone", "a", "n") | {"tasks": [
            {"name": "gone-0", "node": "n", "state": "releasing", "requests": {"cpu": 1, "memory": "1Gi", "gpu": 1}}
        ]},
    ]  # fmt: skip
    asks = [
        ask("late", "a", 2, priority=90), ask("first", "b", 3, priority=40), ask("waits", "e"),
        ask("short", "a", 1) | {"min_available": 2}, ask("up", "root"), ask("cpu", "a", gpu=0, cpu=99),
        ask("little", "e", gpu=0, cpu=2),
    ]  # fmt: skip
    return _body(queues, [node("n")], running, *asks, actions=["allocate", "consolidation"], rules="shipped")


def _shipped() -> Json:
    """Released rules. ``r`` shares the GPU that ``t`` opened. ``p``'s two pods are solved one after the other, each
    with the newest pod of ``g``, which keeps its gang of one; ``soon`` starts in a year and is protected until then
    even by a minimum of 0. ``q`` is stopped by the deserved quota, ``s`` by the fair share."""
    queues = [
        queue("root", gpu="unlimited"), queue("a", "root", gpu=1, kai={"reclaim_min_runtime": "10m"}),
        queue("b", "root", gpu=3), queue("twin", gpu=1, kai={"reclaim_min_runtime": 0}),
    ]  # fmt: skip
    running = [
        workload("g", "a", "n", "n", "n", min_available=1, started_at=YOUNG), workload("h", "a", "n", started_at=OLD),
        workload("soon", "twin", "m", started_at="2028-01-01T00:00:00Z"), workload("t", "twin", "m", gpu="500m"),
    ]  # fmt: skip
    asks = [
        ask("p", "b", 2), ask("q", "b", 2, preemptible=False, gpu=2), ask("r", "b", gpu="250m"), ask("s", "twin"),
    ]  # fmt: skip
    return _body(
        queues, [node("n"), node("m", gpu=2)], running, *asks, rules="shipped", default_preempt_min_runtime="5m"
    )


CLUSTERS: dict[str, Json] = {
    "reclaim": _reclaim(), "preempt": _preempt(), "consolidation": _consolidation(), "cycle": _cycle(),
    "shipped": _shipped(),
}  # fmt: skip
