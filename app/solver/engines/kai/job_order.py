"""Pending jobs in KAI's order, and victims in the exact reverse of it, worst first."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TypeVar

from app.solver.engines.kai.chance import Chance, hangs_on_entry
from app.solver.engines.kai.fair_share import Left
from app.solver.engines.kai.jobs import GPU, PIPELINED, Share, rank, total
from app.solver.engines.kai.overlay import ACTIVE, Overlay
from app.solver.engines.kai.queue_order import (
    NOTHING,
    ByLeaf,
    Entry,
    L,
    Node,
    QueueOrder,
    QueueTree,
    Standing,
    Waiting,
    minus,
    plus,
    put_in_line,
    those,
)
from app.solver.engines.kai.state import Key, Victim


def job_key(overlay: Overlay, job: int, rank: int) -> Key:
    """Higher priority first, then below the gang, at it, above it (``rank``), then older, then the id."""
    jobs = overlay.jobs
    return -jobs.priority[job], rank, jobs.created[job], jobs.uid[job], job


def key_now(overlay: Overlay, job: int) -> Key:
    """The key of the job as it stands."""
    return job_key(overlay, job, overlay.elastic_rank(job))


class Lines:
    """The pending jobs of leaves, as all stands between two statements."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._settled = 0
        self._keys: dict[int, Key] | None = None
        self._all: dict[int, list[Entry]] = {}
        self._ready: dict[int, list[Entry]] = {}
        self._kinds: tuple[int, list[list[int]]] = -1, []

    def _look(self) -> None:
        """Those that statements have touched are looked at again."""
        overlay, keys, queue = self._overlay, self._keys, self._overlay.jobs.queue
        if keys is None:
            entries = self._in_line([job for job in overlay.pending_jobs() if overlay.leaf[job]])
            self._keys = {job: key for key, job in entries}
            for entry in entries:
                self._all.setdefault(queue[entry[1]], []).append(entry)
            self._ready = {**those(self._all, overlay.ready)}
        elif self._settled != len(overlay.settled):
            for job in overlay.settled_since(self._settled):
                before, now = keys.pop(job, None), None
                if overlay.pending[job] and overlay.leaf[job]:
                    now = keys[job] = key_now(overlay, job)
                put_in_line(self._all, queue[job], job, before, now)
                put_in_line(self._ready, queue[job], job, before, now if overlay.ready(job) else None)
        self._settled = len(overlay.settled)

    def _in_line(self, waiting: list[int]) -> list[Entry]:
        """The jobs in order: that of the last decision, as far as they waited then, is right but for a few."""
        overlay, jobs, resident = self._overlay, self._overlay.jobs, self._overlay.state.resident
        asks, ask = overlay.asks, jobs.ask
        new = {id(asks[ask[job]]): job for job in waiting}
        known = [new.pop(name) for name in resident.in_line if name in new]
        entries = sorted([(key_now(overlay, job), job) for job in (*known, *new.values())])
        resident.in_line = [id(asks[ask[job]]) for _, job in entries]
        return entries

    def all(self) -> tuple[Mapping[int, Key], ByLeaf]:
        """All of them, and their keys."""
        self._look()
        assert self._keys is not None
        return self._keys, self._all

    def ready(self) -> ByLeaf:
        """Those with enough pods for their gang."""
        self._look()
        return self._ready

    def left(self, waiting: ByLeaf, *, apart: bool) -> Left:
        """These jobs before the first has its turn. ``apart``: whether anybody asks which are alike."""
        overlay, number = self._overlay, sum(map(len, waiting.values()))
        jobs = [job for entries in waiting.values() for _, job in entries] if apart else []
        if not apart:
            return Left(overlay.settled, number, [])
        if waiting is not self._ready:
            return Left(overlay.settled, number, overlay.counts.kinds(overlay.jobs, jobs, overlay.version))
        if self._kinds[0] != self._settled:
            self._kinds = self._settled, overlay.counts.kinds(overlay.jobs, jobs, overlay.version)
        return Left(overlay.settled, number, self._kinds[1])


class PendingOrder:
    """The pending jobs of an action. What runs may change its rank while it waits with more pods."""

    def __init__(self, overlay: Overlay, order: QueueOrder) -> None:
        self._overlay = overlay
        self._order = order
        self._tree: QueueTree[Waiting] = QueueTree(overlay.parent_queue, partial(_pending_first, overlay, order))
        self._key = partial(key_now, overlay)

    def add_all(self, waiting: ByLeaf, chance: Chance) -> None:
        """Add jobs, the best leaf first where none is drawn."""
        chance.may_hang(lambda: hangs_on_entry(self._overlay, self._order, waiting))
        chance.turn()
        if (walked := chance.jobs(self._overlay)) is not None:
            known = {job for entries in waiting.values() for _, job in entries}
            for job in walked:
                if job in known:
                    self.push(job)
            return
        for queue, entries in sorted(waiting.items(), key=lambda of: of[1][0]):
            self._tree.add(queue, Waiting(self._overlay.settled, self._key, entries))

    def push(self, job: int) -> None:
        """Add one job."""
        queue = self._overlay.jobs.queue[job]
        leaf = self._tree.leaf(queue)
        if leaf is not None:
            leaf.push(job)
            return
        self._tree.add(queue, Waiting(self._overlay.settled, self._key, [(self._key(job), job)]))

    def pop(self) -> int | None:
        """The next job; None when there are none."""
        return _next_job(self._tree)


def _pending_first(overlay: Overlay, order: QueueOrder, a: Node[Waiting], b: Node[Waiting]) -> bool:
    want_a, want_b = overlay.wanted(best_of(a).first())[1], overlay.wanted(best_of(b).first())[1]
    return order.first(a.queue, b.queue, want_a, want_b, NOTHING, NOTHING)


class Contenders:
    """Who takes part in every simulation of an attempt, sorted by leaf: pending jobs, recorded victims, and the job
    itself as a gang of the pods in hand. ``rank``: how that gang stands."""

    def __init__(self, overlay: Overlay, lines: Lines, job: int, rank: int) -> None:
        """Made before the attempt evicts or places anybody."""
        self._overlay = overlay
        keys, by_queue = lines.all()
        self.keys = dict(keys)
        self.by_queue = {queue: entries.copy() for queue, entries in by_queue.items()}
        self._remove(job)
        self._add(job, rank)

    def update(self, job: int, *, victim: bool) -> None:
        """Rank the job as it stands. A job that is no victim takes part only while it has pending pods."""
        overlay = self._overlay
        self._remove(job)
        if victim or overlay.pending[job]:
            self._add(job, overlay.elastic_rank(job))

    def _remove(self, job: int) -> None:
        key = self.keys.pop(job, None)
        if key is not None:
            entries = self.by_queue[self._overlay.jobs.queue[job]]
            del entries[bisect_left(entries, (key, job))]

    def _add(self, job: int, rank: int) -> None:
        key = self.keys[job] = job_key(self._overlay, job, rank)
        insort(self.by_queue.setdefault(self._overlay.jobs.queue[job], []), (key, job))


class Turn:
    """The jobs of one leaf in one simulation: ``base`` is shared and read from ``at``, ``more`` sorted worst first."""

    __slots__ = ("at", "base", "more", "want", "without")

    def __init__(self, base: list[Entry], without: Mapping[int, None]) -> None:
        self.base = base
        self.at = 0
        self.want: Share | None = None
        self.more: list[Entry] = []
        self.without = without
        self._skip()

    def __len__(self) -> int:
        return len(self.base) - self.at + len(self.more)

    def best(self) -> Entry:
        """The next entry."""
        return self.more[-1] if self._extra_first() else self.base[self.at]

    def pop(self) -> int:
        """Take the next job."""
        self.want = None
        if self._extra_first():
            return self.more.pop()[1]
        job = self.base[self.at][1]
        self.at += 1
        self._skip()
        return job

    def _extra_first(self) -> bool:
        return self.at == len(self.base) or (bool(self.more) and self.more[-1] < self.base[self.at])

    def _skip(self) -> None:
        while self.at < len(self.base) and self.base[self.at][1] in self.without:
            self.at += 1


class Turns:
    """The order of one simulation: the contenders, and the victims that only this try takes (``extra``).

    ``part``: a job and the sum of those of its pods that compete as a gang of their own. ``left``: how many come."""

    def __init__(
        self, overlay: Overlay, order: QueueOrder, contenders: Contenders, extra: Mapping[int, None],
        part: tuple[int, Share], chance: Chance | None = None,
    ) -> None:  # fmt: skip
        """``chance``: by whose order of maps jobs enter the tree; else the best leaf enters first."""
        self._overlay = overlay
        self._tree: QueueTree[Turn] = QueueTree(overlay.parent_queue, partial(_turn_first, overlay, order, part))
        self._part = part[0]
        self.left = len(contenders.keys) + sum(job not in contenders.keys for job in extra)
        if chance is not None and (jobs := chance.jobs(overlay)) is not None:
            self._fill(contenders, extra, jobs, chance)
            return
        leaves = {queue: Turn(entries, extra) for queue, entries in contenders.by_queue.items()}
        for job in extra:
            leaf = leaves.setdefault(overlay.jobs.queue[job], Turn([], extra))
            leaf.more.append((job_key(overlay, job, overlay.elastic_rank(job)), job))
        for leaf in leaves.values():
            leaf.more.sort(reverse=True)
        for _, queue in sorted((leaf.best(), queue) for queue, leaf in leaves.items() if len(leaf)):
            self._tree.add(queue, leaves[queue])

    def _fill(self, contenders: Contenders, extra: Mapping[int, None], jobs: list[int], chance: Chance) -> None:
        """Job by job: those that wait, then victims, then whose turn it is, as a map of them yields them."""
        overlay = self._overlay
        keys = contenders.keys | {job: job_key(overlay, job, overlay.elastic_rank(job)) for job in extra}
        waiting = [job for job in jobs if job in keys and overlay.pending[job]]
        for job in chance.order(dict.fromkeys((*waiting, *extra, self._part))):
            queue = overlay.jobs.queue[job]
            leaf = self._tree.leaf(queue)
            if leaf is None:
                turn = Turn([], extra)
                turn.more.append((keys[job], job))
                self._tree.add(queue, turn)
            else:
                leaf.more.append((keys[job], job))
                leaf.more.sort(reverse=True)
                leaf.want = None

    def pop(self) -> int | None:
        """The next job; None when there are none."""
        job = _next_job(self._tree)
        self.left -= job is not None
        return job


def _turn_first(
    overlay: Overlay, order: QueueOrder, part: tuple[int, Share], a: Node[Turn], b: Node[Turn]
) -> bool:  # fmt: skip
    want_a, want_b = _want(overlay, part, best_of(a)), _want(overlay, part, best_of(b))
    return order.first(a.queue, b.queue, want_a, want_b, NOTHING, NOTHING)


def _want(overlay: Overlay, part: tuple[int, Share], turn: Turn) -> Share:
    """What the next job would add: nothing changes that before its turn."""
    if turn.want is None:
        job = turn.best()[1]
        turn.want = part[1] if job == part[0] else overlay.wanted(job)[1]
    return turn.want


_Jobs = TypeVar("_Jobs", Waiting, Turn)


def best_of(node: Node[L]) -> L:
    """The jobs of the best leaf at or below a queue."""
    while node.queues is not None:
        node = node.queues.items[0]
    assert node.jobs is not None
    return node.jobs


def _next_job(tree: QueueTree[_Jobs]) -> int | None:
    """Take the next job out of the tree of queues; None when there are none."""
    queue_and_leaf = tree.next()
    if queue_and_leaf is None:
        return None
    queue, leaf = queue_and_leaf
    job = leaf.pop()
    tree.took(queue)
    return job


class Clocks:
    """Preemptible jobs by leaf, and whom no minimum runtime protects from reclaim: looked at once for each pair of
    queues for as long as nothing starts, and for each job where something may have started since the first look, as
    the released scheduler judges a clock once for each job."""

    def __init__(self, preemptible: dict[int, list[int]] | None = None, *, by_job: bool = False) -> None:
        self._preemptible = preemptible
        self._by_job = by_job
        self._of: dict[tuple[int, int], tuple[list[int], list[int]]] = {}

    def again(self) -> "Clocks":
        """Where something may start."""
        return Clocks(self._preemptible, by_job=self._by_job or bool(self._of))

    def preemptible(self, overlay: Overlay) -> dict[int, list[int]]:
        """By leaf, none of them empty."""
        if self._preemptible is None:
            self._preemptible = dict[int, list[int]]()
            preemptible, leaf = overlay.jobs.preemptible, overlay.leaf
            for job, queue in enumerate(overlay.jobs.queue):
                if preemptible[job] and leaf[job]:
                    self._preemptible.setdefault(queue, []).append(job)
        return self._preemptible

    def of(
        self, overlay: Overlay, job: int, queue: int, passing: Callable[[list[int]], list[int]]
    ) -> tuple[list[int], list[int]]:  # fmt: skip
        """Those of a leaf that ran when it was first looked at and pass, and those that did not run."""
        key = job if self._by_job else overlay.jobs.queue[job], queue
        known = self._of.get(key)
        if known is None:
            active, of_leaf = overlay.active, self.preemptible(overlay)[queue]
            free = passing([victim for victim in of_leaf if active[victim]])
            known = self._of[key] = free, [victim for victim in of_leaf if not active[victim]]
        return known


class VictimTable:
    """Jobs as victims, each worked out again only after a commit touched it. Read between statements only."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._known: dict[int, tuple[int, Victim]] = {}
        self._listed: set[int] = set()
        self._by_leaf: dict[int, list[tuple[Key, Victim]]] = {}

    def by_leaf(self, jobs: Sequence[int]) -> dict[int, list[tuple[Key, Victim]]]:
        """``sort_victims`` of many jobs: those that no commit touched are put in order once."""
        overlay = self._overlay
        version, ask, queue = overlay.version, overlay.jobs.ask, overlay.jobs.queue
        touched = [job for job in jobs if version[job] or ask[job] >= 0]
        untouched = set(jobs).difference(touched)
        if new := untouched - self._listed:
            self._listed |= new
            for leaf, items in sort_victims(overlay, map(self.of, new)).items():
                self._by_leaf[leaf] = sorted((*self._by_leaf.get(leaf, ()), *items), key=itemgetter(0))
        by_leaf = {
            leaf: [item for item in self._by_leaf.get(leaf, ()) if item[1].job in untouched]
            for leaf in dict.fromkeys(map(queue.__getitem__, jobs))
        }
        for leaf, items in sort_victims(overlay, map(self.of, touched)).items():
            by_leaf[leaf] = sorted((*by_leaf[leaf], *items), key=itemgetter(0))
        return by_leaf

    def of(self, job: int) -> Victim:
        """A job as it stands as a victim."""
        overlay = self._overlay
        version, jobs = overlay.version[job], overlay.state.jobs
        if version == 0 and overlay.jobs.ask[job] < 0:
            return self._untouched(job)
        known = self._known.get(job)
        if known is None or known[0] != version:
            if version == 0 and job < len(jobs.id):  # the pods that an ask adds to it run nowhere
                of = self._untouched(job)
                others = len(of.tasks) < len(overlay.jobs.tasks[job])
                victim = Victim(job, of.key, of.tasks, of.holds, others=others)
            else:
                victim = self._look(job, overlay.in_order(job), len(overlay.jobs.tasks[job]))
            known = self._known[job] = version, victim
        return known[1]

    def _untouched(self, job: int) -> Victim:
        """A job of the state without what an ask adds to it, before anything happened to it."""
        overlay, resident = self._overlay, self._overlay.state.resident.victims
        victim = resident.get(job)
        if victim is None:
            in_order = overlay.in_order(job, running=True)
            victim = resident[job] = self._look(job, in_order, len(in_order))
        return victim

    def _look(self, job: int, in_order: list[int], number: int) -> Victim:
        """``number``: of all pods of it."""
        status = self._overlay.status
        tasks = [t for t in reversed(in_order) if status[t] in ACTIVE]
        running = [t for t in tasks if status[t] != PIPELINED]
        return _victim(self._overlay, job, tasks, running, others=len(tasks) < number)


def what_is_left(overlay: Overlay, victim: Victim, tasks: list[int]) -> Victim:
    """The victim with only ``tasks`` of its active pods."""
    running = [t for t in tasks if overlay.status_before(t) != PIPELINED]
    return _victim(overlay, victim.job, tasks, running, others=victim.others)


def _victim(overlay: Overlay, job: int, tasks: list[int], running: list[int], *, others: bool) -> Victim:
    gang = overlay.jobs.gang[job]
    if gang is None:
        gang_rank = rank(len(tasks), overlay.jobs.min_available[job])
    else:
        gang_rank = gang.rank(overlay.jobs.by_pod_set(tasks))
    key = job_key(overlay, job, gang_rank)
    holds, portions = total(overlay.request, running), overlay.jobs.task_portion
    if overlay.gpus.any:  # memory counts nothing in what a job holds
        by_memory = (t for t in running if (portion := portions[t]) is not None and portion.memory)
        holds = minus(holds, (0, 0, total(overlay.request, by_memory)[GPU]))
    return Victim(job, key, tasks, holds, others=others)


class Victims:
    """The victims of a leaf, the worst last, and what those taken before held. ``gives``: that and what the worst
    holds; who changes one of these clears it."""

    __slots__ = ("gives", "items", "taken")

    def __init__(self, items: list[tuple[Key, Victim]], taken: Share) -> None:
        self.items = items
        self.taken = taken
        self.gives: Share | None = None

    def __len__(self) -> int:
        return len(self.items)

    def look(self) -> Share:
        """``gives``, worked out."""
        self.gives = plus(self.taken, self.items[-1][1].holds)
        return self.gives


class VictimOrder:
    """``sorted_victims``: the victims of each leaf, the best first; ``order``: that of queues before the attempt;
    ``entering``: the jobs in the order in which they enter the tree, best leaf first where there is none."""

    def __init__(
        self, overlay: Overlay, order: Standing, sorted_victims: dict[int, list[tuple[Key, Victim]]],
        entering: Iterable[int] | None = None,
    ) -> None:  # fmt: skip
        self._overlay = overlay
        self._queue = overlay.jobs.queue
        self._tree: QueueTree[Victims] = QueueTree(overlay.parent_queue, partial(worse, order))
        self._taken: dict[int, Share] = {}
        if entering is not None:
            by_job = {victim.job: victim for items in sorted_victims.values() for _, victim in items}
            for job in entering:
                self.push(by_job[job])
            return
        for _, queue in sorted(((items[-1][0], queue) for queue, items in sorted_victims.items()), reverse=True):
            self._tree.add(queue, Victims(sorted_victims[queue].copy(), NOTHING))

    def put_back(self, victim: Victim, tasks: list[int]) -> None:
        """Put back what is left of a victim: ``tasks``, or nothing to take where other pods keep it in the order."""
        if tasks or victim.others:
            self.push(what_is_left(self._overlay, victim, tasks))

    def push(self, victim: Victim) -> None:
        """Add a victim."""
        queue = self._queue[victim.job]
        leaf = self._tree.leaf(queue)
        if leaf is not None:
            insort(leaf.items, (victim.key, victim))
            leaf.gives = None
        else:
            self._tree.add(queue, Victims([(victim.key, victim)], self._taken.get(queue, NOTHING)))

    def pop(self) -> Victim | None:
        """The next victim; None when there are none. What it held counts as given back by its leaf from now on."""
        queue_and_leaf = self._tree.next()
        if queue_and_leaf is None:
            return None
        queue, leaf = queue_and_leaf
        self._taken[queue] = leaf.taken = leaf.gives or leaf.look()
        leaf.gives, victim = None, leaf.items.pop()[1]
        self._tree.took(queue)
        return victim


def worse(order: Standing, a: Node[Victims], b: Node[Victims]) -> bool:
    """Whether victims of the first queue go before those of the second."""
    first_a, first_b = best_of(a), best_of(b)
    return not order.first(a.queue, b.queue, first_a.gives or first_a.look(), first_b.gives or first_b.look())


def sort_victims(overlay: Overlay, victims: Iterable[Victim]) -> dict[int, list[tuple[Key, Victim]]]:
    """Victims by leaf, the best first."""
    by_queue: dict[int, list[tuple[Key, Victim]]] = {}
    for victim in victims:
        by_queue.setdefault(overlay.jobs.queue[victim.job], []).append((victim.key, victim))
    for items in by_queue.values():
        items.sort(key=itemgetter(0))
    return by_queue
