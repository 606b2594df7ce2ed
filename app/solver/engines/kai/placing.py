"""Where a pod goes, and a gang as a whole: KAI's node scores, then all pods of the job or none; which nodes pods'
constraints allow, and who failed under them.

A node must fit what is idle plus what is being released. It scores 100 if what is idle alone fits, up to 9 for how
little it has free (GPUs; CPU for pods without GPU), 10 for keeping a pod without GPU off GPU nodes, and 1000 if a
device that is shared already fits what the pod wants of it, a share or nothing, so that one part decides after the
other. Equal scores go to the lower name.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence, Set
from heapq import heappop, heappush, merge
from itertools import groupby

from app.solver import kubernetes
from app.solver.engines.kai.jobs import (
    ALLOCATED,
    CPU,
    GPU,
    NOWHERE,
    PENDING,
    PIPELINED,
    RUNNING,
    Vector,
    total,
    widened,
)
from app.solver.engines.kai.nodes import TAKES_FREE, WHOLE
from app.solver.engines.kai.overlay import ACTIVE, Overlay
from app.solver.engines.kai.queue_order import OverBound, QueueOrder
from app.solver.engines.kai.state import Baseline, CompiledState, Kind, Layout, baseline, layout
from app.solver.model.state import Ask, Node, Task
from app.solver.question import safe_point

_MOST_KEPT = 256


class Predicates:
    """Allowed nodes by pod; worked out once per distinct constraint."""

    def __init__(self, nodes: Sequence[Node], open_nodes: list[bool], seen: dict[str, list[bool]]) -> None:
        """``open_nodes``: those that a pod without constraints may use; ``seen``: by constraint what is known already,
        and kept for whoever comes next."""
        self._nodes = nodes
        self._open = open_nodes
        self._all = all(open_nodes)
        self._seen = seen

    def allowed(self, task: Task, ask: Ask | None, signature: str) -> list[bool] | None:
        """By node number whether the pod may run there; None: on every node. ``signature``: its constraints."""
        if not signature:
            return None if self._all else self._open
        known = self._seen.get(signature)
        if known is None:
            if len(self._seen) >= _MOST_KEPT:
                self._seen.clear()
            known = self._seen[signature] = [self._allows(task, ask, node) for node in self._nodes]
        return known

    def _allows(self, task: Task, ask: Ask | None, node: Node) -> bool:
        required = task.required_node or (ask.required_node if ask else None)
        return (
            node.schedulable
            and (required is None or required == node.name)
            and (ask is None or ask.feasible_nodes is None or node.name in ask.feasible_nodes)
            and kubernetes.allows(task, node)
        )


def alike(state: CompiledState) -> dict[Kind, list[int]]:
    """The places of nodes by name, in order, of each kind. Worked out once; a delta changes what it changes."""
    places = state.resident.alike
    if places is None:
        nodes, kinds = layout(state), kinds_of(baseline(state), layout(state))
        places = dict[Kind, list[int]]()
        for place, n in enumerate(nodes.by_name):
            places.setdefault(kinds[n], []).append(place)
        state.resident.alike = places
    return places


def kinds_of(base: Baseline, nodes: Layout, only: Sequence[int] | None = None) -> list[Kind]:
    """The kind of every node, or of ``only`` these."""
    columns = (*base.free, *base.idle, nodes.has_cpu, nodes.has_gpu, nodes.gpu_memory)
    if only is None:
        return list(zip(*columns, strict=True))
    return [tuple(column[n] for column in columns) for n in only]


Size = tuple[Vector, float]
"""What a pod asks for, and the part of each device; in 0.13, where GPUs are shared, the former by devices. Else parts
are all 0."""
_ALIKE = 0.01
"""Parts that differ by less count as equal (KAI: minGPUs)."""


class Signatures:
    """The constraints of jobs, as they stood when first asked for: KAI keeps the answer for the whole cycle."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._of: dict[int, tuple[str, ...]] = {}
        self._pending: dict[int, tuple[int, list[Size]]] = {}
        self._by_devices = overlay.gpus.any and not overlay.state.configuration.policy.release.compares_gpus

    def again(self) -> "Signatures":
        """For another run of the cycle that has come as far."""
        other = Signatures(self._overlay)
        other._of = self._of.copy()
        return other

    def of(self, job: int) -> tuple[str, ...]:
        """Sorted constraints of the job's pods that are not active: as many as there are such pods."""
        signature = self._of.get(job)
        if signature is None:
            overlay = self._overlay
            pods = [t for t in overlay.jobs.tasks[job] if overlay.status[t] not in ACTIVE]
            signature = self._of[job] = tuple(sorted(map(overlay.constraints, pods)))
        return signature

    def pending(self, job: int) -> list[Size]:
        """What the job's pending pods ask for now, sorted."""
        overlay = self._overlay
        known = self._pending.get(job)
        if known is None or known[0] != overlay.closed:
            pods = overlay.jobs.tasks[job]
            requests = sorted([self._size(t) for t in pods if overlay.status[t] == PENDING])
            known = self._pending[job] = overlay.closed, requests
        return known[1]

    def _size(self, t: int) -> Size:
        request, portion = self._overlay.request[t], self._overlay.jobs.task_portion[t]
        if portion is None or not self._by_devices:
            return request, float(self._by_devices and request[GPU] > 0)
        return (*request[:GPU], portion.devices * WHOLE, *request[GPU + 1 :]), portion.part / 1000


class Failed:
    """The smallest job that failed, by signature."""

    def __init__(self, signatures: Signatures) -> None:
        self._signatures = signatures
        self._smallest: dict[tuple[str, ...], int] = {}

    def easier(self, job: int) -> bool:
        """Whether the job may do what its like could not: fewer pods, or some smaller one."""
        like = self._smallest.get(self._signatures.of(job))
        return like is None or _easier(self._signatures.pending(job), self._signatures.pending(like))

    def add(self, job: int) -> None:
        signature = self._signatures.of(job)
        like = self._smallest.get(signature)
        if like is None or _smaller(self._signatures.pending(job), self._signatures.pending(like)):
            self._smallest[signature] = job


def _easier(job: list[Size], failed: list[Size]) -> bool:
    if not job:
        return False
    return len(failed) > len(job) or any(
        a != b and _at_most(a, b) and not _at_most(b, a) for a, b in zip(job, failed, strict=False)
    )


def _smaller(job: list[Size], failed: list[Size]) -> bool:
    return 0 < len(job) <= len(failed) and all(_at_most(a, b) for a, b in zip(job, failed, strict=False))


def _at_most(a: Size, b: Size) -> bool:
    """What one does not name, the other may name; what one names with 0, the other has to name."""
    return a[1] - b[1] < _ALIKE and all(x <= y if x > 0 else y or not x for x, y in zip(a[0], b[0], strict=True))


class FreeNodes:
    """Nodes by GPUs that are free (idle or being released), then idle ones. ``place[n]``: the place of node n among
    the names."""

    def __init__(self, overlay: Overlay, by_name: list[int], place: list[int]) -> None:
        self._overlay = overlay
        self._by_name = by_name
        self._place = place
        self._kept: list[tuple[int, int]] = []
        self._places: dict[int, dict[int, list[int]]] = {}
        free, idle = overlay.free[GPU], overlay.idle[GPU]
        for n in by_name:
            self._places.setdefault(free[n], {}).setdefault(idle[n], []).append(place[n])
        self._kept = list(zip(free, idle, strict=True))
        overlay.touched.clear()

    def refresh(self) -> None:
        """Look again at what changed."""
        touched = self._overlay.touched
        if touched:
            free, idle = self._overlay.free[GPU], self._overlay.idle[GPU]
            for n in set(touched):
                if n >= 0 and self._kept[n] != (free[n], idle[n]):
                    self._move(n, (free[n], idle[n]))
            touched.clear()

    def at_least(self, gpus: int, *, idle: bool) -> Iterator[int]:
        """Nodes with that many GPUs free, and with ``idle`` as many idle: fewest free first, then by name."""
        for free in sorted(free for free in self._places if free >= gpus):
            for place in merge(*(places for now, places in self._places[free].items() if not idle or now >= gpus)):
                yield self._by_name[place]

    def _move(self, n: int, now: tuple[int, int]) -> None:
        free, idle = self._kept[n]
        places = self._places[free][idle]
        del places[bisect_left(places, self._place[n])]
        if not places:
            del self._places[free][idle]
        self._kept[n] = now
        free, idle = now
        insort(self._places.setdefault(free, {}).setdefault(idle, []), self._place[n])


_Rank = tuple[int, int, int]
"""How good a node is for a pod with GPUs: 0 if it fits now, 1 later; free GPUs; place of the name. Less is better."""


class Placer:
    """Places pods on nodes of one overlay. ``by_name[i]``: the node that is i-th by name."""

    def __init__(self, overlay: Overlay, order: QueueOrder) -> None:
        self._overlay = overlay
        self._order = order
        nodes = layout(overlay.state)
        self.by_name, self._place, self.everywhere = nodes.by_name, nodes.place, nodes.everywhere
        self._has_gpu, self._has_cpu, self._gpu_memory = nodes.has_gpu, nodes.has_cpu, nodes.gpu_memory
        self._predicates = Predicates(overlay.state.nodes, nodes.open, nodes.allowed)
        self._allowed: dict[int, list[bool] | None] = {}
        self._by_free: FreeNodes | None = None
        self.refused: OverBound | None = None
        self._in_vain: dict[tuple[int, bool, tuple[tuple[Vector, int], ...]], OverBound | None] = {}
        self._closed = 0

    def allowed(self, t: int) -> list[bool] | None:
        """Nodes that the pod's constraints allow; None: all."""
        if t not in self._allowed:
            overlay = self._overlay
            task, ask = overlay.jobs.task_wire[t], overlay.ask_of_task(t)
            self._allowed[t] = self._predicates.allowed(task, ask, overlay.constraints(t))
        return self._allowed[t]

    def oversized(self, job: int) -> bool:
        """Whether a pod that is to be placed asks for more of a resource than any node has, taken or not, since 0.17.
        GPU memory is not looked at: it counts no GPU before it has a node."""
        overlay = self._overlay
        largest = widened(layout(overlay.state).largest, overlay.width)
        wanted = (overlay.request[t] for t in overlay.wanted(job)[0])
        larger = any(amount > most for request in wanted for amount, most in zip(request, largest, strict=True))
        return larger and overlay.state.configuration.policy.release.skips_oversized

    def place_everywhere(self, job: int, tasks: list[int]) -> bool:
        """``place_job`` of pending pods on all nodes, at once where they can start. What was tried in vain is not tried
        again until a statement closes: but tries may leave traces in books of shared GPUs."""
        overlay = self._overlay
        if overlay.gpus.any:
            return self.place_job(job, tasks, self.everywhere, bind=True)
        if self._closed != overlay.closed:
            self._in_vain.clear()
            self._closed = overlay.closed
        request, jobs = overlay.request, overlay.jobs
        key = jobs.queue[job], jobs.preemptible[job], tuple([(request[t], id(self.allowed(t))) for t in tasks])
        if key in self._in_vain:
            self.refused = self._in_vain[key]
            return False
        placed = self.place_job(job, tasks, self.everywhere, bind=True)
        if not placed:
            self._in_vain[key] = self.refused
        return placed

    def in_vain(self, job: int, tasks: list[int]) -> bool:
        """Whether ``place_everywhere`` finds no place; nothing is placed. Not where GPUs are shared."""
        overlay = self._overlay
        if len(tasks) == 1:
            bound = self._order.over_bounds(job, total(overlay.bounded, tasks))
            return bound is not None or not self.fits_somewhere(tasks[0], self.everywhere)
        mark = overlay.checkpoint()
        placed = bool(tasks) and self.place_everywhere(job, tasks)
        overlay.rollback(mark)
        return not placed

    def place_job(self, job: int, tasks: list[int], nodes: Set[int], *, bind: bool) -> bool:
        """Place all of ``tasks`` or none on ``nodes``. ``bind``: pods that fit what is idle start now; otherwise
        every pod waits for the statement's evictions."""
        overlay = self._overlay
        self.refused = self._order.over_bounds(job, total(overlay.bounded, tasks))
        if self.refused is not None:
            return False
        mark = overlay.checkpoint()
        if len(tasks) == 1:
            placed = self._place_alike(tasks, nodes, bind=bind)
        else:
            gang, wires = overlay.jobs.gang[job], overlay.jobs.task_wire
            if gang is not None:
                tasks = gang.placing_order(tasks, lambda t: wires[t].sub_group or "")
            alike = groupby(tasks, key=lambda t: (overlay.request[t], id(self.allowed(t))))
            placed = all(self._place_alike(list(run), nodes, bind=bind) for _, run in alike)
        if not placed:
            overlay.rollback(mark)
        return placed

    def fits_somewhere(self, t: int, nodes: Set[int]) -> bool:
        """Whether any of ``nodes`` fits the pod."""
        overlay, allowed = self._overlay, self.allowed(t)
        these = self._free_nodes().at_least(overlay.request[t][GPU], idle=False) if self._by_gpus(t) else nodes
        return any(n in nodes and overlay.fits(t, n) and (allowed is None or allowed[n]) for n in these)

    def _free_nodes(self) -> FreeNodes:
        if self._by_free is None:
            self._by_free = FreeNodes(self._overlay, self.by_name, self._place)
        else:
            self._by_free.refresh()
        return self._by_free

    def _by_gpus(self, t: int) -> bool:
        return not self._overlay.gpus.any and bool(self._overlay.request[t][GPU])

    def _place_alike(self, tasks: list[int], nodes: Set[int], *, bind: bool) -> bool:
        """Place pods of one request and the same constraints, one after the other."""
        if self._by_gpus(tasks[0]):
            return self._place_by_gpus(tasks, nodes, bind=bind)
        return all(self._place_by_score(t, nodes, bind=bind) for t in tasks)

    def _put(self, t: int, n: int, *, bind: bool) -> bool:
        overlay = self._overlay
        if overlay.gpus.share[t]:
            self.refused = self._order.over_bounds_there(t, self._gpu_memory[n])
            return self.refused is None and overlay.place_share(t, n, bind=bind)
        if bind and overlay.fits_idle(t, n):
            overlay.allocate(t, n)
            return True
        return overlay.pipeline(t, n)

    def _place_by_gpus(self, tasks: list[int], nodes: Set[int], *, bind: bool) -> bool:
        """For pods with whole GPUs the score orders nodes by whether they fit now, then fewest GPUs free, then name:
        no need to know the range of free GPUs over all nodes, nor to look at more nodes than are taken."""
        overlay, first, allowed = self._overlay, tasks[0], self.allowed(tasks[0])
        as_it_was = self._best_first(self._free_nodes(), first, nodes, allowed)
        spare = next(as_it_was, None)
        known: dict[int, _Rank | None] = {}  # nodes that changed since
        heap: list[tuple[_Rank, int]] = []

        def look(n: int) -> None:
            rank = known[n] = self._rank(first, n, nodes, allowed)
            if rank is not None:
                heappush(heap, (rank, n))

        for t in tasks:
            safe_point()
            failed: list[int] = []
            while True:
                while spare is not None and spare[1] in known:
                    spare = next(as_it_was, None)
                while heap and heap[0][0] != known[heap[0][1]]:
                    heappop(heap)
                if heap and (spare is None or heap[0] < spare):
                    n = heappop(heap)[1]
                elif spare is not None:
                    n = spare[1]
                else:
                    return False
                known[n] = None
                before = overlay.node[t]
                if self._put(t, n, bind=bind):
                    look(n)
                    if before >= 0:
                        look(before)
                    break
                failed.append(n)
            for n in failed:
                look(n)
        return True

    def _best_first(
        self, free: FreeNodes, t: int, nodes: Set[int], allowed: list[bool] | None
    ) -> Iterator[tuple[_Rank, int]]:
        """Nodes that fit the pod, the best first. Only as long as nothing changes on those that are still to come."""
        need = self._overlay.request[t][GPU]
        for later in (0, 1):
            for n in free.at_least(need, idle=not later):
                rank = self._rank(t, n, nodes, allowed)
                if rank is not None and rank[0] == later:
                    yield rank, n

    def _rank(self, t: int, n: int, nodes: Set[int], allowed: list[bool] | None) -> _Rank | None:
        overlay = self._overlay
        if n not in nodes or (allowed is not None and not allowed[n]) or not overlay.fits(t, n):
            return None
        return 0 if overlay.fits_idle(t, n) else 1, overlay.free[GPU][n], self._place[n]

    def _place_by_score(self, t: int, nodes: Set[int], *, bind: bool) -> bool:
        tried: set[int] = set()
        safe_point()
        while (n := self._best(t, nodes, tried)) is not None:
            if self._put(t, n, bind=bind):
                return True
            tried.add(n)
        return False

    def _best(self, t: int, nodes: Set[int], tried: set[int]) -> int | None:
        """The best node of ``nodes`` that fits the pod, ``tried`` ones left out; None without any."""
        overlay, allowed, has_gpu = self._overlay, self.allowed(t), self._has_gpu
        shared = overlay.gpus.share[t]
        gpu = bool(overlay.request[t][GPU]) or overlay.gpus.by_memory(t)
        has, free = (has_gpu, overlay.free[GPU]) if gpu else (self._has_cpu, overlay.free[CPU])
        open_nodes = self._one_of_each_kind(allowed, tried) if nodes is self.everywhere else None
        if open_nodes is None:
            open_nodes = [n for n in self.by_name if n in nodes]
        best = overlay.nodes.fitting(t, open_nodes)
        if allowed is not None:
            best = [n for n in best if allowed[n]]
        if tried:
            best = [n for n in best if n not in tried]
        if len(best) < 2:
            return best[0] if best else None
        # The parts of the score, each too small to make up for one before it: so each narrows down what the last left.
        if shared or (overlay.gpus.any and not gpu):  # a pod without GPU takes none of a device, which always fits
            best = overlay.gpus.fitting_shared(t, best) or best
        best = overlay.nodes.fitting_idle(t, best) or best
        if not gpu:
            best = [n for n in best if not has_gpu[n]] or best
        held = [free[n] for n in best if has[n]]
        if len(held) == len(best) and max(held) > 0:  # then what others have free makes no difference
            return best[held.index(min(held))]
        counted = [free[n] for n in open_nodes if has[n]]
        most = max(counted, default=0)
        if most <= 0:
            return best[0]
        if min(counted) == most:
            return next((n for n in best if has[n]), best[0])
        scores = [most - free[n] if has[n] else 0 for n in best]
        return best[scores.index(max(scores))]

    def _one_of_each_kind(self, allowed: list[bool] | None, tried: set[int]) -> list[int]:
        """Nodes in order of name: those that the cycle changed, and of others that are alike the first that is allowed
        and not ``tried``, where there is one. Whoever is best of all nodes is best of these."""
        changed, by_name = self._overlay.nodes.changed, self.by_name
        places = [self._place[n] for n in changed]
        for kind in alike(self._overlay.state).values():
            first: int | None = None
            for place in kind:
                n = by_name[place]
                if n in changed:
                    continue
                if first is None:
                    first = place
                if (allowed is None or allowed[n]) and n not in tried:
                    first = place
                    break
            if first is not None:
                places.append(first)
        return [by_name[place] for place in sorted(places)]


def is_held_back(overlay: Overlay, job: int) -> bool:
    """Whether the gang lacks pods that can start now: then all of it waits."""
    status = [overlay.status[t] for t in overlay.jobs.tasks[job]]
    starting = sum(s in (RUNNING, ALLOCATED) for s in status)
    gang = overlay.jobs.gang[job]
    if gang is None:
        return PIPELINED in status and starting < overlay.jobs.min_available[job]
    tasks = overlay.jobs.tasks[job]
    waits = overlay.jobs.by_pod_set(t for t in tasks if overlay.status[t] == PIPELINED)
    starts = overlay.jobs.by_pod_set(t for t in tasks if overlay.status[t] in (RUNNING, ALLOCATED))
    return any(
        pod_set.name in waits and len(starts.get(pod_set.name, ())) < pod_set.minimum for pod_set in gang.pod_sets
    )


def overfilled(overlay: Overlay) -> bool:
    """Whether some node, or a GPU of one, is promised more than it has, which was not so at the start. Books that are
    kept by steps don't tell, so the pods are counted."""
    if not overlay.by_steps:
        return overlay.nodes.overfilled()
    over = _too_full(overlay, overlay.status, overlay.node, overlay.gpus.on)
    jobs = overlay.jobs
    return bool(over) and not over <= _too_full(overlay, jobs.task_state, jobs.task_node, overlay.gpus.first_on)


def _too_full(
    overlay: Overlay, status: Sequence[int], node: Sequence[int], on: Callable[[int], Sequence[int]]
) -> set[tuple[int, int]]:  # fmt: skip
    """Resources of nodes, and GPUs of them, of which pods that stay or come hold more than there is."""
    gpus, memory, capacity = overlay.gpus, layout(overlay.state).gpu_memory, overlay.state.capacity
    held: dict[tuple[int, int], int] = {}
    shared: dict[tuple[int, int], int] = {}
    for t, (s, n) in enumerate(zip(status, node, strict=False)):
        if n == NOWHERE or s not in TAKES_FREE:
            continue
        for r, amount in overlay.nodes.columns[t]:
            held[n, r] = held.get((n, r), 0) + amount
        for d in on(t) if gpus.share[t] else ():
            shared[n, d] = shared.get((n, d), 0) + gpus.need(t, n)
    for n, _ in shared:
        held[n, GPU] = held.get((n, GPU), 0) + WHOLE
    full = {(n, r) for (n, r), amount in held.items() if amount > (capacity[n][r] if r < len(capacity[n]) else 0)}
    return full | {(n, ~d) for (n, d), amount in shared.items() if amount > memory[n]}
