"""Goes ahead of the compiled state in a run that nobody watches: free room, usage and reservations, kept up to date
change by change; and what cycles come to, told from these. Who looks for victims without a claim is told at one look.

Source: ``ask``, whose rules these are.
"""

from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable
from heapq import heapify, heappop, heappush
from itertools import chain, islice
from operator import itemgetter
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from app.solver import rounds
from app.solver.engines.yunikorn.ask import ATTEMPTS, Context, apply, look_for_victims, may_find, place
from app.solver.engines.yunikorn.candidates import SILENT, Outcome
from app.solver.engines.yunikorn.configuration import Amounts
from app.solver.engines.yunikorn.guarantees import claim_of, has_headroom
from app.solver.engines.yunikorn.overlay import CHECK_EVERY, Overlay, Request, Trial, Turn, ask_problems, asked_of
from app.solver.engines.yunikorn.state import WIDEST, CompiledState, ShapeKey, steps_of
from app.solver.engines.yunikorn.update import with_tasks
from app.solver.model import yunikorn as wire
from app.solver.model.base import micros, to_datetime
from app.solver.model.state import Ask, Reservation, Task, Workload

_IN_VAIN = 16
"""After so many looks of a queue it is asked first whether there may be anybody, until that was asked in vain too."""
_SHAPES = 4096
"""So many requests are known by what they come to."""


class Ahead(rounds.Ahead[CompiledState]):
    """See ``Rounds.ahead``. ``overlay``: of now; its state only says what does not change with workloads. ``grown``:
    rises with whatever could make room for an ask that found none, ``moves`` with any change; ``in_vain``: by queue,
    how many looks were."""

    def __init__(self, loaded: CompiledState) -> None:
        self.overlay = Overlay(loaded).alone()
        self.grown, self.moves, self.in_vain = 0, 0, defaultdict[int, int](int)
        self.running = {workload.id: workload for workload in loaded.workloads}
        self._state = self._tasks = loaded
        self._before = dict[str, Workload | None]()
        self._reservations, self._asked = loaded.reservations, loaded.asked
        self._steps: dict[ShapeKey, tuple[Amounts, int]] = {}

    def moved(self, name: str, after: Workload | None) -> bool:
        """The workload is ``after`` now, or gone. False where it names what the state has no column for."""
        self.moves += 1
        before = self.running.pop(name, None)
        if self._before.setdefault(name, before) is None and after is None:
            del self._before[name]
        left = [] if before is None else before.tasks
        came = [] if after is None else after.tasks
        if before is not None and after is not None and before.queue == after.queue:
            stay = set(map(id, left)).intersection(map(id, came))
            left, came = [t for t in left if id(t) not in stay], [t for t in came if id(t) not in stay]
        if before is not None and left:
            self.grown += 1
            for task in left:
                self._count(before.queue, task, -1)
        if after is not None:
            self.running[name] = after
            if not all(self._count(after.queue, task, 1) for task in came):
                return False
        return self._state.room + self._asked < WIDEST

    def tasks(self) -> CompiledState:
        """The state with what runs now, but for what it sums up."""
        if self._before:
            moves = [(was, self.running.get(name)) for name, was in self._before.items()]
            self._tasks, self._before = with_tasks(self._tasks, moves), {}
        return self._tasks

    def _count(self, queue: str, task: Task, sign: int) -> bool:
        """See ``moved``."""
        state, key = self._state, (tuple(task.requests.items()), task.count)
        known = self._steps.get(key)
        if known is None:
            if not state.resources.index.keys() >= task.requests.keys():
                return False
            if len(self._steps) >= _SHAPES:
                self._steps.clear()
            amounts = steps_of(key, state.resources)
            known = self._steps[key] = amounts, sum(amounts.values())
        amounts, asked = known
        self._asked += sign * asked
        node = None if task.node is None else state.node_index[task.node]
        index, leaving = state.configuration.tree.index[queue], task.state == "preempted"
        self.overlay.run(index, node, amounts, sign, leaving=leaving)
        return True

    def reserve(self, reservations: list[Reservation]) -> None:
        """These are all there are now."""
        if reservations != self._reservations:
            self.grown, self.moves = self.grown + 1, self.moves + 1
            self.overlay.reserve(reservations)
            self._reservations = reservations


class Waiting:
    """What is asked for of a job by one name. ``ask``: as it is now; ``sent``: as rounds ask for it, while its job runs
    and while it doesn't; ``last``: when it last looked for victims, ``tried``: at which version; ``young``: when its
    queue's delay is over; ``done``: it never looks for victims again; ``retry``: when time alone lets it try again.
    In microseconds. ``seat``: its place in ``Seats``, None where it has none; ``cycle``: how many had been carried out
    there when it came, or when it last looked."""

    __slots__ = ("ask", "cycle", "done", "job", "last", "retry", "seat", "sent", "tried", "young")

    def __init__(self, job: str, ask: Ask, delay: int) -> None:
        self.job = job
        self.tried: int | None = None
        self.retry: int | None = None
        self.cycle = 0
        self.seat: _Seat | None = None
        self.delayed(ask, delay)
        self.told(ask)

    def delayed(self, ask: Ask, delay: int) -> None:
        """``delay``: of its queue."""
        created = ask.tasks[0].created_at or ask.created_at
        self.young = 0 if created is None else micros(created) + delay

    def told(self, ask: Ask) -> None:
        """The ask is another from now on."""
        self.ask = ask
        self.sent: dict[bool, Ask] = {}
        block = ask.yunikorn
        self.last, self.done = None, ask.preemption_policy == "Never"
        if block is not None:
            self.last = None if block.last_preemption_check_at is None else micros(block.last_preemption_check_at)
            self.done = self.done or block.triggered_preemption

    def wait(self, now: int, last: int | None, begun: int, version: int) -> None:
        """It goes on waiting after a cycle begun at version ``begun``, in which it was asked for as one that had last
        looked at ``last``: it tries again once its queue's delay is over, or 15 seconds have passed since its last try
        and something has changed since."""
        if self.last == now:
            self.tried = begun
        self.retry = None
        if self.done:
            return
        if self.young > now:
            self.retry = self.young
        elif last is not None and last + CHECK_EVERY > now and self.tried != version:
            self.retry = last + CHECK_EVERY

    def asked(self) -> Ask:
        """The ask, and when it last looked for victims."""
        block = self.ask.yunikorn or wire.Ask()
        last = None if self.last is None else to_datetime(self.last)
        if block.last_preemption_check_at != last:
            self.ask = replace(self.ask, yunikorn=replace(block, last_preemption_check_at=last))
        return self.ask


Member = tuple[Turn, Waiting]
Since = tuple[int | str, ...]
"""A turn, from which on; one with more to it is after that turn, and before every other."""


class _Line:
    """Asks that are ``alike``, in the order of cycles; of them ``awake``: those that look for victims as soon as there
    is no room. ``vain``: how far room had ``grown`` when last none was there."""

    __slots__ = ("awake", "members", "request", "vain")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.members: list[Member] = []
        self.awake: list[Member] = []
        self.vain = -1

    def first(self, since: Since, but: frozenset[str]) -> Member | None:
        """The first one from a turn on, without those named ``but``."""
        for member in islice(self.members, bisect_left(self.members, (since,)), None):
            if member[1].ask.id not in but:
                return member
        return None

    def may_look(self, since: Since, before: Turn | None, most: int) -> list[Member]:
        """Those awake from a turn on and before another, so many at most."""
        start = bisect_left(self.awake, (since,))
        end = len(self.awake) if before is None else bisect_left(self.awake, (before,), start)
        return self.awake[start : min(end, start + most)]

    def wake(self, members: list[Member]) -> None:
        """These look as soon as there is no room; in the order of cycles."""
        awake, first = self.awake, bisect_left(self.awake, members[0])
        last = bisect_left(awake, members[-1], first)
        awake[first:last] = sorted([*awake[first:last], *members]) if first < last else members

    def sleep(self, turn: Turn) -> None:
        """Whose turn this is looks no longer."""
        place = bisect_left(self.awake, (turn,))
        if place < len(self.awake) and self.awake[place][0] == turn:
            del self.awake[place]


_Kind = tuple[_Line, int]
"""Asks of a line, and of one priority."""


class _Seat(msgspec.Struct, eq=False):
    turn: Turn
    request: Request
    line: _Line


class PlainCycle(NamedTuple):
    """What a cycle comes to, in its order. ``starts``: who runs from now on, on which node; ``tried``: who looked for
    victims in vain, by line; ``evicting``: who evicts whom on which node; ``vain``: lines that have no room."""

    starts: list[tuple[Waiting, int]]
    tried: dict[_Line, list[Member]]
    evicting: list[tuple[Waiting, Outcome]]
    vain: list[_Line]


class Seats:
    """What waits, as plain cycles look at it. ``young``, ``resting``: those that may not look for victims before a
    time, for their queue's delay, and since they last did, together, in a line; and some that have left. ``rounds``:
    how many cycles were carried out; ``_verdicts``: what looks have shown since something moved, and when that was;
    ``_ready``: when a cycle is, and what it comes to, where that is known."""

    def __init__(self, ahead: Ahead) -> None:
        self.ahead = ahead
        self.rounds = self._now = 0
        self._verdicts = -1, set[_Line](), set[_Kind]()
        self._ready: tuple[int, PlainCycle | None] | None = None
        self._lines: dict[Hashable, _Line] = {}
        self._seated: dict[str, Waiting] = {}
        self._unsure: dict[str, Waiting] = {}
        self._odd: set[str] = set()
        self._young: list[tuple[int, Waiting]] = []
        self._resting = deque[tuple[int, list[Member]]]()

    def add_all(self, of: Iterable[Waiting], now: int) -> None:
        """They wait, as of ``now``. Raises QuantityError."""
        for waiting in sorted(of, key=_last):
            self._add(waiting, now)

    def _add(self, waiting: Waiting, now: int) -> None:
        state, ask = self.ahead.overlay.state, waiting.ask
        if next(iter(ask_problems(state, ask)), None) is not None:
            self._odd.add(ask.id)
            return
        sure = ask.priority is not None or ask.tasks[0].priority is not None
        turn, _, requests, *_ = asked_of(state, ask if sure else replace(ask, priority=0))
        request = requests[0]
        rests = waiting.last is not None and waiting.last + CHECK_EVERY > now
        rested = _last(waiting) + CHECK_EVERY
        earlier = bool(self._resting) and rested < self._resting[-1][0]
        strange = rests and (waiting.young > now or _last(waiting) > now or earlier)
        if strange or len(requests) > 1 or request.required is not None:
            self._odd.add(ask.id)
            return
        if not sure:
            self._unsure[ask.id] = waiting
        line = self._lines.get(request.alike)
        if line is None:
            line = self._lines[request.alike] = _Line(request)
        insort(line.members, (turn, waiting))
        waiting.seat, waiting.cycle = _Seat(turn, request, line), self.rounds
        self._seated[ask.id] = waiting
        if waiting.done:
            return
        if waiting.young > now:
            insort(self._young, (waiting.young, waiting), key=itemgetter(0))
        elif rests:
            self._resting.append((rested, [(turn, waiting)]))
        else:
            line.wake([(turn, waiting)])

    def turn(self, name: str) -> Turn:
        """Of a cycle."""
        seat = self._seated[name].seat
        assert seat is not None
        return seat.turn

    def looked(self, waiting: Waiting, now: int) -> None:
        """It looked for victims ``now``."""
        seat = waiting.seat
        if seat is not None:
            seat.line.sleep(seat.turn)
            waiting.cycle = self.rounds
            if not waiting.done:
                self._resting.append((now + CHECK_EVERY, [(seat.turn, waiting)]))

    def drop(self, waiting: Waiting) -> None:
        """It waits no longer."""
        name, seat = waiting.ask.id, waiting.seat
        self._odd.discard(name)
        if seat is None:
            return
        self._unsure.pop(name, None)
        del self._seated[name]
        seat.line.sleep(seat.turn)
        members = seat.line.members
        del members[bisect_left(members, (seat.turn,))]
        if not members:
            del self._lines[seat.line.request.alike]
        waiting.seat = None

    def in_vain(self, now: int) -> PlainCycle | None:
        """A cycle in which nobody starts and nobody has to go; None: it is none of these. Nothing has happened since
        the last one but that time has passed, nor does before that of ``now`` is asked for."""
        cycle = self.cycle(now)
        if cycle is not None and not (cycle.starts or cycle.evicting):
            return cycle
        self._ready = now, cycle
        return None

    def cycle(self, now: int) -> PlainCycle | None:
        """None: what it comes to is not plain."""
        ready, self._ready = self._ready, None
        return self._cycle(now) if ready is None or ready[0] != now else ready[1]

    def _cycle(self, now: int) -> PlainCycle | None:
        self.pass_time(now)
        if self._odd or any(_inherits(waiting, self.ahead.running) for waiting in self._unsure.values()):
            return None
        overlay, grown = self.ahead.overlay, self.ahead.grown
        trial, holders = Trial(overlay, self.ahead.tasks), overlay.holders()
        held: list[Member] = [(of.seat.turn, of) for name in holders if (of := self._seated.get(name)) and of.seat]
        if holders or self._verdicts[0] != self.ahead.moves:  # time alone may end what others hold
            self._verdicts = self.ahead.moves, set[_Line](), set[_Kind]()
        looks = _Looks(self._lines.values(), self.ahead, trial, now, {of.ask.id for _, of in held if not of.done})
        _, looks.claimless, looks.vain = self._verdicts
        starts, vain = list[tuple[Waiting, int]](), list[_Line]()
        fresh = [line.first((), holders) for line in self._lines.values() if line.vain != grown]
        todo: list[Member] = held + [first for first in fresh if first is not None]
        heapify(todo)
        while todo:
            turn, waiting = heappop(todo)
            assert waiting.seat is not None
            request, line, holds = waiting.seat.request, waiting.seat.line, waiting.ask.id in holders
            overlay = trial.now()
            node = place(overlay, request) if has_headroom(overlay, request) else None
            if node is not None:
                evicting = len(looks.evicting)
                if not looks.until(turn):
                    return None
                if len(looks.evicting) > evicting:  # they hold nodes now, and are expected
                    overlay = trial.now()
                    node = place(overlay, request) if has_headroom(overlay, request) else None
            if node is None:
                if not holds:
                    vain.append(line)
                continue
            looks.started(turn)
            trial.place(node, request)
            starts.append((waiting, node))
            again = [line]
            if holds:  # its node is there for others now
                todo, vain, again = [other for other in todo if other[1].ask.id in holders], [], self._lines.values()
                heapify(todo)
            for line in again:
                if following := line.first((*turn, ""), holders):
                    heappush(todo, following)
        return PlainCycle(starts, looks.tried, looks.evicting, vain) if looks.until(None) else None

    def carried_out(self, cycle: PlainCycle, now: int, begun: int, version: int) -> int | None:
        """The cycle, begun at version ``begun``, was carried out, and those that start have left. When time alone lets
        somebody try again, now that it is another version."""
        self.rounds, self._now = self.rounds + 1, now
        for line in cycle.vain:
            line.vain = self.ahead.grown
        for until, members in reversed(self._resting):
            if until < now + CHECK_EVERY:
                break
            for _, waiting in members:
                waiting.tried = begun
        ages = next((until for until, waiting in self._young if waiting.seat), None)
        resting = ((until, waiting) for until, members in self._resting for _, waiting in members)
        rests = next((until for until, waiting in resting if waiting.seat and waiting.tried != version), None)
        for waiting, _ in cycle.evicting:
            self.looked(waiting, now)
        for line, members in cycle.tried.items():
            for _, waiting in members:
                waiting.last, waiting.tried, waiting.cycle = now, begun, self.rounds
                if waiting.sent:
                    waiting.sent = {}
            del line.awake[: len(members)]  # who came before has looked as well, or has left
            self._resting.append((now + CHECK_EVERY, members))
        return min((instant for instant in (ages, rests) if instant is not None), default=None)

    def retry(self, waiting: Waiting, version: int) -> int | None:
        """When time alone lets it try again, as of the last cycle that was carried out, and its version."""
        if waiting.done or waiting.seat is None or waiting.cycle == self.rounds:
            return None
        if waiting.young > self._now:
            return waiting.young
        if waiting.last is None or waiting.last + CHECK_EVERY <= self._now or waiting.tried == version:
            return None
        return waiting.last + CHECK_EVERY

    def pass_time(self, now: int) -> None:
        """Those whose time has come look for victims where there is no room."""
        young, resting = self._young, self._resting
        while young and young[0][0] <= now:
            waiting = young.pop(0)[1]
            if (seat := waiting.seat) is not None and not waiting.done:
                seat.line.wake([(seat.turn, waiting)])
        while resting and resting[0][0] <= now:
            members = [of for of in resting.popleft()[1] if of[1].seat is not None and not of[1].done]
            if members and (seat := members[0][1].seat) is not None:
                seat.line.wake(members)


def _last(waiting: Waiting) -> int:
    return waiting.last or 0


def _inherits(waiting: Waiting, running: dict[str, Workload]) -> bool:
    """Whether what runs of its application has a priority."""
    of = [running.get(name) for name in (waiting.job, waiting.ask.id)]
    return any(workload is not None and workload.priority for workload in of)


class _Looks:
    """Who looks for victims in a cycle, and what comes of it. ``tried``: who has found none so far; ``evicting``: who
    has, and whom. ``_since``: whose turn has not come; ``holders``: those that hold a node and may look;
    ``claimless``: lines without a claim; ``vain``: lines and priorities that nobody goes for, until something changes.
    """

    def __init__(self, lines: Iterable[_Line], ahead: Ahead, trial: Trial, now: int, holders: set[str]) -> None:
        queues = ahead.overlay.state.configuration
        self.tried: dict[_Line, list[Member]] = {}
        self.evicting: list[tuple[Waiting, Outcome]] = []
        self._lines = [line for line in lines if line.awake] if queues.preemption else []
        self._lawful = queues.rules.keeps_guarantees
        self._running, self._in_vain = ahead.running, ahead.in_vain
        self._trial, self._context = trial, Context(now, scored=True)
        self._attempts, self._holders = defaultdict[int, int](int), holders
        self._since: Since = ()
        self.claimless: set[_Line] = set()
        self.vain: set[_Kind] = set()

    def started(self, turn: Turn) -> None:
        """Whose turn it was has started: there is less to go for, and whoever found nobody might now."""
        self._since = (*turn, "")
        self.claimless, self.vain = self.claimless.copy(), set()

    def until(self, turn: Turn | None) -> bool:
        """Those that found no room, up to this turn, or all. False: what comes of it is not plain."""
        queues: dict[int, list[Member]] = {}
        lines: list[_Line] = []
        for line in self._lines:
            queue = line.request.queue
            left = ATTEMPTS - self._attempts[queue]
            if left and (looking := line.may_look(self._since, turn, left)):
                lines.append(line)
                queues.setdefault(queue, []).extend(looking)
        self._since = turn or ()
        for queue, looking in queues.items():
            if len(lines) > len(queues):
                looking.sort()
                del looking[ATTEMPTS - self._attempts[queue] :]
            self._attempts[queue] += len(looking)
        if len(lines) == len(queues) and not self._holders and all(map(self._has_no_claim, lines)):
            for line, looking in zip(lines, queues.values(), strict=True):
                self.tried.setdefault(line, []).extend(looking)
            return True
        return all(map(self._look, sorted(chain.from_iterable(queues.values()))))

    def _look(self, member: Member) -> bool:
        waiting, seat = member[1], member[1].seat
        if seat is None or waiting.ask.id in self._holders:
            return False
        runs, request = waiting.job in self._running, seat.request
        like = None if runs or waiting.ask.id in self._running else (seat.line, request.priority)
        if like not in self.vain and not self._has_no_claim(seat.line):
            overlay, request = self._trial.searched(), replace(request, application=waiting.job) if runs else request
            outcome, vain = Outcome.wait("no-node"), self._in_vain[request.queue]
            if vain < _IN_VAIN or may_find(overlay, request, self._context.now):
                headroom = has_headroom(overlay, request)
                outcome = look_for_victims(overlay, request, self._context, SILENT, headroom=headroom, shared=True)
                self._in_vain[request.queue] = vain + 1 if outcome.kind == "wait" and vain < _IN_VAIN else 0
            if outcome.kind == "admit" or outcome.cancelled:
                return False
            if outcome.kind != "wait":
                apply(overlay, request, outcome)
                self.evicting.append((waiting, outcome))
                self.claimless, self.vain = set(), set()
                return True
            if like is not None:
                self.vain.add(like)
        self.tried.setdefault(seat.line, []).append(member)
        return True

    def _has_no_claim(self, line: _Line) -> bool:
        """Nobody in the line finds anybody."""
        if line not in self.claimless and self._lawful and claim_of(self._trial.now(), line.request) is None:
            self.claimless.add(line)
        return line in self.claimless
