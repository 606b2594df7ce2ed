"""Scenarios: a growing prefix of the victim order, the victims that earlier parts of the gang need, and bounds on GPUs
that tell at a glance which victims are too few.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from app.solver.engines.kai.job_order import VictimOrder
from app.solver.engines.kai.jobs import GPU, NOWHERE, Jobs
from app.solver.engines.kai.overlay import Overlay
from app.solver.engines.kai.state import Victim


class FreeGpus:
    """GPUs by node that nobody takes for good, as an attempt finds them; ``slots`` says how many pods of a size they
    hold. ``counted``: as ``Overlay.gpus_of`` counts."""

    def __init__(self, overlay: Overlay) -> None:
        self.by_node = overlay.nodes.gpu_free().copy()
        nodes, every = overlay.nodes, range(len(self.by_node))
        self.counted: Sequence[float] = [sum(nodes.gpu_room(n)) for n in every] if overlay.in_doubles else self.by_node
        self._nodes = Counter(self.by_node)
        self._slots: dict[int, int] = {}

    def slots(self, size: int) -> int:
        """Counted node by node."""
        if size not in self._slots:
            self._slots[size] = sum(free // size * count for free, count in self._nodes.items() if free > 0)
        return self._slots[size]


class GpuRoom:
    """KAI's own filter: whether nodes could hold the part's GPUs if everybody listed were gone, by first fit, largest
    first. It can be wrong where sizes differ, and then it is wrong in the same way."""

    _slots: float  # how many pods nodes hold; where all are of one size

    def __init__(self, overlay: Overlay, part: Sequence[int], free: FreeGpus) -> None:
        """``free``: before anybody is gone."""
        self._overlay = overlay
        self._untouched: FreeGpus | None = free
        self._free: list[float] = [*free.counted]
        self._size = -1
        self.need(part)

    def need(self, part: Sequence[int]) -> None:
        """The pods to hold."""
        count, exact = self._overlay.gpus_of, not self._overlay.in_doubles
        self._needs = sorted((need for t in part if (need := count(t))), reverse=True)
        size = int(self._needs[0]) if exact and self._needs and self._needs[-1] == self._needs[0] else 0
        if size != self._size:
            self._size = size
            if size and self._untouched is not None:
                self._slots = self._untouched.slots(size)
            elif size:
                self._slots = sum(free // size for free in self._free if free > 0)

    def give(self, tasks: Iterable[int]) -> None:
        """Count these pods' GPUs as free."""
        self._untouched = None
        size, free, overlay = self._size, self._free, self._overlay
        for t in tasks:
            n = overlay.node[t]
            if n != NOWHERE and (amount := overlay.gpus_of(t)):
                before = free[n]
                free[n] = after = before + amount
                if size and after >= size:
                    self._slots += after // size - (before // size if before > 0 else 0)

    def give_until_enough(self, chunks: "Iterable[Group]", but: set[int]) -> "tuple[int, list[Group]]":
        """Give chunks without pods of ``but`` until the part fits: how many were looked at, and those given."""
        looked, given = 0, list[Group]()
        needs = len(self._needs) if self._size else 0
        for chunk in chunks:
            looked += 1
            if chunk.tasks and but.isdisjoint(chunk.tasks):
                given.append(chunk)
                self.give(chunk.tasks)
                if self._slots >= needs if needs else self.enough():
                    break
        return looked, given

    def enough(self) -> bool:
        """Whether the part fits by this bound."""
        if self._size:
            return self._slots >= len(self._needs)
        return not self._needs or self._first_fit()

    def _first_fit(self) -> bool:
        most, taken = sorted(self._free, reverse=True)[: len(self._needs)], [0.0] * len(self._needs)
        for need in self._needs:
            for i, have in enumerate(most):
                if have - taken[i] >= need:
                    taken[i] += need
                    break
            else:
                return False
        return True


Bound = tuple[list[bool] | None, tuple[tuple[int, int], ...], int]
"""The nodes that count (None: all), an amount by resource, and how many pods of that size there is no room for."""


class Headroom:
    """What a try could place at best: for every size of pod, how many of that size or larger there are, and how many
    nodes could hold in what is free now; once for all pods, and once for those of each constraint on nodes. Pods with
    GPUs are as large as their GPUs, others with ``whole`` as all that they request. Never wrong where it says no."""

    def __init__(
        self, overlay: Overlay, part: Sequence[int], allowed: Callable[[int], list[bool] | None],
        gpus: FreeGpus | None = None, *, whole: bool = True, gone: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """``gpus``: as they are when this is made and asked, where somebody has looked already. ``gone``: pods that go
        in every try."""
        self._overlay = overlay
        gpus = self._gpus = gpus or FreeGpus(overlay)
        self._free = overlay.free.copy()
        self._free[GPU] = gpus.by_node
        columns, request = overlay.nodes.columns, overlay.request
        whole = whole and not overlay.gpus.any
        sizes = [((GPU, need),) if (need := request[t][GPU]) else columns[t] if whole else () for t in part]
        pods = [(size, allowed(t)) for t, size in zip(part, sizes, strict=True) if size]
        masks = {id(mask): mask for _, mask in pods if mask is not None}
        self._bounds: list[Bound] = []
        for mask in (None, *masks.values()):
            self._add(mask, [size for size, own in pods if mask is None or own is mask])
        self._only_gpus = all(len(size) == 1 and size[0][0] == GPU for _, size, _ in self._bounds)
        self._gone = gone
        if self._only_gpus and gone:
            self._give(gone)

    def _give(self, gone: Sequence[int]) -> None:
        request, node, free = self._overlay.request, self._overlay.node, self._free[GPU].copy()
        given = {n: free[n] for n in {node[t] for t in gone}}
        for t in gone:
            free[node[t]] += request[t][GPU]
        for i, (mask, ((r, size),), lacking) in enumerate(self._bounds):
            gains = (
                max(0, free[n]) // size - max(0, had) // size for n, had in given.items() if mask is None or mask[n]
            )
            self._bounds[i] = mask, ((r, size),), lacking - sum(gains)
        self._free[GPU], self._gone = free, ()

    def _add(self, mask: list[bool] | None, sizes: list[tuple[tuple[int, int], ...]]) -> None:
        for size in dict.fromkeys(sizes):
            slots = self._slots(size, mask)
            self._bounds.append((mask, size, sum(_at_least(other, size) for other in sizes) - slots))

    def _slots(self, size: tuple[tuple[int, int], ...], mask: list[bool] | None) -> int:
        (r, amount), *rest = size
        if r == GPU and not rest and mask is None:
            return self._gpus.slots(amount)
        if not rest:
            return sum(
                have // amount for n, have in enumerate(self._free[r]) if have >= amount and (mask is None or mask[n])
            )
        nodes = [n for n, have in enumerate(self._free[r]) if have >= amount and (mask is None or mask[n])]
        return sum(self._hold(size, n) for n in nodes)

    def _hold(self, size: tuple[tuple[int, int], ...], n: int, given: Sequence[int] = ()) -> int:
        """How many pods of that size what is free on node n can hold, ``given`` by resource included."""
        free = self._free
        least: int | None = None
        for r, amount in size:
            have = free[r][n] + (given[r] if given else 0)
            if have < amount:
                return 0
            if least is None or have // amount < least:
                least = have // amount
        return least or 0

    def enough(self, victims: Iterable[int]) -> bool:
        """Whether the part could fit with these pods, which hold their places now, gone too."""
        if not self._bounds:
            return True
        if self._only_gpus:
            return self._enough_gpus(victims)
        overlay = self._overlay
        request, node = overlay.request, overlay.node
        given: dict[int, list[int]] = {}
        for t in (*self._gone, *victims):
            if (held := given.get(node[t])) is None:
                given[node[t]] = list(request[t])
            else:
                for r, amount in enumerate(request[t]):
                    held[r] += amount
        for mask, size, lacking in self._bounds:
            short = lacking
            for n, amounts in given.items():
                if short <= 0:
                    break
                if mask is None or mask[n]:
                    short -= self._hold(size, n, amounts) - self._hold(size, n)
            if short > 0:
                return False
        return True

    def _enough_gpus(self, victims: Iterable[int]) -> bool:
        """The same where GPUs are all that counts."""
        request, node, free = self._overlay.request, self._overlay.node, self._free[GPU]
        given: dict[int, int] = {}
        for t in victims:
            n = node[t]
            given[n] = given.get(n, 0) + request[t][GPU]
        for mask, ((_, size),), lacking in self._bounds:
            short = lacking
            for n, amount in given.items():
                if short <= 0:
                    break
                if mask is None or mask[n]:
                    short -= max(0, free[n] + amount) // size - max(0, free[n]) // size
            if short > 0:
                return False
        return True


def all_fit(overlay: Overlay, gpus: FreeGpus, part: Sequence[int], victims: Sequence[int]) -> bool:
    """Whether everybody in a scenario could have a place, its victims too: of every size that one of them has, nodes
    must hold as many as all of them come to. Asked before anybody is evicted; never wrong where it says no.
    ``victims``: each once. One that left a node earlier in the cycle may be put where there is no room."""
    request, node, ghost, free = overlay.request, overlay.node, overlay.ghost, gpus.by_node
    given: dict[int, int] = {}
    for t in victims:
        if ghost[t]:
            return True
        given[node[t]] = given.get(node[t], 0) + request[t][GPU]
    needs = Counter([request[t][GPU] for t in (*part, *victims)])
    del needs[0]
    for size in needs:
        slots = gpus.slots(size) - sum([need // size * count for need, count in needs.items()])
        for n, amount in given.items():
            slots += max(0, free[n] + amount) // size - max(0, free[n]) // size
        if slots < 0:
            return False
    return True


def _at_least(size: tuple[tuple[int, int], ...], least: tuple[tuple[int, int], ...]) -> bool:
    amounts = dict(size)
    return all(amounts.get(r, 0) >= amount for r, amount in least)


class Group:
    """Pods of one job that are taken together: one above the gang, or the whole gang."""

    __slots__ = ("job", "tasks")

    def __init__(self, job: int, tasks: list[int]) -> None:
        self.job = job
        self.tasks = tasks


def first_to_go(overlay: Overlay, victim: Victim) -> list[int]:
    """The next chunk of a victim: one pod of a job above its gang, else all its pods."""
    jobs, tasks = overlay.jobs, victim.tasks
    gang = jobs.gang[victim.job]
    if gang is not None:
        return gang.first_to_go(jobs.by_pod_set(tasks))
    return tasks[:1] if len(tasks) > jobs.min_available[victim.job] else tasks


class Tape:
    """The chunks of a victim order as it runs where nothing is recorded, ``steps`` as far as somebody has walked it."""

    def __init__(self, overlay: Overlay, order: VictimOrder) -> None:
        self._overlay = overlay
        self._order = order
        self.steps: list[Group] = []
        self._chunk: dict[int, Group] = {}
        self.with_others: set[int] = set()

    def step(self, place: int) -> Group | None:
        """The chunk at that place, empty where a victim adds nothing; None past the end."""
        if place == len(self.steps):
            victim = self._order.pop()
            if victim is None:
                return None
            chunk = first_to_go(self._overlay, victim)
            if victim.others:
                self.with_others.add(victim.job)
            if len(chunk) < len(victim.tasks):
                self._order.put_back(victim, [t for t in victim.tasks if t not in chunk])
            group = Group(victim.job, chunk)
            self.steps.append(group)
            self._chunk |= dict.fromkeys(chunk, group)
        return self.steps[place]

    def walk(self, place: int) -> Iterator[Group]:
        """The chunks from that place on."""
        while (group := self.steps[place] if place < len(self.steps) else self.step(place)) is not None:
            place += 1
            yield group

    def serves(self, recorded: Sequence[Group]) -> bool:
        """Whether the order runs the same with these recorded: each a chunk of its own, of a job of which nothing else
        is recorded and all pods can be taken."""
        jobs = {group.job for group in recorded}
        return (
            len(jobs) == len(recorded)
            and self.with_others.isdisjoint(jobs)
            and all(
                (known := self._chunk.get(group.tasks[0])) is not None and set(known.tasks) == set(group.tasks)
                for group in recorded
            )
        )


@dataclass(slots=True)
class Trial:
    """One scenario: recorded victims, and ``extra`` pods of a prefix. ``listed``, ``elastic`` and ``taking`` are what
    validators read; a pod of both is listed twice, as released KAI has it."""

    job: int
    part: Sequence[int]
    recorded: list[Group]
    groups: dict[int, list[Group]]
    extra: list[int]
    listed: dict[int, list[int]]
    jobs: Jobs
    pods: int
    _elastic: list[int] | None = None

    @property
    def elastic(self) -> list[int]:
        """The jobs of those listed that need fewer pods than they have."""
        if self._elastic is None:
            self._elastic = [j for j in self.listed if self.jobs.elastic(j)]
        return self._elastic

    @property
    def taking(self) -> dict[int, list[int]]:
        """The jobs that it takes from."""
        return self.listed


class Scenario:
    """What may be taken so far for ``part``, the first pods of the pending gang.

    ``recorded``: victims that a shorter part needed. ``listed``: every pod by job that the scenario may take,
    recorded ones first, whether this try takes it or not. ``taking``: the jobs that this try takes from. Made before
    the attempt evicts anybody.
    """

    def __init__(self, overlay: Overlay, job: int, gpus: FreeGpus | None = None) -> None:
        self.overlay = overlay
        self.job = job
        self._free = gpus or FreeGpus(overlay)
        self.taking: Collection[int] = ()
        self.recorded: list[Group] = []
        self.recorded_jobs: dict[int, tuple[int, ...]] = {}
        self.is_recorded: set[int] = set()
        self._begin((), ())

    def _begin(self, part: Sequence[int], recorded: Sequence[Group]) -> None:
        self.part = part
        self.room = GpuRoom(self.overlay, part, self._free)
        self.listed: dict[int, list[int]] = {}
        self.groups: dict[int, list[Group]] = {}
        self._elastic: list[int] = []
        self._looked = self.pods = 0
        self.latest: int | None = None
        self._by_node: dict[int, dict[int, None]] = {}
        self.walked: list[Group] = []
        self._with_others: set[int] = set()
        self._record(recorded)
        self._list(self.recorded)
        for group in self.recorded:
            self.room.give(group.tasks)

    def start(self, part: Sequence[int], recorded: Sequence[Group]) -> None:
        """Nobody is listed but the victims recorded for a shorter part."""
        self._begin(part, recorded)

    def go_on(self, part: Sequence[int], recorded: Sequence[Group]) -> bool:
        """Take a longer part and its recorded victims without walking the order again. False where only walking it
        again tells: some prefix of what is listed might do, or the order would run differently.

        What a job gives back to the order depends on what of it is recorded only if that is several chunks, or if
        the job keeps pods that can't be taken.
        """
        jobs = {group.job for group in recorded}
        several = len(jobs) < len(recorded) or len(self.recorded_jobs) < len(self.recorded)
        if several or not self._with_others.isdisjoint(jobs | self.recorded_jobs.keys()):
            return False
        self.room.need(part)
        if self.room.enough():
            return False
        before = self.recorded_jobs
        self._record(recorded)
        now = self.recorded_jobs
        new = now.keys() - before.keys()
        if not before.items() <= now.items() or any(len(self.groups[j]) > 1 for j in new):
            self._list_again(part)
        else:
            self.part = part
            for job in new:
                for t in self.groups[job][0].tasks:
                    self._by_node.get(self.overlay.node[t], {}).pop(job, None)
        return True

    def _list_again(self, part: Sequence[int]) -> None:
        """List the recorded victims and then what the order has yielded so far, as it would be listed had they been
        recorded from the start. A victim that is recorded no longer, and whose turn has not come, is not listed."""
        walked, with_others = self.walked, self._with_others
        self._begin(part, self.recorded)
        self.walked, self._with_others = walked, with_others
        for group in walked:
            if self.is_recorded.isdisjoint(group.tasks):
                self._take_up(group)

    def _record(self, recorded: Sequence[Group]) -> None:
        done = len(self.recorded)
        if recorded[:done] != self.recorded:
            done, self.recorded_jobs, self.is_recorded = 0, {}, set()
        new, jobs = recorded[done:], self.recorded_jobs.copy()
        for group in new:
            jobs[group.job] = (*jobs.get(group.job, ()), group.tasks[0])
        self.recorded, self.recorded_jobs = list(recorded), jobs
        self.is_recorded = self.is_recorded.union(*(group.tasks for group in new))

    def grow(self, order: VictimOrder) -> bool | None:
        """Add the next chunk of the victim order: one pod of a job above its gang, else all its pods. False where
        the next victim adds nothing, None at the end."""
        victim = order.pop()
        if victim is None:
            return None
        tasks, chunk = victim.tasks, first_to_go(self.overlay, victim)
        group = Group(victim.job, chunk)
        if victim.others:
            self._with_others.add(victim.job)
        if chunk:
            self.walked.append(group)
        if not self.is_recorded.isdisjoint(chunk):
            order.put_back(victim, [t for t in tasks if t not in self.is_recorded])
            return False
        if len(chunk) < len(tasks):
            order.put_back(victim, [t for t in tasks if t not in chunk])
        if not chunk:
            return False
        self._take_up(group)
        return True

    def _take_up(self, group: Group) -> None:
        self._list((group,))
        self._put_on_nodes((group,))
        self.room.give(group.tasks)

    def _list(self, groups: Iterable[Group]) -> None:
        listed = self.listed
        for group in groups:
            job = group.job
            self.pods += len(group.tasks)
            if job in listed:
                self.groups[job].append(group)
                listed[job] = listed[job] + group.tasks
            else:
                self.groups[job] = [group]
                listed[job] = group.tasks

    @property
    def elastic(self) -> list[int]:
        """The jobs of those listed that need fewer pods than they have."""
        if self._looked < len(self.listed):
            self._elastic += filter(self.overlay.jobs.elastic, islice(self.listed, self._looked, None))
            self._looked = len(self.listed)
        return self._elastic

    def _put_on_nodes(self, groups: Iterable[Group]) -> None:
        node, by_node = self.overlay.node, self._by_node
        for group in groups:
            self.latest = job = group.job
            for t in group.tasks:
                by_node.setdefault(node[t], {})[job] = None

    def chunks_of(self, jobs: Iterable[int]) -> list[Group]:
        """The listed chunks of these jobs that are not recorded."""
        return [g for job in jobs for g in self.groups[job] if g.tasks[0] not in self.is_recorded]

    def nodes_of_latest(self) -> list[int]:
        """Where the latest victim has pods, NOWHERE for pending ones: those of its latest chunk first."""
        assert self.latest is not None
        node, tasks = self.overlay.node, self.overlay.in_order(self.latest)
        if len(tasks) == 1:
            return [node[tasks[0]]]
        chunk = set(self.groups[self.latest][-1].tasks)
        first = dict.fromkeys(node[t] for t in tasks if t in chunk)
        return list(first | dict.fromkeys(node[t] for t in tasks))

    def jobs_on(self, node: int) -> Iterable[int]:
        """The jobs that have a chunk on this node."""
        return self._by_node.get(node, ())

    def victims_on(self, node: int) -> list[int]:
        """Every listed pod of the jobs that have a chunk on this node, recorded and on other nodes too."""
        if node == NOWHERE:
            return []
        return [t for job in self.jobs_on(node) for group in self.groups[job] for t in group.tasks]
