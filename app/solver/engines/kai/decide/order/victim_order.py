"""Victims in KAI's order, worst first: the exact reverse of the order of pending jobs."""

from bisect import insort
from collections.abc import Iterable
from operator import itemgetter

from app.solver.engines.kai.compile.jobs import ALLOCATED, PIPELINED, RUNNING
from app.solver.engines.kai.compile.resident import Key, Victim
from app.solver.engines.kai.compile.resources import Share
from app.solver.engines.kai.decide.order.pending_order import job_key
from app.solver.engines.kai.decide.order.queue_order import NOTHING, plus
from app.solver.engines.kai.decide.order.queue_tree import Node, QueueTree
from app.solver.engines.kai.decide.order.standing import Standing
from app.solver.engines.kai.decide.overlay import Overlay, rank, total

ACTIVE = (RUNNING, ALLOCATED, PIPELINED)


class VictimTable:
    """Jobs as victims, each worked out again only after a commit touched it. Read between statements only."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._known: dict[int, tuple[int, Victim]] = {}

    def of(self, job: int) -> Victim:
        """A job as it stands as a victim."""
        overlay = self._overlay
        version = overlay.version[job]
        if version == 0 and overlay.jobs.ask[job] < 0:
            resident = overlay.state.resident.victims
            untouched = resident.get(job)
            if untouched is None:
                untouched = resident[job] = self._look(job)
            return untouched
        found = self._known.get(job)
        if found is None or found[0] != version:
            found = self._known[job] = version, self._look(job)
        return found[1]

    def _look(self, job: int) -> Victim:
        overlay, status = self._overlay, self._overlay.status
        tasks = [t for t in reversed(overlay.in_order(job)) if status[t] in ACTIVE]
        running = [t for t in tasks if status[t] != PIPELINED]
        return _victim(overlay, job, tasks, running, others=len(tasks) < len(overlay.jobs.tasks[job]))


def what_is_left(overlay: Overlay, victim: Victim, tasks: list[int]) -> Victim:
    """The victim with only ``tasks`` of its active pods."""
    running = [t for t in tasks if overlay.status_before(t) != PIPELINED]
    return _victim(overlay, victim.job, tasks, running, others=victim.others)


def _victim(overlay: Overlay, job: int, tasks: list[int], running: list[int], *, others: bool) -> Victim:
    key = job_key(overlay, job, rank(len(tasks), overlay.jobs.min_available[job]))
    return Victim(job, key, tasks, total(overlay.request, running), others=others)


class Victims:
    """The victims of a leaf, the worst last, and what those taken before held."""

    __slots__ = ("items", "taken")

    def __init__(self, items: list[tuple[Key, Victim]], taken: Share) -> None:
        self.items = items
        self.taken = taken

    def __len__(self) -> int:
        return len(self.items)


class VictimOrder:
    """``sorted_victims``: the victims of each leaf, the best first; ``order``: that of queues before the attempt."""

    def __init__(self, overlay: Overlay, order: Standing, sorted_victims: dict[int, list[tuple[Key, Victim]]]) -> None:
        self._queue = overlay.jobs.queue
        self._order = order
        self._tree: QueueTree[Victims] = QueueTree(overlay.parent_queue, self._queue_worse)
        self._taken: dict[int, Share] = {}
        worst_first = sorted(((items[-1][0], queue) for queue, items in sorted_victims.items()), reverse=True)
        for _, queue in worst_first:
            self._tree.add(queue, Victims(sorted_victims[queue].copy(), NOTHING))

    def push(self, victim: Victim) -> None:
        """Add a victim, or put back what is left of one."""
        queue = self._queue[victim.job]
        leaf = self._tree.leaf(queue)
        if leaf is not None:
            insort(leaf.items, (victim.key, victim))
        else:
            self._tree.add(queue, Victims([(victim.key, victim)], self._taken.get(queue, NOTHING)))

    def pop(self) -> Victim | None:
        """The next victim; None when there are none. What it held counts as given back by its leaf from now on."""
        found = self._tree.next()
        if found is None:
            return None
        queue, leaf = found
        victim = leaf.items.pop()[1]
        self._taken[queue] = leaf.taken = plus(leaf.taken, victim.holds)
        self._tree.took(queue)
        return victim

    def _give_back(self, node: Node[Victims]) -> Share:
        while node.queues is not None:
            node = node.queues.items[0]
        assert node.jobs is not None
        return plus(node.jobs.taken, node.jobs.items[-1][1].holds)

    def _queue_worse(self, a: Node[Victims], b: Node[Victims]) -> bool:
        return not self._order.first(a.queue, b.queue, self._give_back(a), self._give_back(b))


def sort_victims(overlay: Overlay, victims: Iterable[Victim]) -> dict[int, list[tuple[Key, Victim]]]:
    """Victims by leaf, the best first."""
    by_queue: dict[int, list[tuple[Key, Victim]]] = {}
    for victim in victims:
        by_queue.setdefault(overlay.jobs.queue[victim.job], []).append((victim.key, victim))
    for items in by_queue.values():
        items.sort(key=itemgetter(0))
    return by_queue
