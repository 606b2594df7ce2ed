"""The baseline of a state: sums over its pods that every decision starts from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.solver.compiled.tree import ROOTLESS, Tree
from app.solver.engines.kai.compile.jobs import NOWHERE, RELEASING, RUNNING, Jobs
from app.solver.engines.kai.compile.resident import Baseline, Layout
from app.solver.engines.kai.compile.resources import CPU, GPU, MEMORY, Share, Vector
from app.solver.engines.kai.compile.state import CompiledState
from app.solver.kubernetes import untolerated

_WHOLE = 1000
_HOLDING = (RUNNING, RELEASING)


def baseline(state: CompiledState) -> Baseline:
    """Worked out once per state."""
    found = state.resident.baseline
    if found is None:
        found = state.resident.baseline = _baseline(state)
    return found


def layout(state: CompiledState) -> Layout:
    """Worked out once for all versions of a state between which no node changes."""
    found = state.resident.layout
    if found is None:
        found = state.resident.layout = _layout(state)
    return found


def _layout(state: CompiledState) -> Layout:
    names = state.node_name
    by_name = sorted(range(len(names)), key=names.__getitem__)
    place = [0] * len(names)
    for i, n in enumerate(by_name):
        place[n] = i
    usable = [v for v, node in zip(state.capacity, state.nodes, strict=True) if node.schedulable]
    return Layout(
        by_name=by_name, place=place, everywhere=frozenset(range(len(names))),
        has_cpu=[bool(v[CPU]) for v in state.capacity], has_gpu=[bool(v[GPU]) for v in state.capacity],
        usable=(sum(v[CPU] for v in usable), sum(v[MEMORY] for v in usable), sum(v[GPU] for v in usable)),
        open=[node.schedulable and untolerated(node.taints, ()) is None for node in state.nodes], allowed={},
    )  # fmt: skip


def is_share(request: Vector) -> bool:
    """Whether a request is for a share of one GPU."""
    return 0 < request[GPU] < _WHOLE


def columns(requests: Sequence[Vector], seen: dict[Vector, tuple[tuple[int, int], ...]]) -> Iterable[
    tuple[tuple[int, int], ...]
]:  # fmt: skip
    """The columns that each request takes from a node; ``seen`` keeps those worked out."""
    for request in requests:
        found = seen.get(request)
        if found is None:
            share = is_share(request)
            found = seen[request] = tuple(
                (r, amount) for r, amount in enumerate(request) if amount and not (r == GPU and share)
            )
        yield found


def _baseline(state: CompiledState) -> Baseline:
    jobs, tree = state.jobs, state.configuration.tree
    taken = list(columns(jobs.task_request, {}))
    free = [[v[r] for v in state.capacity] for r in range(len(state.resources))]
    sums = Sums(
        free, [column.copy() for column in free], [[0, 0, 0] for _ in tree.names], [[0, 0, 0] for _ in tree.names]
    )
    counted = [sums.count(jobs, j, taken, 1) for j in range(len(jobs.id))]
    return Baseline(
        active=[active for active, _ in counted], used=[used for _, used in counted], columns=taken,
        free=sums.free, idle=sums.idle, allocated=upwards(tree, sums.allocated), fixed=upwards(tree, sums.fixed),
        homeless=homeless(jobs),
    )  # fmt: skip


def sums_over(tree: Tree, free: Sequence[list[int]], idle: Sequence[list[int]]) -> "Sums":
    """Sums that begin with these amounts of nodes, which stay as they are, and with nothing held by queues."""
    allocated, fixed = ([[0, 0, 0] for _ in tree.names] for _ in range(2))
    return Sums([column.copy() for column in free], [column.copy() for column in idle], allocated, fixed)


def homeless(jobs: Jobs) -> list[tuple[int, int]]:
    """Pods that hold a place nobody names, as job and place in it."""
    if NOWHERE not in jobs.task_node:
        return []
    return [
        (j, jobs.tasks[j].index(t))
        for t, (j, s, n) in enumerate(zip(jobs.task_job, jobs.task_state, jobs.task_node, strict=True))
        if n == NOWHERE and s in _HOLDING
    ]


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over pods, to add to and take from: ``free`` and ``idle`` by resource and node, ``allocated`` and ``fixed``
    by queue, each queue's own pods only."""

    free: list[list[int]]
    idle: list[list[int]]
    allocated: list[list[int]]
    fixed: list[list[int]]

    def count(self, jobs: Jobs, j: int, taken: list[tuple[tuple[int, int], ...]], sign: int) -> tuple[int, int]:
        """Add the pods of job j (``sign`` 1) or take them out (-1). ``taken``: what each takes from its node. How many
        of them run, and how many hold a place."""
        active = used = cpu = memory = gpu = 0
        for t in jobs.tasks[j]:
            status, n = jobs.task_state[t], jobs.task_node[t]
            if status not in _HOLDING:
                continue
            used += 1
            if status == RUNNING:
                active += 1
                request = jobs.task_request[t]
                cpu, memory, gpu = cpu + request[0], memory + request[1], gpu + request[2]
            if n == NOWHERE:
                continue
            for r, amount in taken[t]:
                self.idle[r][n] -= sign * amount
                if status == RUNNING:
                    self.free[r][n] -= sign * amount
        held = sign * cpu, sign * memory, sign * gpu
        _add(self.allocated[jobs.queue[j]], held)
        if not jobs.preemptible[j]:
            _add(self.fixed[jobs.queue[j]], held)
        return active, used


def upwards(tree: Tree, own: list[list[int]]) -> list[Share]:
    """Sums by queue, those of every queue below included. Changes ``own``."""
    for queue in reversed(tree.top_down):
        if tree.parent[queue] != ROOTLESS:
            _add(own[tree.parent[queue]], own[queue])
    return [(v[0], v[1], v[2]) for v in own]


def _add(to: list[int], amounts: Sequence[int]) -> None:
    to[0] += amounts[0]
    to[1] += amounts[1]
    to[2] += amounts[2]
