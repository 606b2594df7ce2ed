"""Goes ahead of the compiled state in a run that nobody watches: free room, usage and reservations, kept up to date
change by change; and what waits, in lines of asks that find room, or don't, together.

Source: ``ask``, whose rules these are.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Hashable

import numpy as np
from msgspec.structs import replace

from app.solver import rounds
from app.solver.engines.yunikorn.candidates import among_feasible, fits
from app.solver.engines.yunikorn.guarantees import Bounds, over_limit_of_nothing
from app.solver.engines.yunikorn.overlay import CHECK_EVERY, Effect, Overlay, Request, Turn
from app.solver.engines.yunikorn.state import WIDEST, CompiledState, steps_of
from app.solver.engines.yunikorn.update import with_tasks
from app.solver.model import yunikorn as wire
from app.solver.model.base import micros, to_datetime
from app.solver.model.state import Ask, Reservation, Task, Workload

_MOST = 4096
"""So many requests are known by what they come to, and so many nodes have changed."""
_FEW = 8
"""So many nodes are looked at one by one."""
_LARGE = 4096
"""Of more nodes nobody remembers what each of many kinds of asks finds there."""
_FAR = 16
"""So many members for each that comes are put in order again with them."""


class Ahead(rounds.Ahead[CompiledState]):
    """See ``Rounds.ahead``. ``overlay``: of now; its state only says what does not change with workloads. ``grown``:
    rises with whatever could make room for an ask that found none, ``moves`` with any change; ``in_vain``: by queue,
    how many looks were. ``_expected``: by job and task what starts in the last cycle, as ``overlay`` has it already."""

    def __init__(self, loaded: CompiledState) -> None:
        self.overlay = Overlay(loaded).alone()
        self.grown, self.moves, self.in_vain = 0, 0, defaultdict[int, int](int)
        self.running = {workload.id: workload for workload in loaded.workloads}
        self._state = self._tasks = loaded
        self._before = dict[str, Workload | None]()
        self._reservations, self._asked = loaded.reservations, loaded.asked
        self._effects: dict[Hashable, tuple[Effect, object]] = {}
        self._expected: dict[tuple[str, str], tuple[int, Effect]] = {}

    def moved(self, name: str, after: Workload | None) -> bool:
        """The workload is ``after`` now, or gone. False where it names what the state has no column for."""
        self.moves += 1
        before = self.running.pop(name, None)
        if self._before.setdefault(name, before) is None and after is None:
            del self._before[name]
        left = [] if before is None else before.tasks
        came = [] if after is None else after.tasks
        if before is not None and after is not None and before.queue == after.queue:
            if (size := len(left)) < len(came) and left == came[:size]:
                left, came = [], came[size:]
            stay = set(map(id, left)).intersection(map(id, came))
            left, came = [t for t in left if id(t) not in stay], [t for t in came if id(t) not in stay]
        if before is not None and left:
            self.grown += 1
            if after is not None and before.queue == after.queue and self._mark(after.queue, left, came):
                came = []
            else:
                for task in left:
                    self._count(before, task, -1)
        if after is not None:
            self.running[name] = after
            if not all(self._count(after, task, 1) for task in came):
                return False
        return self._state.room + self._asked < WIDEST

    def _mark(self, queue: str, left: list[Task], came: list[Task]) -> bool:
        """Whether tasks stay where they are, and are being preempted from now on."""
        effects: list[Effect] = []
        if len(left) != len(came):
            return False
        for task, marked in zip(left, came, strict=True):
            alike = task.requests is marked.requests and task.count == marked.count and task.node == marked.node
            effect = self._effect(queue, marked) if alike and task.state != marked.state == "preempted" else None
            if effect is None:
                return False
            effects.append(effect)
        for effect in effects:
            self.overlay.mark(effect)
        return True

    def tasks(self) -> CompiledState:
        """The state with what runs now, but for what it sums up."""
        if self._before:
            moves = [(was, self.running.get(name)) for name, was in self._before.items()]
            self._tasks, self._before = with_tasks(self._tasks, moves), {}
        return self._tasks

    def expect(self, job: str, queue: str, task: Task, node: int) -> bool:
        """The task starts there in a cycle that is about to be carried out. False: that can't be said."""
        if (effect := self._effect(queue, task)) is None:
            return False
        self._expected[job, task.name] = node, effect
        self.overlay.run(effect, node, 1, leaving=False)
        return True

    def settle(self) -> None:
        """Whoever is still expected does not come."""
        for node, effect in self._expected.values():
            self.overlay.run(effect, node, -1, leaving=False)
        self._expected.clear()
        if len(self.overlay.touched) > _MOST:
            self.overlay.touched = []

    def _count(self, workload: Workload, task: Task, sign: int) -> bool:
        """See ``moved``."""
        if (effect := self._effect(workload.queue, task)) is None:
            return False
        self._asked += sign * effect.asked
        node = None if task.node is None else self._state.node_index[task.node]
        if sign > 0 and self._expected:
            expected = self._expected.get((workload.id, task.name))
            if expected is not None and expected[0] == node and task.state != "preempted":
                del self._expected[workload.id, task.name]
                return True
        self.overlay.run(effect, node, sign, leaving=task.state == "preempted")
        return True

    def _effect(self, queue: str, task: Task) -> Effect | None:
        """None: the task names what the state has no column for."""
        known, requests = self._effects, task.requests
        if (effect := known.get((queue, id(requests), task.count))) is not None:
            return effect[0]
        if not self._state.resources.index.keys() >= requests.keys():
            return None
        if len(known) >= _MOST:
            known.clear()
        key = tuple(requests.items()), task.count
        if (alike := known.get((queue, key))) is None:
            amounts, index = steps_of(key, self._state.resources), self._state.configuration.tree.index
            alike = known[queue, key] = self.overlay.effect(index[queue], amounts), None
        known[queue, id(requests), task.count] = alike[0], requests  # as long as it is there, nothing else is called so
        return alike[0]

    def reserve(self, reservations: list[Reservation]) -> None:
        """These are all there are now."""
        if reservations != self._reservations:
            self.grown, self.moves = self.grown + 1, self.moves + 1
            self.overlay.reserve(reservations)
            self._reservations = reservations


class Look:
    """Of those who looked for victims together: when they last did (None: never), and ``tried``: at which version;
    ``cycle``: how many had been carried out in ``Seats`` when they came, or then; ``left``: whether some have left."""

    __slots__ = ("cycle", "last", "left", "members", "tried")

    def __init__(self, last: int | None, tried: int | None, cycle: int, members: "list[Member] | None" = None) -> None:
        self.last, self.tried, self.cycle, self.left = last, tried, cycle, False
        self.members: list[Member] = [] if members is None else members

    def waits(self, version: int) -> bool:
        """Whether time lets some of them look again at this version."""
        if self.left:
            return any(of.line is not None and of.look.tried != version for _, of in self.members)
        return self.tried != version


class Waiting:
    """What is asked for of a job by one name. ``ask``: as it is now; ``sent``: as rounds ask for it, while its job runs
    and while it doesn't, with when it had last looked; ``young``: when its queue's delay is over; ``done``: it never
    looks for victims again; ``retry``: when time alone lets it try again. In microseconds. ``line``: in ``Seats``, None
    where it has no place, ``turn``: there; ``request``: see ``Seats.request``."""

    __slots__ = ("ask", "done", "job", "line", "look", "priority", "request", "retry", "sent", "turn", "young")
    turn: Turn

    def __init__(self, job: str, ask: Ask, delay: int) -> None:
        self.job = job
        self.retry: int | None = None
        self.line: Line | None = None
        self.request: Request | None = None
        self.look = Look(None, None, 0)
        self.priority = 0
        self.delayed(ask, delay)
        self.told(ask)

    def delayed(self, ask: Ask, delay: int) -> None:
        """``delay``: of its queue."""
        created = ask.tasks[0].created_at or ask.created_at
        self.young = 0 if created is None else micros(created) + delay

    def told(self, ask: Ask) -> None:
        """The ask is another from now on."""
        self.ask = ask
        self.sent: dict[bool, tuple[int | None, Ask]] = {}
        block, last = ask.yunikorn, None
        self.done = ask.preemption_policy == "Never"
        if block is not None:
            last = None if block.last_preemption_check_at is None else micros(block.last_preemption_check_at)
            self.done = self.done or block.triggered_preemption
        self.look.left = True
        self.look = Look(last, self.look.tried, self.look.cycle)

    def wait(self, now: int, last: int | None, begun: int, version: int) -> None:
        """It goes on waiting after a cycle begun at version ``begun``, in which it was asked for as one that had last
        looked at ``last``: it tries again once its queue's delay is over, or 15 seconds have passed since its last try
        and something has changed since."""
        if self.look.last == now:
            self.look.tried = begun
        self.retry = None
        if self.done:
            return
        if self.young > now:
            self.retry = self.young
        elif last is not None and last + CHECK_EVERY > now and self.look.tried != version:
            self.retry = last + CHECK_EVERY

    def asked(self) -> Ask:
        """The ask, and when it last looked for victims."""
        block = self.ask.yunikorn or wire.Ask()
        last = None if self.look.last is None else to_datetime(self.look.last)
        if block.last_preemption_check_at != last:
            self.ask = replace(self.ask, yunikorn=replace(block, last_preemption_check_at=last))
        return self.ask


Member = tuple[Turn, Waiting]
Since = tuple[int | str, ...]
"""A turn, from which on; one with more to it is after that turn, and before every other."""


class _Room:
    """``ask.place`` for asks that are alike, hold no node and require none, of which ``request`` is one: it follows the
    nodes that are touched. ``_seen``: how many of ``_touched`` it knows; ``_use``: infinite where there is no room."""

    __slots__ = ("_nothing", "_places", "_request", "_seen", "_touched", "_use")

    def __init__(self, state: CompiledState, request: Request) -> None:
        self._request, self._seen, self._touched, self._use = request, 0, list[int](), np.zeros(0)
        self._nothing = state.configuration.rules.counts_nothing and len(request.needs) < len(request.amounts)
        self._places = among_feasible(request, state.schedulable)

    def node(self, overlay: Overlay) -> int | None:
        """Where one of them runs now."""
        if self._nothing and over_limit_of_nothing(overlay, self._request):
            return None
        touched, use = overlay.touched, self._use
        if touched is not self._touched or len(touched) - self._seen > _FEW:
            room = fits(overlay, self._request) & self._places
            use = self._use = np.where(room, overlay.use(), np.inf)
        else:
            for node in touched[self._seen :]:
                use[node] = overlay.use()[node] if self._fits(overlay, node) else np.inf
        self._touched, self._seen = touched, len(touched)
        if len(use) > _LARGE:
            self._touched, self._use = [], np.zeros(0)
        if overlay.held:
            use = use.copy()
            use[list(overlay.held)] = np.inf
        first = int(use.argmin()) if len(use) else None
        if first is None or use[first] == np.inf:
            return None
        if overlay.state.in_order:
            return first
        least = np.flatnonzero(use == use[first])
        return int(least[overlay.state.node_rank[least].argmin()])

    def _fits(self, overlay: Overlay, node: int) -> bool:
        free = overlay.free[node]
        return bool(self._places[node]) and all(
            r < len(free) and free[r] >= amount for r, amount in self._request.needs.items()
        )


class Line:
    """Asks that are ``alike``, in the order of cycles; of them ``awake``: those that look for victims as soon as there
    is no room, ``look``: theirs, where they are all of its members and the same list. ``vain``: how far room had
    ``grown`` when last none was there."""

    __slots__ = ("awake", "bounds", "look", "members", "request", "room", "vain")

    def __init__(self, state: CompiledState, request: Request) -> None:
        self.request, self.bounds, self.room = request, Bounds(state, request), _Room(state, request)
        self.members: list[Member] = []
        self.awake: list[Member] = []
        self.look: Look | None = None
        self.vain = -1

    def first(self, place: int, but: frozenset[str]) -> int | None:
        """The place of the first one from a place on, without those named ``but``."""
        members = self.members
        while place < len(members) and members[place][1].ask.id in but:
            place += 1
        return place if place < len(members) else None

    def may_look(self, since: Since, before: Turn | None, most: int) -> list[Member]:
        """Those awake from a turn on and before another, so many at most. Not to be changed."""
        awake = self.awake
        start = bisect_left(awake, (since,)) if since else 0
        end = len(awake) if before is None else bisect_left(awake, (before,), start)
        return awake if start == 0 and len(awake) == end <= most else awake[start : min(end, start + most)]

    def wake(self, members: list[Member]) -> None:
        """These look as soon as there is no room."""
        if self.look is not None:
            self.awake, self.look = list(self.awake), None
        merge(self.awake, members)

    def leave(self, turns: list[Turn]) -> None:
        """Those whose turns these are, in order, are no longer in line."""
        for among in (self.members, self.awake):
            first = bisect_left(among, (turns[0],))
            last = first + len(turns)
            if [turn for turn, _ in among[first:last]] == turns:  # of those awake others may be between
                del among[first:last]
                continue
            for turn in turns:
                remove_turn(among, turn)


def merge(into: list[Member], members: list[Member]) -> None:
    """In the order of cycles."""
    members.sort()
    first = bisect_left(into, members[0])
    last = bisect_left(into, members[-1], first)
    if last - first > _FAR * len(members):
        for member in members:
            insort(into, member)
    else:
        into[first:last] = sorted([*into[first:last], *members]) if first < last else members


def remove_turn(members: list[Member], turn: Turn) -> None:
    place = bisect_left(members, (turn,))
    if place < len(members) and members[place][0] == turn:
        del members[place]
