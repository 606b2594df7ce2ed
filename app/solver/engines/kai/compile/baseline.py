"""The baseline of a state: sums over its pods that every decision starts from."""

from collections.abc import Iterable, Sequence

from app.solver.compiled.tree import ROOTLESS, Tree
from app.solver.engines.kai.compile.jobs import NOWHERE, RELEASING, RUNNING
from app.solver.engines.kai.compile.resident import Baseline
from app.solver.engines.kai.compile.resources import GPU, Share, Vector
from app.solver.engines.kai.compile.state import CompiledState

_WHOLE = 1000


def baseline(state: CompiledState) -> Baseline:
    """Worked out once per state."""
    found = state.resident.baseline
    if found is None:
        found = state.resident.baseline = _baseline(state)
    return found


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
    count, width = len(jobs.id), len(state.resources)
    active, used = [0] * count, [0] * count
    cpu, memory, gpu = [0] * count, [0] * count, [0] * count
    taken = list(columns(jobs.task_request, {}))
    free = [[v[r] for v in state.capacity] for r in range(width)]
    idle = [column.copy() for column in free]
    homeless: list[tuple[int, int]] = []
    for t, (j, s, n) in enumerate(zip(jobs.task_job, jobs.task_state, jobs.task_node, strict=True)):
        if s == RUNNING:
            active[j] += 1
            request = jobs.task_request[t]
            cpu[j] += request[0]
            memory[j] += request[1]
            gpu[j] += request[2]
        elif s != RELEASING:
            continue
        used[j] += 1
        if n == NOWHERE:
            homeless.append((j, jobs.tasks[j].index(t)))
            continue
        for r, amount in taken[t]:
            idle[r][n] -= amount
            if s != RELEASING:
                free[r][n] -= amount
    allocated, fixed = [[0, 0, 0] for _ in tree.names], [[0, 0, 0] for _ in tree.names]
    for j, held in enumerate(zip(cpu, memory, gpu, strict=True)):
        _add(allocated[jobs.queue[j]], held)
        if not jobs.preemptible[j]:
            _add(fixed[jobs.queue[j]], held)
    return Baseline(
        active=active, used=used, held=[cpu, memory, gpu], columns=taken, free=free, idle=idle,
        allocated=upwards(tree, allocated), fixed=upwards(tree, fixed), homeless=homeless,
    )  # fmt: skip


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
