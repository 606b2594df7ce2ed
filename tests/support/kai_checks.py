"""Invariants of KAI's overlay and scenarios, worked out again from the pods alone, to be held after every statement."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from app.solver.engines.kai.job_order import VictimOrder
from app.solver.engines.kai.jobs import ALLOCATED, GPU, PENDING, PIPELINED, RELEASING, RUNNING
from app.solver.engines.kai.overlay import EVICT, Overlay
from app.solver.engines.kai.scenario import Group, Scenario
from app.solver.engines.kai.search import Prefix
from app.solver.engines.kai.solver import Solver
from tests.support.instead import Instead

ACTIVE = (RUNNING, ALLOCATED, PIPELINED)
HOLDING = (*ACTIVE, RELEASING)
EPOCH = datetime.fromtimestamp(0, UTC)


def check_books(overlay: Overlay) -> None:
    """Jobs and nodes have what their pods leave; queues too where no pod is charged twice (``exact``)."""
    status, node, request, jobs = overlay.status, overlay.node, overlay.request, overlay.jobs
    assert len(overlay.ops) == len(overlay.undone)
    for j, tasks in enumerate(jobs.tasks):
        count = Counter(status[t] for t in tasks)
        assert overlay.active[j] == sum(count[s] for s in ACTIVE)
        assert overlay.pending[j] == count[PENDING]
        assert overlay.used[j] == overlay.active[j] + count[RELEASING]
    for n, capacity in enumerate(overlay.state.capacity):
        here = [t for t in range(len(status)) if node[t] == n]
        for r in range(overlay.width):
            if r == GPU and overlay.gpus.any:
                continue
            have = capacity[r] if r < len(capacity) else 0
            later = sum(request[t][r] for t in here if status[t] in ACTIVE)
            left = sum(request[t][r] for t, left in _left_behind(overlay) if left == n)
            now = sum(request[t][r] for t in here if status[t] in (RUNNING, ALLOCATED, RELEASING)) + left
            assert overlay.free[r][n] == have - later
            # A step taken back may have listed a pod a second time, as being released where it runs on.
            assert overlay.idle[r][n] <= have - now if overlay.by_steps else overlay.idle[r][n] == have - now
    check_wanted(overlay)
    if overlay.gpus.any:
        check_devices(overlay)
    if overlay.exact:
        check_queues(overlay)


def check_wanted(overlay: Overlay) -> None:
    """A job wants the first pods that its gang lacks of those that are pending or evicted by the statement in hand, or
    one more; not what it wanted before the last step."""
    status, wires, names = overlay.status, overlay.jobs.task_wire, overlay.jobs.task_name
    for j, tasks in enumerate(overlay.jobs.tasks):
        able = [t for t in tasks if status[t] == PENDING or (status[t] == RELEASING and overlay.virtual[t])]
        able.sort(key=lambda t: (-(wires[t].priority or 0), wires[t].created_at or EPOCH, names[t]))
        lacks = max(1, overlay.jobs.min_available[j] - sum(status[t] in ACTIVE for t in tasks))
        wanted = able[:lacks]
        assert overlay.wanted(j) == (wanted, tuple(sum(overlay.request[t][r] for t in wanted) for r in range(3)))


def check_devices(overlay: Overlay) -> None:
    """Devices are promised to those that wait for them, and held for good by those that have a place; the rest of what
    is listed on them is being released. Exact books promise no more than there is."""
    gpus, status, node = overlay.gpus, overlay.status, overlay.node
    need, held = gpus.need, gpus._held  # pyright: ignore[reportPrivateUsage]
    used, allocated = gpus._used, gpus._allocated  # pyright: ignore[reportPrivateUsage]
    waiting, placed = [0] * len(used), [0] * len(used)
    for t, s in enumerate(status):
        for d in gpus.on(t) if held[t] >= 0 and s in ACTIVE else ():
            placed[d] += need(t, node[t])
            waiting[d] += need(t, node[t]) if s == PIPELINED else 0
    assert [u - a for u, a in zip(used, allocated, strict=True)] == waiting
    releasing = gpus._releasing  # pyright: ignore[reportPrivateUsage]
    assert [a - r for a, r in zip(allocated, releasing, strict=True)] == placed
    assert not (overlay.exact and gpus.overfilled())


def check_queues(overlay: Overlay) -> None:
    """Queues hold what the pods below them hold."""
    jobs, request = overlay.jobs, overlay.request
    active = [t for t, status in enumerate(overlay.status) if status in ACTIVE]
    for q in range(len(overlay.paths)):
        below = [t for t in active if q in overlay.paths[jobs.queue[jobs.task_job[t]]]]
        fixed = [t for t in below if not jobs.preemptible[jobs.task_job[t]]]
        for r in range(3):
            assert overlay.allocated[r][q] == sum(request[t][r] for t in below)
            assert overlay.fixed[r][q] == sum(request[t][r] for t in fixed)


def _left_behind(overlay: Overlay) -> list[tuple[int, int]]:
    """Pods that moved in this cycle, each with every node that it left: what it held there is still being released."""
    nodes = range(len(overlay.node_names))
    return [(t, n) for t, left in enumerate(overlay.ghost) for n in nodes if left >> n & 1]


def check_listing(scenario: Scenario) -> None:
    """Every pod is listed once, by chunks, and what is recorded is listed. 0.17 as shipped may record a pod twice."""
    listed = [t for tasks in scenario.listed.values() for t in tasks]
    assert len(listed) == scenario.pods
    assert len(listed) == len(set(listed)) or (isinstance(scenario, Prefix) and not scenario.overlay.exact)
    assert {job: [t for g in groups for t in g.tasks] for job, groups in scenario.groups.items()} == scenario.listed
    assert scenario.is_recorded <= set(listed)
    for t in listed:
        assert t in scenario.listed[scenario.overlay.jobs.task_job[t]]


def listing(scenario: Scenario) -> dict[str, Any]:
    """What a scenario lists, for comparison with one that walked the order of victims itself."""
    return {
        "listed": scenario.listed, "chunks": {j: [g.tasks for g in of] for j, of in scenario.groups.items()},
        "elastic": set(scenario.elastic), "recorded": scenario.is_recorded, "pods": scenario.pods,
        "on_nodes": {n: list(jobs) for n in range(-1, 99) if (jobs := scenario.victims_on(n))},
    }  # fmt: skip


@contextmanager
def watched() -> Iterator[Counter[str]]:
    """Holds every invariant while it is open; counts what was seen."""
    seen: Counter[str] = Counter()
    commit, rollback, pop = Overlay.commit, Overlay.rollback, VictimOrder.pop
    grow, take_up = Scenario.grow, Solver._take_up  # pyright: ignore[reportPrivateUsage]
    pops: Counter[int] = Counter()

    def watched_commit(overlay: Overlay, action: str, job: int) -> None:
        evicted = Counter(op.task for at, op in enumerate(overlay.ops) if op.kind == EVICT and not overlay.undone[at])
        if overlay.exact:
            assert not evicted or max(evicted.values()) == 1, "a pod is evicted once"
        commit(overlay, action, job)
        check_books(overlay)
        seen["commits"] += 1

    def watched_rollback(overlay: Overlay, mark: tuple[int, int]) -> None:
        rollback(overlay, mark)
        if not overlay.ops:
            check_books(overlay)

    def watched_pop(order: VictimOrder) -> Any:
        pops[id(order)] += 1
        return pop(order)

    def watched_grow(scenario: Scenario, order: VictimOrder) -> bool | None:
        grew = grow(scenario, order)
        check_listing(scenario)
        return grew

    def watched_take_up(solver: Solver, part: list[int], recorded: list[Group], start: tuple[int, int]) -> None:
        scenario, order = solver._scenario, solver._order  # pyright: ignore[reportPrivateUsage]
        known = set(scenario.is_recorded)
        take_up(solver, part, recorded, start)
        overlay, going = scenario.overlay, {t for group in recorded for t in group.tasks}
        evicted = Counter(op.task for at, op in enumerate(overlay.ops) if op.kind == EVICT and not overlay.undone[at])
        assert evicted == dict.fromkeys(going, 1), "a part begins with what is recorded evicted, once, and nobody else"
        assert len(overlay.ops) == len(going)
        check_listing(scenario)
        seen["parts"] += 1
        seen["put back"] += bool(known - going)
        now = solver._order  # pyright: ignore[reportPrivateUsage]
        if now is not order:
            pops.pop(id(now), None)
            return
        seen["gone on"] += 1
        seen["gone on after some were put back"] += bool(known - going)
        standing, victims = solver._before, solver._victims  # pyright: ignore[reportPrivateUsage]
        again, fresh = VictimOrder(overlay, standing, victims), Scenario(overlay, scenario.job)
        fresh._free = scenario._free  # pyright: ignore[reportPrivateUsage]
        fresh.start(part, recorded)
        for _ in range(pops[id(order)]):
            grow(fresh, again)
        assert listing(scenario) == listing(fresh), "going on is walking again"

    with pytest.MonkeyPatch.context() as patch:
        Instead(patch)(Overlay, commit=watched_commit, rollback=watched_rollback)
        Instead(patch)(VictimOrder, pop=watched_pop)
        Instead(patch)(Scenario, grow=watched_grow)
        patch.setattr(Solver, "_take_up", watched_take_up)
        yield seen
