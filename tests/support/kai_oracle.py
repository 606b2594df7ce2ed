"""KAI's rules told a second time, plainly and slowly, to hold the engine against (docs/engines/kai.md)."""

from collections.abc import Iterable, Sequence
from math import inf

from app.solver.engines.kai.jobs import ALLOCATED, PIPELINED, RUNNING, Share
from app.solver.engines.kai.overlay import Overlay
from app.solver.engines.kai.queue_order import QueueOrder
from app.solver.engines.kai.scenario import Scenario

UNIT = (1, 1, 1000)
"""Steps in one unit of KAI: milli-CPU, byte, GPU."""
NONE: Share = (0, 0, 0)


def bound(value: float) -> float:
    """A bound as a number: -1 is none."""
    return inf if value == -1 else value


def most(held: Sequence[float], limits: Sequence[float]) -> bool:
    """Whether what is held keeps every bound; minus one unit counts as more than any number."""
    return all(
        bound(limit) == inf or (have <= limit and have != -unit)
        for have, limit, unit in zip(held, limits, UNIT, strict=True)
    )


def queue_first(
    order: QueueOrder, total: Share, a: int, b: int, wants: tuple[Share, Share], taken: tuple[Share, Share]
) -> bool:
    """Whether queue a comes before b: the eight steps of "Order of queues", one after the other. ``total``: what the
    cluster has."""
    created, priority = order._created, order._priority  # pyright: ignore[reportPrivateUsage]

    def held(q: int, extra: Share = NONE, less: Share = NONE) -> list[int]:
        return [order.allocated[r][q] + extra[r] - less[r] for r in range(3)]

    def share(q: int, extra: Share, less: Share) -> float:
        parts: list[float] = [0.0]
        for r, amount in enumerate(held(q, extra, less)):
            entitled = total[r] if order.allocatable[q][r] == -1 else order.allocatable[q][r]
            parts.append(amount / entitled if entitled else amount * 1000 / UNIT[r])
        return max(parts)

    over = [all(have > fair for have, fair in zip(held(q), order.fair[q], strict=True)) for q in (a, b)]
    if over[0] != over[1]:
        return over[1]
    starved = [most(held(q, want), order.deserved[q]) for q, want in zip((a, b), wants, strict=True)]
    if starved[0] != starved[1]:
        return starved[0]
    if priority[a] != priority[b]:
        return priority[a] > priority[b]
    none_of_it = [
        any(have > 0 and entitled == 0 for have, entitled in zip(held(q, want), order.allocatable[q], strict=True))
        for q, want in zip((a, b), wants, strict=True)
    ]
    if none_of_it[0] != none_of_it[1]:
        return none_of_it[1]
    with_job = [share(q, want, less) for q, want, less in zip((a, b), wants, taken, strict=True)]
    if with_job[0] != with_job[1]:
        return with_job[0] < with_job[1]
    without = [share(q, NONE, NONE) for q in (a, b)]
    if without[0] != without[1]:
        return without[0] < without[1]
    within = [
        all(bound(x) <= bound(y) for x, y in zip(order.allocatable[p], order.allocatable[q], strict=True))
        for p, q in ((a, b), (b, a))
    ]
    if within[0] != within[1]:
        return within[0]
    return created[a] < created[b]


def reclaim_refusal(overlay: Overlay, before: QueueOrder, scenario: Scenario, *, ignore_moved: bool) -> str | None:
    """The rule by which reclaim's fairness refuses a scenario, None where it lets it through: every chunk of every
    victim in turn, then every level of the asking side."""
    jobs, request, paths = overlay.jobs, overlay.request, before.paths
    parent = overlay.parent_queue
    want = _sum(request, scenario.part)
    ours = paths[jobs.queue[scenario.job]]
    left = {q: list(before.held(q)) for q in range(len(paths))}
    touched: set[int] = set()
    kinds: dict[int, set[int]] = {}
    for queue in sorted({jobs.queue[v] for v in scenario.listed}):
        victims = [v for v in sorted(scenario.listed) if jobs.queue[v] == queue]
        chunks = [chunk for v in victims for chunk in _chunks(overlay, scenario, v, ignore_moved=ignore_moved)]
        if not chunks:
            continue
        mine, theirs = _fork(ours[::-1], paths[queue][::-1])
        in_quota = most([h + w for h, w in zip(before.held(mine), want, strict=True)], before.deserved[mine])
        remaining = left[theirs].copy()
        for chunk in chunks:
            lets = not most(remaining, before.allocatable[theirs])
            if not lets and not (in_quota and not most(remaining, before.deserved[theirs])):
                return "within-allocatable-share"
            remaining = [have - gone for have, gone in zip(remaining, chunk, strict=True)]
        gone = [sum(amounts) for amounts in zip(*chunks, strict=True)]
        for q in paths[queue]:
            left[q] = [have - amount for have, amount in zip(left[q], gone, strict=True)]
            kinds.setdefault(q, set()).update(r for r in range(3) if gone[r] > 0)
            touched.add(q)
        touched.add(theirs)
    for q in ours:
        with_job = [have + amount for have, amount in zip(left[q], want, strict=True)]
        for sibling in sorted(touched):
            if sibling == q or parent[sibling] != parent[q]:
                continue
            for r in kinds.get(sibling, set()) | {r for r in range(3) if want[r] > 0}:
                if _saturated(with_job[r], before.fair[q][r], left[sibling][r], before.fair[sibling][r]):
                    return "saturation"
        fixed = [have + amount for have, amount in zip(before.held_fixed(q), want, strict=True)]
        if not jobs.preemptible[scenario.job] and not most(fixed, before.deserved[q]):
            return "non-preemptible-over-quota"
    return None


def _saturated(held: float, fair: float, their: float, their_fair: float) -> bool:
    ratio = held / fair if fair else (inf if held > 0 else 0)
    theirs = their / their_fair if their_fair else (inf if their > 0 else 0)
    return ratio > 1 and their_fair > 0 and ratio >= theirs


def _fork(ours: list[int], theirs: list[int]) -> tuple[int, int]:
    for pair in zip(ours, theirs, strict=False):
        if pair[0] != pair[1]:
            return pair
    shorter = min(len(ours), len(theirs)) - 1
    return ours[shorter], theirs[shorter]


def _chunks(overlay: Overlay, scenario: Scenario, victim: int, *, ignore_moved: bool) -> list[list[int]]:
    core = overlay.jobs.min_available[victim]
    listed = scenario.listed[victim]
    found: list[list[int]] = []
    for chunk in [*([t] for t in listed[core:]), listed[:core]]:
        gone = [t for t in chunk if not ignore_moved or overlay.status[t] not in (RUNNING, ALLOCATED, PIPELINED)]
        if gone:
            found.append(_sum(overlay.request, gone))
    return found


def _sum(request: list[tuple[int, ...]], tasks: Iterable[int]) -> list[int]:
    return [sum(request[t][r] for t in tasks) for r in range(3)]


def best_node(
    overlay: Overlay, t: int, nodes: Iterable[int], allowed: Sequence[bool] | None, tried: set[int]
) -> int | None:
    """Where "Where a pod goes" puts a pod: the highest score, then the lower name; not on a node that was tried."""
    nodes = sorted(nodes, key=overlay.node_names.__getitem__)
    need, capacity = overlay.request[t], overlay.state.capacity
    column = 2 if need[2] > 0 else 0
    free = overlay.free[column]
    counted = [free[n] for n in nodes if capacity[n][column] > 0]
    best: tuple[float, int] | None = None
    for n in nodes:
        if not overlay.fits(t, n) or (allowed is not None and not allowed[n]) or n in tried:
            continue
        score = 100.0 if overlay.fits_idle(t, n) else 0.0
        if capacity[n][column] > 0 and max(counted) > 0:
            spread = max(counted) - min(counted)
            score += 9 * (1 - (free[n] - min(counted)) / spread) if spread else 9
        if column == 0 and capacity[n][2] == 0:
            score += 10
        if (overlay.gpus.share[t] or column == 0) and overlay.gpus.fitting_shared(t, [n]):
            score += 1000
        if best is None or score > best[0]:
            best = score, n
    return None if best is None else best[1]
