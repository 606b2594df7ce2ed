"""What Kueue's scheduler knew in its memory alone when it preempted: what it can have been, the likeliest first. Pure.

- One head of every queue takes part in a cycle. Which it had is not written down. A workload that ended a cycle with
  victims that must stop first is its queue's head in every cycle until it is admitted or another one takes its place,
  whatever is written of it since (Kueue: the queue's sticky head; semantics of BestEffortFIFO). Others are seen to act
  in the same second, or it is written of them just after why they wait; or they stand first in their queues; or they do
  not bear on it.
- A scan of flavors that stopped before the last one goes on from there (Kueue: LastAssignment), in whichever of the
  places where it can have stopped; not for an ask that it has not looked at before.
- What it admitted and that was not written down yet counts as admitted (Kueue assumes it in its cache), and may be
  evicted before it is. Admissions are written beside the next cycles, in any order: of each queue the first few were
  before, and the next may have been its head.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, product
from typing import Literal

from msgspec import structs

from app.clusters.schemas import Assumed
from app.following.grouped import Translated
from app.following.history import Change, Eviction, Position, Rewind
from app.following.objects import WORK, admissions, nominated, reserves
from app.formats.objects import Item, Key, condition, id_of, instant, key_of
from app.solver.model.configuration import Configuration, EngineName, Queue
from app.solver.model.decision import Decision
from app.solver.model.kueue import Ask as KueueAsk
from app.solver.model.kueue import FlavorScan
from app.solver.model.state import Ask

TOGETHER_SECONDS = 1.0
"""Evictions and admissions so close may be of one cycle."""
_LATE_SECONDS = 10.0
"""So late an admission may be written down that says itself that it was made before: requests are throttled."""
_SCANS, _WAYS = 16, 64
_HELD = ("Inadmissible", "Misconfigured", "Suspended")
"""Said by others than the scheduler."""

Mode = Literal["cycle", "independent"]


@dataclass(frozen=True, slots=True)
class Guess:
    """What a scheduler can have been asked at one moment."""

    asks: list[Ask]
    mode: Mode
    assumed: tuple[Assumed, ...] = ()


@dataclass(frozen=True, slots=True)
class Admitted:
    """Workloads as if their admissions had been written down, and the head that a queue then had, by queue."""

    items: dict[Key, Item]
    next: dict[str, str] = field(default_factory=dict[str, str])


class Memory:
    """Of the cycle in which ``ask`` evicted ``first``. ``by``: its UID; ``rewind`` stands just before."""

    def __init__(self, engine: EngineName, ask: str, by: str, first: Eviction, rewind: Rewind) -> None:
        self._ask, self._rewind = ask, rewind
        late = admissions((change.old, change.new) for change in rewind.undone(TOGETHER_SECONDS))
        later = admissions((change.old, change.new) for change in rewind.undone(_LATE_SECONDS))
        close = {key_of(item) for item in late}
        self._first, self._certain = first, set[Key]()
        self.ahead: dict[Key, Item] = {}
        for item in later:
            if _until(item, first, timed=key_of(item) not in close):
                self._admitted(item)
        self._near = {*_others(engine, by, first, rewind), *(id_of(key_of(item)) for item in late)}
        self._got = {id_of(key_of(item)) for item in later}
        self._evicted = _evicted(engine, first, rewind)
        self._waiting = list(_waiting(rewind))
        self._sticky = rewind.preemptors(first.position)

    def oldest(self) -> Position:
        """No cycle begins before the last one has written down whom it evicts, and who waits."""
        before = self._first.heard - TOGETHER_SECONDS
        evicted = (
            eviction.position for eviction in self._rewind.evictions if eviction.seen.by and eviction.heard < before
        )
        waiting = (
            change.position for change in self._rewind.earlier() if change.heard < before and told_to_wait(change)
        )
        return max(max(evicted, default=(-1, 0)), next(waiting, (-1, 0)))

    def passed(self, change: Change) -> None:
        """It stands before this one now. What was written to be admitted then was, or was assumed to be."""
        for item in admissions([(change.old, change.new)]):
            self._got.add(id_of(key_of(item)))
            self._admitted(item)

    def _admitted(self, item: Item) -> None:
        key = key_of(item)
        if id_of(key) == self._ask:
            return
        self.ahead[key] = item
        if key == self._first.seen.victim or _before(item, self._first):
            self._certain.add(key)

    def assumed(
        self, there: Mapping[str, Mapping[Key, Item]], translated: Translated, *, rare: bool
    ) -> Iterator[Admitted]:
        """Without ``rare`` all that was written down just after; with it the other ways."""
        known = there.get("Workload", {})
        late = {key: item for key, item in self.ahead.items() if key in known and id_of(key) in translated.asks}
        if not late:
            return
        certain = {key: item for key, item in late.items() if key in self._certain}
        if not rare:
            yield from (Admitted(of) for of in ([certain] if 0 < len(certain) < len(late) else []))
            yield Admitted(late)
            return
        by_queue: dict[str, list[Key]] = {}
        own, apart = translated.asks[self._ask].queue, dict[Key, Item]()
        beside = _beside(translated.configuration, own)
        for key in sorted(late, key=lambda key: _turn(late[key], translated.asks[id_of(key)])):
            if (queue := translated.asks[id_of(key)].queue) in beside:
                by_queue.setdefault(queue, []).append(key)
            else:  # whether it was yet bears on nothing
                apart[key] = late[key]
        least = {queue: sum(key in certain for key in of) for queue, of in by_queue.items()}
        for way in islice(_ways(by_queue, least, own, late), _WAYS):
            yield Admitted(apart | way.items, way.next)

    def guesses(self, translated: Translated, heads: Mapping[str, str]) -> Iterator[Guess]:
        """``heads``: the ask that heads a queue, where that is known."""
        own = translated.asks[self._ask]
        others = [ask for ask in translated.asks.values() if ask.queue != own.queue and _considered(ask)]
        known = {
            queue: translated.asks[name]
            for queue, name in heads.items()
            if name in translated.asks and queue != own.queue
        }
        waiting = {
            translated.asks[name].queue: translated.asks[name]
            for name in reversed(self._waiting)
            if name in translated.asks
        }
        waiting.pop(own.queue, None)
        acting = {ask.queue: ask for ask in others if ask.id in self._near} | known
        pending = {ask.queue: ask for ask in others if ask.kueue is not None and ask.kueue.preemption_pending}
        sticky = {ask.queue: ask for ask in sorted(others, key=self._since) if ask.id in self._sticky}
        rest = [ask for ask in others if ask.queue not in known]
        guesses = [
            list((pending | sticky | waiting | acting).values()), list((pending | sticky | acting).values()),
            list((waiting | known).values()), list((pending | acting).values()), list(acting.values()),
            [*rest, *known.values()], list(known.values()), list[Ask](),
        ]  # fmt: skip
        distinct = {tuple(ask.id for ask in of): of for of in guesses}
        yield from self._with_scans(translated, own, list(distinct.values()))

    def denies(self, others: Iterable[Decision], gone: Collection[str]) -> bool:
        """Whether something that a cycle would have done for its other heads was not seen to happen: then it was
        another cycle. ``gone``: who is evicted already."""
        for decision in others:
            if decision.outcome == "admit" and decision.ask not in self._got:
                return True
            victims = {victim.workload for victim in decision.victims}.difference(gone)
            if decision.outcome == "preempt" and not victims <= self._evicted.get(decision.ask, set()):
                return True
        return False

    def _since(self, ask: Ask) -> tuple[int, int]:
        return self._sticky.get(ask.id, (-1, 0))

    def _with_scans(self, translated: Translated, own: Ask, heads: list[list[Ask]]) -> Iterator[Guess]:
        """From the first flavor, and from where the ask's scan can have stopped, or that of another head."""
        for of in heads:
            yield Guess([own, *of], "cycle")
        for scan in _scans(translated, own) if self._goes_on(self._ask) else ():
            for of in heads:
                yield Guess([_from(own, scan), *of], "cycle", ("flavor_scan",))
        for other in heads[0]:
            for scan in _scans(translated, other) if self._goes_on(other.id) else ():
                rest = [_from(head, scan) if head is other else head for head in heads[0]]
                yield Guess([own, *rest], "cycle", ("flavor_scan",))

    def _goes_on(self, ask: str) -> bool:
        """Whether the scan of an ask's flavors can have stopped somewhere: Kueue has looked at it before."""
        space, _, name = ask.rpartition("/")
        item = self._rewind.items.get("Workload", {}).get((space, name))
        return item is not None and nominated(item)


def ask_id(engine: EngineName, by: str, rewind: Rewind) -> str | None:
    """What the ask is called that was evicted for, which may be gone since."""
    if WORK[engine][0] == "PodGroup":  # the name, as it is
        return by
    key = rewind.preemptor(by)
    return None if key is None else id_of(key)


def _others(engine: EngineName, by: str, first: Eviction, rewind: Rewind) -> Iterator[str]:
    """Asks that others were evicted for in what may be the same cycle."""
    uids = dict.fromkeys(
        eviction.seen.by for eviction in rewind.evictions
        if eviction.seen.by not in ("", by) and abs(eviction.heard - first.heard) <= TOGETHER_SECONDS
    )  # fmt: skip
    names = (ask_id(engine, uid, rewind) for uid in uids)
    yield from (name for name in names if name is not None)


def _evicted(engine: EngineName, first: Eviction, rewind: Rewind) -> dict[str, set[str]]:
    """Who was evicted in what may be the same cycle, or written down late, by the ask that it was for."""
    victims: dict[str, set[str]] = {}
    names: dict[str, str | None] = {}
    for eviction in rewind.evictions:
        if eviction.seen.by and abs(eviction.heard - first.heard) <= _LATE_SECONDS:
            if eviction.seen.by not in names:
                names[eviction.seen.by] = ask_id(engine, eviction.seen.by, rewind)
            victims.setdefault(names[eviction.seen.by] or "", set()).add(id_of(eviction.seen.victim))
    return victims


def _waiting(rewind: Rewind) -> Iterator[str]:
    """Workloads of which it was written just after the cycle that they wait, in that order."""
    yield from (id_of(change.key) for change in rewind.undone(TOGETHER_SECONDS) if told_to_wait(change))


def told_to_wait(change: Change) -> bool:
    """Whether a cycle has ended with this: it says of a Workload that waited before why it does now."""
    if change.kind != "Workload" or change.old is None or change.new is None or reserves(change.old):
        return False
    said = condition(change.new, "QuotaReserved", "False")
    return said is not None and said.get("reason") not in _HELD and said != condition(change.old, "QuotaReserved", None)


def _until(item: Item, first: Eviction, *, timed: bool) -> bool:
    """Whether Kueue admitted it no later than it evicted, in whole seconds, which is all that it says. ``timed``: it
    has to say so."""
    admitted = _admitted_at(item)
    return not timed if admitted is None or first.seen.at is None else admitted <= first.seen.at


def _before(item: Item, first: Eviction) -> bool:
    """Whether Kueue says that it admitted it in an earlier second."""
    admitted = _admitted_at(item)
    return admitted is not None and first.seen.at is not None and admitted < first.seen.at


def _admitted_at(item: Item) -> datetime | None:
    return instant((condition(item, "QuotaReserved") or {}).get("lastTransitionTime"))


def _turn(item: Item, ask: Ask) -> tuple[str, int, str, str]:
    """The order in which the workloads of a queue are admitted: by the second, then as the queue has them."""
    reserved = condition(item, "QuotaReserved") or {}
    created = "" if ask.created_at is None else ask.created_at.isoformat()
    return str(reserved.get("lastTransitionTime") or ""), -(ask.priority or 0), created, ask.id


def _beside(configuration: Configuration, queue: str) -> set[str]:
    """The queues of one tree with it."""
    parents = {other.name: other.parent for other in configuration.queues}

    def root(name: str) -> str:
        seen = {name}
        while (above := parents.get(name)) is not None and above not in seen:
            name = above
            seen.add(name)
        return name

    own = root(queue)
    return {name for name in parents if root(name) == own}


def _ways(
    by_queue: Mapping[str, Sequence[Key]], least: Mapping[str, int], own: str, late: Mapping[Key, Item]
) -> Iterator[Admitted]:
    """Of each queue the first few admitted before, ``least`` of them for certain, and the next as its head, or not:
    first those in which cycles had a head of every queue."""
    queues = list(by_queue)
    most = max(map(len, by_queue.values()), default=0)
    together = [tuple(max(least[queue], min(n, len(by_queue[queue]))) for queue in queues) for n in range(most, -1, -1)]
    every = product(*(range(len(by_queue[queue]), least[queue] - 1, -1) for queue in queues))
    for counts in dict.fromkeys((*together, *islice(every, 4 * _WAYS))):
        before = {key: late[key] for queue, n in zip(queues, counts, strict=True) for key in by_queue[queue][:n]}
        heads = {
            queue: id_of(by_queue[queue][n]) for queue, n in zip(queues, counts, strict=True)
            if queue != own and n < len(by_queue[queue])
        }  # fmt: skip
        yield Admitted(before, heads)


def _from(ask: Ask, scan: FlavorScan) -> Ask:
    return structs.replace(ask, kueue=structs.replace(ask.kueue or KueueAsk(), flavor_scan=scan))


def _considered(ask: Ask) -> bool:
    return ask.kueue is None or ask.kueue.inadmissible is None


def _scans(translated: Translated, ask: Ask) -> list[FlavorScan]:
    """Where the scan of its flavors can have stopped before the last one, in every group of its queue."""
    queue = next((candidate for candidate in translated.configuration.queues if candidate.name == ask.queue), None)
    groups = _groups(queue)
    places: list[list[tuple[str, list[str], int]]] = []
    for task in ask.tasks:
        for resources, flavors in groups:
            asked = [resource for resource in task.requests if resource in resources]
            if asked and flavors > 1:
                places.append([(task.name, asked, place) for place in (*range(flavors - 1), -1)])
    scans: list[FlavorScan] = []
    for chosen in product(*places):
        if all(place == -1 for _, _, place in chosen):
            continue
        if len(scans) == _SCANS:
            break
        stopped: dict[str, dict[str, int]] = {}
        for task, resources, place in chosen:
            stopped.setdefault(task, {}).update(dict.fromkeys(resources, place))
        scans.append(FlavorScan(flavors=stopped))
    return scans


def _groups(queue: Queue | None) -> list[tuple[list[str], int]]:
    """The resources of each group, and how many flavors it has."""
    listed = (queue.resource_groups or ()) if queue is not None else ()
    return [(group.resources, len(group.flavors)) for group in listed]
