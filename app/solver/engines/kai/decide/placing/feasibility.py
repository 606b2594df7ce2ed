"""Whether a job could ever run under this configuration, on these nodes, were everybody else gone."""

from dataclasses import dataclass, field

from app.solver.engines.kai.compile.resources import GPU, KAI_UNLIMITED, Share
from app.solver.engines.kai.decide.cycle import Cycle
from app.solver.engines.kai.decide.overlay import total
from app.solver.model.decision import Shortage
from app.solver.model.quantity import units

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
    have, need = len(jobs.tasks[job]), jobs.min_available[job]
    if not have:
        return Never("NoPods", "it has no pods")
    if have < need:
        return Never("GangIncomplete", f"its gang needs {need} pods and it has {have}")
    pods = overlay.in_order(job)[: max(need, 1)]
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
