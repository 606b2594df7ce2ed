"""What the heads of a cycle have booked so far, and who stops for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from app.solver.engines.kueue.decide.nomination import Nomination
from app.solver.engines.kueue.decide.overlay import Overlay, Target

T = TypeVar("T")
Fits = Literal["yes", "no", "nodes"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What one head booked in its queue, steps by flavor-resource, and who stops for it."""

    ask: str
    queue: int
    amounts: tuple[tuple[int, int], ...]
    victims: tuple[int, ...] = ()


class Books:
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
        state = self.overlay.state
        self.entries.append(Entry(head.ask.id, queue, request, tuple(workload for workload, _ in head.targets)))
        self._take_nodes(head)
        for workload, _ in head.targets:
            if workload not in self.victims:
                self.victims.add(workload)
                self._without.remove(int(state.queue[workload]), state.amounts(workload))
                if self._room_without is not None:
                    self._room_without.add(self._room_without.rooms.used_by(state.workloads[workload]), -1)

    def _take_nodes(self, head: Nomination) -> None:
        for room in (self.overlay.room, self._room_without):
            if room is not None:
                room.add(room.rooms.used_at(head.preemptor.pod_sets, head.places))

    def reserve(self, head: Nomination) -> None:
        """The head keeps its capacity from later heads although nobody stops for it."""
        queue = head.preemptor.queue
        usage = self.overlay.usage
        self._take_nodes(head)
        amounts = reservation(self.overlay, head)
        self.entries.append(Entry(head.ask.id, queue, tuple(amounts)))
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
