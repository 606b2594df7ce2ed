"""What an ask is given: flavors, how well they suit it, who stops for it; what the heads of a cycle have booked."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, NamedTuple, TypeVar

from app.solver.engines.kueue.overlay import Overlay, Preemptor
from app.solver.engines.kueue.topology.room import Misfit, Place, PodSets
from app.solver.model.kueue import FlavorFungibility
from app.solver.model.state import Ask

Reason = Literal["InClusterQueue", "InCohortReclamation", "InCohortReclaimWhileBorrowing", "InCohortFairSharing"]
Target = tuple[int, Reason]
"""(workload index, reason)."""


class Fit(IntEnum):
    """Ascending by preference. NO_CANDIDATES: quota would allow it, but the simulated preemption found nobody."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


class Mode(IntEnum):
    """What an assignment comes to, for the outside."""

    NO_FIT = 0
    PREEMPT = 1
    FIT = 2


class Suit(NamedTuple):
    """``level``: how far up quota comes from (0: the queue itself)."""

    fit: Fit
    level: int


WORST = Suit(Fit.NO_FIT, 2**31)
BEST = Suit(Fit.FIT, 0)


def mode_of(fit: Fit) -> Mode:
    """The outside view of one resource."""
    return _MODES[fit]


_MODES = (Mode.NO_FIT, Mode.PREEMPT, Mode.PREEMPT, Mode.PREEMPT, Mode.FIT)


def preferred(a: Suit, b: Suit, rules: FlavorFungibility) -> bool:
    """Whether ``a`` is strictly better than ``b``."""
    if a.fit is Fit.NO_FIT or b.fit is Fit.NO_FIT:
        return a.fit is not Fit.NO_FIT
    if (a.fit is Fit.NO_CANDIDATES) != (b.fit is Fit.NO_CANDIDATES):
        return b.fit is Fit.NO_CANDIDATES
    if rules.preference == "PreemptionOverBorrowing":
        return (-a.level, a.fit) > (-b.level, b.fit)
    return (a.fit, -a.level) > (b.fit, -b.level)


def stops_search(suit: Suit, rules: FlavorFungibility) -> bool:
    """Whether no later flavor is looked at (Kueue: shouldTryNextFlavor, negated)."""
    if suit.fit <= Fit.NO_CANDIDATES:
        return False
    if suit.fit in (Fit.PREEMPT, Fit.RECLAIM) and rules.when_can_preempt == "TryNextFlavor":
        return False
    return suit.level == 0 or rules.when_can_borrow != "TryNextFlavor"


class Choice(NamedTuple):
    """The flavor that one resource of one pod set takes."""

    flavor: str
    mode: Mode
    level: int


@dataclass(slots=True)
class Assignment:
    """``choices``: by task, by resource; ``usage``: steps by flavor-resource index, of all pod sets, a request of 0
    among them; ``level``: the highest borrowing level; ``mode``: the worst over pod sets; ``lacking``: what kept a pod
    set without flavors; ``scan``: by task, by resource, the place of the flavor at which the scan of its group stopped,
    -1 where that was the last; ``pod_sets``: those that a topology has a say on, with their flavors; ``places``:
    where their pods go as things are, where they all fit; ``misfit``: the one that does not, where quota would do."""

    counts: list[int]
    choices: dict[str, dict[str, Choice]] = field(default_factory=dict)
    usage: dict[int, int] = field(default_factory=dict)
    level: int = 0
    mode: Mode = Mode.FIT
    lacking: list[str] = field(default_factory=list)
    scan: dict[str, dict[str, int]] = field(default_factory=dict)
    pod_sets: PodSets = ()
    places: dict[str, Place] = field(default_factory=dict)
    misfit: Misfit | None = None

    def request(self) -> tuple[tuple[int, int], ...]:
        """Usage as a Preemptor's request: what is asked for, without what is asked for 0 times (Kueue:
        TotalRequestsFor)."""
        return tuple(sorted((fr, amount) for fr, amount in self.usage.items() if amount))

    def preempt(self, tasks: Iterable[str]) -> None:
        """These pod sets need preemption for everything that they are given."""
        for task in tasks:
            self.choices[task] = {r: c._replace(mode=Mode.PREEMPT) for r, c in self.choices[task].items()}
        self.mode = Mode.PREEMPT

    @property
    def unfinished(self) -> bool:
        """Whether some scan stopped before its last flavor (Kueue: PendingFlavors)."""
        return any(place >= 0 for of in self.scan.values() for place in of.values())

    def flavors(self) -> dict[str, dict[str, str]]:
        """As the wire shows it."""
        return {task: {r: c.flavor for r, c in of.items()} for task, of in self.choices.items()}


@dataclass(slots=True, eq=False)
class Nomination:
    """``preemptor.request`` is what the assignment asks for; ``seeker`` is the same ask as the search for victims sees
    it, without "pods". ``contested``: flavor-resources of the request that need preemption. ``targets``: who stops;
    none in mode PREEMPT when nobody may. ``places``: where the pods go, once the targets have stopped; with nobody to
    stop where they would go in an empty cluster. ``pinned``: the ask named its flavors. ``elsewhere``: the same
    nomination, victims searched for alike, on another overlay, with nothing told of it."""

    ask: Ask
    preemptor: Preemptor
    seeker: Preemptor
    assignment: Assignment
    contested: list[int]
    targets: list[Target]
    places: dict[str, Place]
    pinned: bool
    elsewhere: Callable[[Overlay], "Nomination"]


T = TypeVar("T")
Fits = Literal["yes", "no", "nodes"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What one head booked in its queue, steps by flavor-resource, on which leaves of which flavor, and who stops for
    it."""

    ask: str
    queue: int
    amounts: tuple[tuple[int, int], ...]
    nodes: frozenset[tuple[str, int]]
    victims: tuple[int, ...] = ()


class CycleUsage:
    """``overlay``: usage with everything booked and every victim still running, as Kueue keeps it; ``victims``: those
    of all heads so far; ``entries``: what each head booked, in order.

    Every head's fit is tested with all victims gone. That second view of usage is kept up to date beside the first,
    so that a cycle costs what its heads change, not heads times victims. To be made once all heads are nominated."""

    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay
        self.victims: set[int] = set()
        self.entries: list[Entry] = []
        self._without = overlay.usage.copy()
        self._room_without = None if overlay.room is None else overlay.room.copy()
        self._uneven = False

    def overlaps(self, targets: Sequence[Target]) -> bool:
        """Whether somebody among ``targets`` stops for an earlier head already."""
        return any(workload in self.victims for workload, _ in targets)

    def fits(self, head: Nomination) -> Fits:
        """Whether the head fits once all victims so far, and its own, have stopped: ``nodes``: quota is left, and its
        places are taken."""
        return self.without(head, lambda: self._fits(head))

    def _fits(self, head: Nomination) -> Fits:
        if not self.overlay.usage.fits(head.preemptor.queue, head.preemptor.request):
            return "no"
        room = self.overlay.room
        if room is None or room.holds(head.preemptor.pod_sets, head.places):
            return "yes"
        return "nodes"

    def without(self, head: Nomination, work: Callable[[], T]) -> T:
        """Do ``work`` on the overlay as it would be with every victim so far, and the head's own, gone."""
        own = [workload for workload, _ in head.targets if workload not in self.victims]

        def with_own_gone() -> T:
            for workload in own:
                self.overlay.remove(workload)
            done = work()
            for workload in own:
                self.overlay.restore(workload)
            return done

        return self.without_victims(with_own_gone)

    def without_victims(self, work: Callable[[], T]) -> T:
        """Do ``work`` on the overlay as it would be with every victim so far gone, usage and all."""
        overlay = self.overlay
        if self._uneven:
            overlay.evict(self.victims)
            done = work()
            overlay.revive(self.victims)
            return done
        usage, room, gone = overlay.usage, overlay.room, overlay.gone
        overlay.usage, overlay.room, overlay.gone = self._without, self._room_without, self.victims
        done = work()
        overlay.usage, overlay.room, overlay.gone = usage, room, gone
        return done

    def book(self, head: Nomination) -> None:
        """The head takes what it asked for, and its targets stop."""
        queue, request = head.preemptor.queue, head.preemptor.request
        self.overlay.usage.add(queue, request)
        self._without.add(queue, request)
        state, stop = self.overlay.state, tuple(workload for workload, _ in head.targets)
        self.entries.append(Entry(head.ask.id, queue, request, self._take_nodes(head), stop))
        for workload, _ in head.targets:
            if workload not in self.victims:
                self.victims.add(workload)
                self._without.remove(int(state.queue[workload]), state.amounts(workload))
                if self._room_without is not None:
                    self._room_without.add(self._room_without.rooms.used_by(state.workloads[workload]), -1)

    def _take_nodes(self, head: Nomination) -> frozenset[tuple[str, int]]:
        """Flavors and leaves on which it takes something."""
        room = self.overlay.room
        if room is None or self._room_without is None:
            return frozenset()
        used = room.rooms.used_at(head.preemptor.pod_sets, head.places)
        room.add(used)
        self._room_without.add(used)
        return frozenset(used)

    def reserve(self, head: Nomination) -> None:
        """The head keeps its capacity from later heads although nobody stops for it."""
        queue = head.preemptor.queue
        usage = self.overlay.usage
        amounts = reservation(self.overlay, head)
        self.entries.append(Entry(head.ask.id, queue, tuple(amounts), self._take_nodes(head)))
        for fr, amount in amounts:
            if amount >= 0:
                usage.add(queue, ((fr, amount),))
                self._without.add(queue, ((fr, amount),))
            else:
                # A negative booking changes the queue's own usage and never reaches its cohort (Kueue: addUsage). From
                # here on a cohort's usage is no function of its children's, so the second view is worked out each time.
                usage.used[usage.quotas.cells[queue][fr]] += amount
                self._uneven = True


def reservation(overlay: Overlay, head: Nomination) -> list[tuple[int, int]]:
    """What a head without victims books, by flavor-resource: within nominal quota what is left of it, beyond it all
    up to the borrowing limit. The latter is negative where usage is past the limit already."""
    usage = overlay.usage
    quotas, cells = usage.quotas, usage.quotas.cells[head.preemptor.queue]
    out: list[tuple[int, int]] = []
    for fr, amount in sorted(head.assignment.usage.items()):
        cell = cells[fr]
        left, limit = quotas.nominal[cell] - usage.used[cell], quotas.borrowing[cell]
        if head.assignment.level == 0:
            out.append((fr, max(0, min(amount, left))))
        else:
            out.append((fr, amount if limit is None else min(amount, left + limit)))
    return out
