"""What a cycle came to: who has a place, who lost one and for whom, the room that asks took from one another, and
whether a job could ever run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.solver.engines.kai.actions import Cycle
from app.solver.engines.kai.jobs import ALLOCATED, GPU, KAI_UNLIMITED, PIPELINED, Share
from app.solver.engines.kai.overlay import NO_ASK, Eviction, total
from app.solver.engines.kai.state import baseline
from app.solver.model.base import units
from app.solver.model.decision import Shortage


class Outcomes:
    """What a cycle came to, by number of the ask.

    ``placed``: pods that have a place in the end. ``lost``: the eviction that took the last place of an ask that has
    none in the end. ``victims``: evictions of pods that run, in order; a pod placed by the cycle itself never ran: it
    just isn't placed. Who makes room and then loses it makes it for whoever has it in the end.
    """

    def __init__(self, cycle: Cycle) -> None:
        overlay = cycle.overlay
        self.pods = [overlay.pods_of(a) for a in range(len(overlay.asks))]
        self.placed = [
            [t for t in pods if t in overlay.placed and overlay.status[t] in (ALLOCATED, PIPELINED)]
            for pods in self.pods
        ]
        evicted = {t: e for t, e in overlay.evictions.items() if e.ask != NO_ASK}
        self.lost: list[Eviction | None] = [
            None if placed else max((evicted[t] for t in pods if t in evicted), key=_statement, default=None)
            for pods, placed in zip(self.pods, self.placed, strict=True)
        ]
        self.evictions = [e for e in overlay.evictions.values() if e.task < overlay.running_tasks]
        self.victims: list[list[Eviction]] = [[] for _ in self.pods]
        for eviction in self.evictions:
            if eviction.ask == NO_ASK:
                continue
            self.victims[self.holder(eviction.ask)].append(eviction)

    def holder(self, a: int) -> int:
        """Who has the room in the end that ask number ``a`` made: itself, or whoever took it. Whoever takes a place
        gets it later than whoever had it, so that this ends."""
        while (lost := self.lost[a]) is not None:
            a = lost.ask
        return a


def _statement(eviction: Eviction) -> int:
    return eviction.statement


def placed_on(cycle: Cycle, nodes: set[int]) -> list[str]:
    """The asks of which the cycle placed pods on these nodes, in the order of the request."""
    overlay = cycle.overlay
    there = {t for t in overlay.placed if overlay.status[t] in (ALLOCATED, PIPELINED) and overlay.node[t] in nodes}
    return [ask.id for a, ask in enumerate(overlay.asks) if not there.isdisjoint(overlay.pods_of(a))]


_LACKS_ROOM = ("no-room", "no-victims", "no-easier", "too-few-gpus-free", "too-few-gpus", "too-few-victims")


def taken_by(cycle: Cycle, a: int) -> str | None:
    """The sentence for an ask that lacks room only because the cycle gave it to other asks: each of its pods fits on
    what the nodes had before the cycle began, first fit by name. None where that is not so, or cannot be told."""
    overlay = cycle.overlay
    main = cycle.tools.trail.main(overlay.jobs.of_ask[a])
    if main is None or main[1] not in _LACKS_ROOM:
        return None
    pods = overlay.wanted(overlay.jobs.of_ask[a])[0]
    if any(overlay.gpus.share[t] for t in pods):
        return None
    nodes = _first_fit(cycle, pods)
    holders = placed_on(cycle, nodes)
    if not nodes or not holders:
        return None
    where = ", ".join(sorted(overlay.node_names[n] for n in nodes))
    hold = "holds" if len(nodes) == 1 else "hold"
    return f"{where} had room for it before the cycle began, and {hold} {', '.join(holders)} now"


def _first_fit(cycle: Cycle, pods: Sequence[int]) -> set[int]:
    """The nodes that would hold the pods; empty where some pod fits nowhere."""
    overlay, placer = cycle.overlay, cycle.tools.placer
    free = [column.copy() for column in baseline(overlay.state).free]
    free += [[0] * len(overlay.state.nodes) for _ in range(overlay.width - len(free))]
    used: set[int] = set()
    for t in pods:
        request, allowed = overlay.request[t], placer.allowed(t)
        for n in placer.by_name:
            if (allowed is None or allowed[n]) and all(need <= free[r][n] for r, need in enumerate(request)):
                for r, need in enumerate(request):
                    free[r][n] -= need
                used.add(n)
                break
        else:
            return set()
    return used


_NAMES = ("cpu", "memory", "gpu")
_BOUNDS = {"OverLimit": "limit", "NonPreemptibleOverQuota": "deserved quota"}


@dataclass(frozen=True, slots=True)
class Never:
    """Why a job can never run: a reason for conditions, a sentence, what is short."""

    reason: str
    message: str
    shortages: list[Shortage] = field(default_factory=list[Shortage])


def never(cycle: Cycle, job: int) -> Never | None:
    """The first reason why the job can't run, ever; None where it might."""
    overlay, jobs = cycle.overlay, cycle.overlay.jobs
    if not overlay.leaf[job]:
        queue = overlay.queue_name(jobs.queue[job])
        return Never("QueueNotALeaf", f"{queue} has queues below it, and KAI schedules only jobs of leaves")
    have, need, gang = len(jobs.tasks[job]), jobs.min_available[job], jobs.gang[job]
    if not have:
        return Never("NoPods", "it has no pods")
    if have < need:
        return Never("GangIncomplete", f"its gang needs {need} pods and it has {have}")
    if gang is not None and not gang.satisfied(jobs.by_pod_set(jobs.tasks[job])):
        return Never("GangIncomplete", "its sub groups have fewer pods than they need")
    if gang is None:
        pods = overlay.in_order(job)[: max(need, 1)]
    else:
        pods = gang.next_pods({}, jobs.by_pod_set(overlay.in_order(job)))
    return _too_big(cycle, pods) or _over_bounds(cycle, job, total(overlay.request, pods))


def _too_big(cycle: Cycle, pods: list[int]) -> Never | None:
    """A pod of the gang that no empty node could hold."""
    overlay, state = cycle.overlay, cycle.overlay.state
    seen: set[tuple[object, ...]] = set()
    for t in pods:
        allowed = cycle.tools.placer.allowed(t)
        key = (overlay.request[t], id(allowed))
        if key in seen or t < overlay.running_tasks:
            continue
        seen.add(key)
        open_nodes = [n for n in range(len(state.nodes)) if allowed is None or allowed[n]]
        if not open_nodes:
            if not state.nodes:
                return Never("NoNodes", "there are no nodes in the state")
            return Never("NoNodeAllowed", f"no node satisfies what {overlay.jobs.task_name[t]} asks of nodes")
        if not any(_holds(state.capacity[n], overlay.request[t]) for n in open_nodes):
            return _larger_than_nodes(cycle, t, open_nodes)
    return None


def _larger_than_nodes(cycle: Cycle, t: int, nodes: list[int]) -> Never:
    overlay, state = cycle.overlay, cycle.overlay.state
    short: list[Shortage] = []
    for r, amount in enumerate(overlay.request[t]):
        largest = max((state.capacity[n][r] for n in nodes if r < len(state.capacity[n])), default=0)
        if amount > largest:
            name = _NAMES[r] if r <= GPU else overlay.resources.names[r]
            short.append(
                Shortage(
                    resource=name, requested=units(amount, name), available=units(largest, name),
                    short=units(amount - largest, name),
                )
            )  # fmt: skip
    what = ", ".join(f"{s.requested} {s.resource}" for s in short) or "this combination of resources"
    return Never("LargerThanAnyNode", f"no node, even empty, could hold {overlay.jobs.task_name[t]}: {what}", short)


def _holds(capacity: tuple[int, ...], request: tuple[int, ...]) -> bool:
    return all(amount <= (capacity[r] if r < len(capacity) else 0) for r, amount in enumerate(request))


def _over_bounds(cycle: Cycle, job: int, gang: Share) -> Never | None:
    """A limit, or for a non-preemptible job a deserved quota, that the gang alone would pass."""
    order, overlay = cycle.tools.order, cycle.overlay
    fixed = not overlay.jobs.preemptible[job]
    for q in overlay.paths[overlay.jobs.queue[job]]:
        for r, need in enumerate(gang):
            limit, deserved = order.limit[q][r], order.deserved[q][r]
            if need and limit != KAI_UNLIMITED and need > limit:
                return _bound(cycle, "OverLimit", q, r, need, limit)
            if need and fixed and deserved != KAI_UNLIMITED and need > deserved:
                return _bound(cycle, "NonPreemptibleOverQuota", q, r, need, deserved)
    return None


def _bound(cycle: Cycle, reason: str, q: int, r: int, need: int, bound: int) -> Never:
    queue, name = cycle.overlay.queue_name(q), _NAMES[r]
    shortage = Shortage(
        resource=name, queue=queue, requested=units(need, name), available=units(bound, name),
        short=units(need - bound, name),
    )  # fmt: skip
    message = (
        f"its gang needs {shortage.requested} {name}, more than the {_BOUNDS[reason]} of {queue}, {shortage.available}"
    )
    return Never(reason, message, [shortage])
