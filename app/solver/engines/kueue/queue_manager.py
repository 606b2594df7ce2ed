"""What waits, as Kueue's queue manager keeps it from cycle to cycle: lines, who is aside, positions of flavor scans.

Source: Kueue ``pkg/cache/queue`` (Heads, RequeueWorkload, QueueAssociatedInadmissibleWorkloadsAfter). A head that was
nominated and could not go on stays, one that does not fit steps aside in a BestEffortFIFO queue with all that are like
it, and all of a cohort come back a second after something in it finished or was released. Whose preemption is pending
goes first in its queue. A scan of flavors that stopped before the last one goes on from there in the next cycle, and
its ask does not step aside.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from app.solver.engines.kueue.admission_sharing import LocalQueueUsages, local_queue, rates_of
from app.solver.engines.kueue.configuration import CompiledConfiguration
from app.solver.engines.kueue.cycle import OTHERS, OUTRUN, OVERLAP
from app.solver.engines.kueue.fair_share import Line, SharedLine, shape_of
from app.solver.model.decision import Decision
from app.solver.model.kueue import Ask as AskBlock
from app.solver.model.kueue import FlavorScan
from app.solver.model.state import Ask


class _Scanned(NamedTuple):
    """Where the scan of an ask's flavors stopped, in which cycle, and how often its queue had changed by then."""

    flavors: dict[str, dict[str, int]]
    cycle: int
    generation: int


class QueueManager:
    """Trees are told apart by their root's name. ``heads``: of each queue that has one; ``due``: whether some head is
    to be tried; ``usages``: what LocalQueues have consumed, where queues go by it; ``period``: how long, in
    microseconds, who is aside stays there after something changed. ``_freed``: trees in which something finished or
    was released, until who is aside in them comes back at ``_returns``; ``_generation``: by queue, how often something
    came into it, left it, or its quota changed; ``_cycle``: how many there were; ``_own``: classes of asks that are
    like no other, ``_came``: how many there were; ``_back``: asks that step back for a time after an eviction;
    ``_marked``: queues in which somebody may be aside or sticky."""

    def __init__(self, configured: CompiledConfiguration, period: int) -> None:
        self.heads: dict[str, Ask] = {}
        self.due = False
        self.usages: LocalQueueUsages | None = None
        self._configuration = configured
        self._share()
        self._period = period
        self._lines: dict[str, Line] = {}
        self._waiting: dict[str, Ask] = {}
        self._aside: dict[str, dict[str, None]] = {}
        self._freed: dict[str, None] = {}
        self._returns: int | None = None
        self._scans: dict[str, _Scanned] = {}
        self._generation: Counter[str] = Counter()
        self._cycle = 0
        self._own: dict[str, bytes] = {}
        self._back: set[str] = set()
        self._came = 0
        self._marked: set[str] = set()

    def arrive(self, ask: Ask) -> None:
        """``ask`` waits, with what an earlier cycle left behind for it, from now on or once its ``requeue_at`` is."""
        block, of = ask.kueue, ask.queue
        line = self._lines.get(of)
        if line is None:
            line = self._lines[of] = self._new_line(of)
        if block is not None and (block.preemption_pending or block.flavor_scan is not None):
            ask = replace(ask, kueue=_without_carried(block))
            if block.preemption_pending and not self.strict(of):
                line.sticky = ask.id
                self._marked.add(of)
            if (scan := block.flavor_scan) is not None:
                cycle, generation = self._cycle + 1 - scan.cycles, self._generation[of] - scan.changed
                self._scans[ask.id] = _Scanned(scan.flavors, cycle, generation)
        self._waiting[ask.id] = ask
        if block is not None and block.requeue_at is not None:
            self._back.add(ask.id)
        else:
            self._line_up(ask)

    def leave(self, job: str) -> None:
        """It waits no longer."""
        ask = self._waiting.pop(job, None)
        self._own.pop(job, None)
        self._scans.pop(job, None)
        self._back.discard(job)
        if ask is not None:
            self._lines[ask.queue].leave(job)
            if self.heads.get(ask.queue) is ask:
                self._find_head(ask.queue)

    def touched(self, queue: str) -> None:
        """Something came into the queue or left it (Kueue: its generation is another)."""
        self._generation[queue] += 1

    def freed(self, queue: str) -> None:
        """Something in it finished or was released: who is aside in its tree comes back."""
        root = self._root(queue)
        self._generation[queue] += 1
        if self._period:
            self._freed[root] = None
        else:
            self._come_back(root)
        if not self.due:
            self.due = any(self._root(name) == root for name in self.heads)

    def changed(self, configured: CompiledConfiguration) -> None:
        """Quotas, settings or nodes are others now."""
        changed = _changed(self._configuration, configured)
        if not changed and configured.topologies:
            changed = list(self._lines)  # nodes are others, on which pods are placed
        likes = {name: self._told_apart(name) for name in self._lines}
        self._configuration = configured
        self._share()
        aside = [name for names in self._aside.values() for name in names]
        self._aside = {}
        for name in aside:
            self._aside.setdefault(self._root(name), {})[name] = None
        for name in self._lines:
            if likes[name] != self._told_apart(name):
                self._line_up_again(name)
        trees = {self._root(name) for name in changed}
        self._freed |= dict.fromkeys(sorted(trees))
        for name in self._lines:
            self._generation[name] += self._root(name) in trees
        if self._freed and not self._period:
            self._all_come_back()
        for name in self._lines:
            self._find_head(name)
        self.due = bool(self.heads)

    def time_passes(self, now: int) -> None:
        """Who is aside comes back where it is time."""
        if self._freed:
            self._returns = self._returns or now + self._period
            if self._returns <= now:
                self._all_come_back()

    def wakes(self, job: str) -> None:
        """It may be tried now: after an eviction that it had to step back for, or though nothing but time passed."""
        ask = self._waiting[job]
        if job in self._back:
            self._back.discard(job)
            self._line_up(ask)
            return
        self._lines[ask.queue].come_back(self._own[job])
        self._find_head(ask.queue)
        self.due = self.due or self.heads.get(ask.queue) is ask

    def sample(self, now: int) -> None:
        """What LocalQueues have consumed is sampled: others may go first."""
        if self.usages is not None:
            self.usages.sample(now)
            for name, line in self._lines.items():
                if isinstance(line, SharedLine):
                    self._find_head(name)

    def changes(self) -> Iterator[int | None]:
        """When somebody who waits may be tried, or another of its queue."""
        if not self._waiting:
            return
        yield self._returns
        for name, line in self._lines.items():
            if self.usages is not None and isinstance(line, SharedLine) and name in self.heads:
                yield self.usages.turns(local_queue(self.heads[name]), line.firsts())

    def asks(self) -> list[Ask]:
        """The heads in order of id, with what the last cycle left behind for each."""
        return [self._asked(ask) for ask in self.first()]

    def first(self) -> list[Ask]:
        """The heads in order of id."""
        return sorted(self.heads.values(), key=_id)

    def scanned(self, ask: Ask) -> bool:
        """Whether the scan of its flavors goes on where it stopped."""
        return ask.id in self._scans

    def shape(self, ask: Ask) -> bytes | None:
        """Equal for asks of a queue that Kueue does not tell apart; None: it tells this one from all others."""
        return None if ask.id in self._own else self._lines[ask.queue].shape(ask.id)

    def cycle_ends(self) -> None:
        """All that is told from now on came of one more cycle."""
        self.due = False
        self._cycle += 1

    def requeued(self, ask: Ask, scan: FlavorScan | None, *, pending: bool, inadmissible: bool) -> bool:
        """It was tried and not admitted. ``scan``: where the scan of its flavors stopped; ``pending``: it goes on once
        somebody has stopped; ``inadmissible``: nomination found no way. Whether it is tried otherwise, or another of
        its queue, now."""
        moved = self._scanned(ask.id, ask.queue, scan)
        if self.strict(ask.queue):
            return moved
        if pending:
            self._lines[ask.queue].sticky = ask.id
            self._marked.add(ask.queue)
        if inadmissible and scan is None:
            self._step_aside(ask)
            return True
        return moved

    def all_step_aside(self, waits: Callable[[Ask], bool], most: int) -> Iterator[int]:
        """Cycles, ``most`` at most, as long as every head ``waits`` and steps aside for it; counted from 0, each over
        once the next is asked for."""
        heads = self.heads
        if self._scans or any(map(self.strict, heads)):
            return
        aside = {name: self._aside.setdefault(self._root(name), {}) for name in heads}
        for cycle in range(most):
            if not heads or not all(map(waits, heads.values())):
                return
            yield cycle
            for name, ask in list(heads.items()):
                line = self._lines[name]
                line.step_aside(ask.id)
                aside[name][name] = None
                head = line.head()
                if head is None:
                    del heads[name]
                else:
                    heads[name] = head
            self._marked |= aside.keys()
            self._cycle += 1
            self.due = True

    def carried(self) -> tuple[Hashable, Hashable]:
        """Who is aside, who is sticky, and where scans of flavors stopped; whether those are older than a cycle, and
        whether their queues have changed since."""
        self._marked = {name for name in self._marked if (line := self._lines[name]).mark or line.sticky}
        lines = [(name, (line := self._lines[name]).mark, line.sticky) for name in self._marked]
        if not self._scans and self.usages is None:
            return (frozenset(lines), (), tuple(sorted(self._freed)), ()), ()
        scans = sorted(self._scans.items())
        places = [
            (job, tuple((task, *sorted(of.items())) for task, of in sorted(scan.flavors.items())))
            for job, scan in scans
        ]
        ages = [
            (self._cycle > of.cycle, self._generation[self._waiting[job].queue] > of.generation) for job, of in scans
        ]
        consumed = [] if self.usages is None else [(name, self.usages.usage(name)) for name in self._local_queues()]
        return (frozenset(lines), tuple(places), tuple(sorted(self._freed)), tuple(consumed)), tuple(ages)

    def strict(self, queue: str) -> bool:
        """Whether nothing of it goes before its head."""
        return self._configuration.policy[self._configuration.tree.index[queue]].strict_fifo

    def usage_based(self, queue: str) -> bool:
        """Whether it goes by what LocalQueues have consumed."""
        return self._configuration.usage_based[self._configuration.tree.index[queue]]

    def _line_up(self, ask: Ask) -> None:
        """It stands in its queue's line, unless something about itself forbids it."""
        if ask.kueue is None or ask.kueue.inadmissible is None:
            of = ask.queue
            self._lines[of].arrive(ask, shape_of(ask) if self._has_likes(of) else self._alone(ask))
            self._find_head(of)

    def _line_up_again(self, queue: str) -> None:
        """Its asks are told apart in another way from now on; nobody is aside."""
        sticky = self._lines[queue].sticky
        line = self._lines[queue] = self._new_line(queue)
        for ask in self._waiting.values():
            if ask.queue == queue and ask.id not in self._back:
                self._line_up(ask)
        line.sticky = None if self.strict(queue) else sticky
        self._find_head(queue)

    def _asked(self, ask: Ask) -> Ask:
        scan, sticky = self._scans.get(ask.id), self._lines[ask.queue].sticky == ask.id
        if scan is None and not sticky:
            return ask
        resumed = None
        if scan is not None:
            changed = self._generation[ask.queue] > scan.generation
            resumed = FlavorScan(flavors=scan.flavors, cycles=self._cycle + 1 - scan.cycle, changed=changed)
        block = replace(ask.kueue or AskBlock(), preemption_pending=sticky, flavor_scan=resumed)
        return replace(ask, kueue=block)

    def _scanned(self, job: str, queue: str, scan: FlavorScan | None) -> bool:
        """Take note of where its scan stopped in this cycle; whether that is another place than before. The queue's
        own changes of this cycle are still to come."""
        before = self._scans.pop(job, None)
        if scan is not None:
            self._scans[job] = _Scanned(scan.flavors, self._cycle, self._generation[queue])
        return (None if before is None else before.flavors) != (None if scan is None else scan.flavors)

    def _share(self) -> None:
        """What LocalQueues have consumed counts by the rates of now, or not at all."""
        sharing = self._configuration.admission_fair_sharing
        if sharing is None:
            self.usages = None
        elif self.usages is None:
            self.usages = LocalQueueUsages(rates_of(sharing))
        else:
            self.usages.rates = rates_of(sharing)

    def _local_queues(self) -> list[str]:
        return sorted({local_queue(ask) for ask in self._waiting.values() if self.usage_based(ask.queue)})

    def _new_line(self, queue: str) -> Line:
        if self.usages is None or not self.usage_based(queue):
            return Line(self._waiting)
        return SharedLine(self._waiting, self.usages.usage)

    def _told_apart(self, queue: str) -> tuple[bool, bool]:
        """By what a queue's asks are lined up."""
        return self._has_likes(queue), self.usage_based(queue)

    def _has_likes(self, queue: str) -> bool:
        """Whether asks go the way of those they are like: not in a StrictFIFO queue, nor where it matters how long each
        has waited (the knobs that KEP-83 deferred)."""
        block = self._configuration.policy[self._configuration.tree.index[queue]].preemption
        waits = block.trigger_after_workload_waiting_seconds is not None or block.waiting_boost is not None
        return not waits and not self.strict(queue)

    def _alone(self, ask: Ask) -> bytes:
        """The class of an ask that is like no other, nor like itself when it came before."""
        self._came += 1
        shape = self._own[ask.id] = b"%d" % self._came
        return shape

    def _all_come_back(self) -> None:
        for root in self._freed:
            self._come_back(root)
        self._freed.clear()
        self._returns = None

    def _come_back(self, root: str) -> None:
        for name in self._aside.pop(root, ()):
            self._lines[name].come_back()
            self._find_head(name)

    def _step_aside(self, ask: Ask) -> None:
        self._lines[ask.queue].step_aside(ask.id)
        self._marked.add(ask.queue)
        self._aside.setdefault(self._root(ask.queue), {})[ask.queue] = None
        self._find_head(ask.queue)

    def _find_head(self, queue: str) -> None:
        index = self._configuration.tree.index
        head = None if self._configuration.inactive[index[queue]] is not None else self._lines[queue].head()
        if head is None:
            self.heads.pop(queue, None)
        elif self.heads.get(queue) is not head:
            self.heads[queue] = head
            self.due = True

    def _root(self, queue: str) -> str:
        tree = self._configuration.tree
        return tree.names[self._configuration.root[tree.index[queue]]]


def _changed(before: CompiledConfiguration, after: CompiledConfiguration) -> list[str]:
    """Queues that are new or have another quota or policy; all of them where a setting is another."""
    known = {queue.name: queue for queue in before.source.queues}
    if before.source.settings != after.source.settings or before.source.flavors != after.source.flavors:
        known = {}
    return [queue.name for queue in after.source.queues if known.get(queue.name) != queue]


def _id(ask: Ask) -> str:
    return ask.id


def _without_carried(block: AskBlock) -> AskBlock | None:
    rest = replace(block, preemption_pending=False, flavor_scan=None)
    return None if rest == AskBlock() else rest


_NOMINATED = (OUTRUN, OVERLAP, OTHERS)


def is_pending(decision: Decision) -> bool:
    """Whether its ask goes on once somebody has stopped, for it or for another."""
    return decision.outcome == "preempt" or decision.conditions[0].message.startswith(OTHERS)


def is_inadmissible(decision: Decision) -> bool:
    """Whether nomination itself found no way; a head that other heads outran, or that preempts, stays head."""
    if decision.outcome == "infeasible":
        return True
    return decision.outcome == "wait" and not decision.conditions[0].message.startswith(_NOMINATED)
