"""What waits, as cycles that are told before they are asked look at it, and what such a cycle comes to. Who looks for
victims without a claim is told at one look.

Source: ``ask``, whose rules these are.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Collection, Hashable, Iterable
from heapq import heapify, heappop, heapreplace
from itertools import chain
from operator import attrgetter, itemgetter
from typing import NamedTuple

from msgspec.structs import replace

from app.solver.engines.yunikorn.ahead import Ahead, Line, Look, Member, Since, Waiting, merge, remove_turn
from app.solver.engines.yunikorn.ask import ATTEMPTS, Context, apply, look_for_victims, may_find, next_alike, place
from app.solver.engines.yunikorn.candidates import SILENT, Outcome
from app.solver.engines.yunikorn.guarantees import has_headroom
from app.solver.engines.yunikorn.overlay import CHECK_EVERY, Overlay, Request, Turn, ask_problems, asked_of
from app.solver.model.state import Ask, Workload

_IN_VAIN = 16
"""After so many looks of a queue it is asked first whether there may be anybody, until that was asked in vain too."""
_SPARE = 64
"""So many lines are remembered though nobody is in them."""
_Kind = tuple[Line, int]
"""Asks of a line, and of one priority."""


class PlainCycle(NamedTuple):
    """What a cycle comes to, in its order. ``starts``: who runs from now on, on which node; ``tried``: who looked for
    victims in vain, by line; ``evicting``: who evicts whom on which node; ``vain``: lines that have no room."""

    starts: list[tuple[Waiting, int]]
    tried: dict[Line, list[Member]]
    evicting: list[tuple[Waiting, Outcome]]
    vain: list[Line]


_ALIKE = attrgetter("queue", "priority", "created_at", "required_node", "feasible_nodes")
_TASKS_ALIKE = attrgetter(
    "requests", "count", "priority", "created_at", "required_node", "node_selector", "node_affinity", "tolerations"
)
"""What their place in a cycle follows from, but for names."""


class Seats:
    """What waits, as plain cycles look at it. ``lines``: by what their asks have in common; ``young``, ``resting``: who
    may not look for victims before a time, for their queue's delay, and since they last did, together, in a line; and
    some that have left. ``rounds``: how many cycles were carried out; ``verdicts``: what looks have shown since
    something moved, and when that was; ``_ready``: when a cycle is, and what it comes to, where that is known."""

    def __init__(self, ahead: Ahead) -> None:
        self.ahead = ahead
        self.rounds = self._now = 0
        self.verdicts: tuple[int, set[Line], set[_Kind]] = -1, set(), set()
        self._ready: tuple[int, PlainCycle | None] | None = None
        self.lines: dict[Hashable, Line] = {}
        self._empty: dict[Hashable, Line] = {}
        self._seated: dict[str, Waiting] = {}
        self._unsure: dict[str, Waiting] = {}
        self._odd: set[str] = set()
        self._young: list[tuple[int, Waiting]] = []
        self._resting = deque[tuple[int, Look]]()

    def add_all(self, of: Collection[Waiting], now: int) -> None:
        """They wait, as of ``now``. Raises QuantityError."""
        came: dict[Line, tuple[list[Member], list[Member]]] = {}
        alike, place = None, None
        for waiting in sorted(of, key=_last) if len(of) > 1 else of:
            ask, key = waiting.ask, (_ALIKE(waiting.ask), _TASKS_ALIKE(waiting.ask.tasks[0]))
            if key != alike:
                alike, place = key, self._place_of(ask)
            if place is None or self._is_strange(waiting, now):
                self._odd.add(ask.id)
                continue
            turn, request = place
            line = waiting.line = self.lines.get(request.alike) or self._line(request)
            waiting.turn, waiting.priority, waiting.request = (*turn[:2], ask.id), request.priority, None
            self._seated[ask.id] = waiting
            if ask.priority is None and ask.tasks[0].priority is None:
                self._unsure[ask.id] = waiting
            if line not in came:
                came[line] = [], []
            members, awake = came[line]
            members.append((waiting.turn, waiting))
            if self._is_awake(waiting, now):
                awake.append((waiting.turn, waiting))
        for line, (members, awake) in came.items():
            merge(line.members, members)
            if awake:
                line.wake(awake)

    def _line(self, request: Request) -> Line:
        """One that nobody is in."""
        line = self._empty.pop(request.alike, None) or Line(self.ahead.overlay.state, request)
        self.lines[request.alike] = line
        return line

    def _place_of(self, ask: Ask) -> tuple[Turn, Request] | None:
        """Of an ask in a cycle; None: it is an odd one."""
        if ask_problems(self.ahead.overlay.state, ask):
            return None
        turn, _, requests, _ = asked_of(self.ahead.overlay.state, _sure(ask))
        return (turn, requests[0]) if len(requests) == 1 and requests[0].required is None else None

    def _is_strange(self, waiting: Waiting, now: int) -> bool:
        """Whether it has looked for victims at another time than it could."""
        last = waiting.look.last
        if last is None or last + CHECK_EVERY <= now:
            return False
        earlier = bool(self._resting) and last + CHECK_EVERY < self._resting[-1][0]
        return waiting.young > now or last > now or earlier

    def _is_awake(self, waiting: Waiting, now: int) -> bool:
        """Else it waits for its time to look, if it ever does."""
        if waiting.look.members:
            waiting.look = Look(waiting.look.last, waiting.look.tried, self.rounds)
        last, waiting.look.cycle = waiting.look.last, self.rounds
        if waiting.done:
            return False
        if waiting.young > now:
            insort(self._young, (waiting.young, waiting), key=itemgetter(0))
            return False
        if last is not None and last + CHECK_EVERY > now:
            waiting.look.members = [(waiting.turn, waiting)]
            self._resting.append((last + CHECK_EVERY, waiting.look))
            return False
        return True

    def seated(self, name: str) -> Waiting | None:
        """Who is called so."""
        return self._seated.get(name)

    def turn(self, name: str) -> Turn:
        """Of a cycle."""
        return self._seated[name].turn

    def request(self, waiting: Waiting) -> Request:
        """Its own, which names it."""
        if waiting.request is None:
            ask, line = waiting.ask, waiting.line
            assert line is not None
            waiting.request = replace(
                line.request, ask=ask, task=ask.tasks[0], priority=waiting.priority, created=waiting.turn[1],
                checked=waiting.look.last, triggered=ask.yunikorn is not None and ask.yunikorn.triggered_preemption,
                application=ask.workload or ask.id,
            )  # fmt: skip
        return waiting.request

    def looked(self, waiting: Waiting, now: int) -> None:
        """It looked for victims ``now``."""
        if waiting.line is not None:
            remove_turn(waiting.line.awake, waiting.turn)
            waiting.look.cycle = self.rounds
            if not waiting.done:
                waiting.look.members = [(waiting.turn, waiting)]
                self._resting.append((now + CHECK_EVERY, waiting.look))

    def start(self, starts: list[tuple[Waiting, int]]) -> None:
        """They wait no longer."""
        of: dict[Line, list[Waiting]] = {}
        for waiting, _ in starts:
            if (line := waiting.line) is not None:
                if line not in of:
                    of[line] = []
                of[line].append(waiting)
        for line, gone in of.items():
            self._leave(line, gone)

    def drop(self, waiting: Waiting) -> None:
        """It waits no longer."""
        self._odd.discard(waiting.ask.id)
        if waiting.line is not None:
            self._leave(waiting.line, [waiting])

    def _leave(self, line: Line, gone: list[Waiting]) -> None:
        line.leave([waiting.turn for waiting in gone])
        for waiting in gone:
            waiting.line, waiting.look.left = None, True
            del self._seated[waiting.ask.id]
            if self._unsure:
                self._unsure.pop(waiting.ask.id, None)
        if not line.members:
            if len(self._empty) >= _SPARE:
                self._empty.clear()
            self._empty[line.request.alike] = self.lines.pop(line.request.alike)

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
        self.ahead.settle()
        self.pass_time(now)
        if self._odd or any(_inherits(waiting, self.ahead.running) for waiting in self._unsure.values()):
            return None
        return self._claimless() or _Trial(self, now).cycle()

    def _claimless(self) -> PlainCycle | None:
        """The cycle where nothing has moved, and nobody who looks has a claim; None: that is not so."""
        moves, claimless, _ = self.verdicts
        if moves != self.ahead.moves or self.ahead.overlay.held:
            return None
        tried: dict[Line, list[Member]] = {}
        grown = self.ahead.grown
        queues: list[int] = []
        for line in self.lines.values():
            queue = line.request.queue
            if line.vain != grown or (line.awake and (line not in claimless or queue in queues)):
                return None
            if line.awake:
                queues.append(queue)
                tried[line] = line.may_look((), None, ATTEMPTS)
        return PlainCycle([], tried, [], [])

    def carried_out(self, cycle: PlainCycle, now: int, begun: int, version: int) -> int | None:
        """The cycle, begun at version ``begun``, was carried out, and those that start have left. When time alone lets
        somebody try again, now that it is another version."""
        self.rounds, self._now = self.rounds + 1, now
        for line in cycle.vain:
            line.vain = self.ahead.grown
        for until, look in reversed(self._resting):
            if until < now + CHECK_EVERY:
                break
            for of in {look, *(waiting.look for _, waiting in look.members if look.left)}:
                of.tried = begun
        wakes = self._wakes_at(version)
        for waiting, _ in cycle.evicting:
            self.looked(waiting, now)
        for line, members in cycle.tried.items():
            look = line.look
            if look is not None and not look.left and members is line.awake:  # once more together
                look.last, look.tried, look.cycle = now, begun, self.rounds
                line.awake = []
            else:
                look = Look(now, begun, self.rounds, members)
                for _, waiting in members:
                    waiting.look = look
                line.awake = line.awake[len(members) :]  # who came before has looked as well, or has left
            line.look = None
            self._resting.append((now + CHECK_EVERY, look))
        return wakes

    def _wakes_at(self, version: int) -> int | None:
        young = None
        for until, waiting in self._young:
            if waiting.line is not None:
                young = until
                break
        for until, look in self._resting:
            if look.waits(version):
                return until if young is None else min(young, until)
        return young

    def retry(self, waiting: Waiting, version: int) -> int | None:
        """When time alone lets it try again, as of the last cycle that was carried out, and its version."""
        look = waiting.look
        if waiting.done or waiting.line is None or look.cycle == self.rounds:
            return None
        if waiting.young > self._now:
            return waiting.young
        if look.last is None or look.last + CHECK_EVERY <= self._now or look.tried == version:
            return None
        return look.last + CHECK_EVERY

    def pass_time(self, now: int) -> None:
        """Those whose time has come look for victims where there is no room."""
        young, resting = self._young, self._resting
        while young and young[0][0] <= now:
            waiting = young.pop(0)[1]
            if waiting.line is not None and not waiting.done:
                waiting.line.wake([(waiting.turn, waiting)])
        while resting and resting[0][0] <= now:
            look = resting.popleft()[1]
            members = look.members
            if look.left:
                members = [of for of in members if of[1].line is not None and not of[1].done]
            if members and (line := members[0][1].line) is not None:
                if look.left or line.awake:
                    line.wake(members)
                else:
                    line.awake, line.look = members, look


def _last(waiting: Waiting) -> int:
    return waiting.look.last or 0


def _sure(ask: Ask) -> Ask:
    """With a priority."""
    return ask if ask.priority is not None or ask.tasks[0].priority is not None else replace(ask, priority=0)


def _inherits(waiting: Waiting, running: dict[str, Workload]) -> bool:
    """Whether what runs of its application has a priority."""
    of = [running.get(name) for name in (waiting.job, waiting.ask.id)]
    return any(workload is not None and workload.priority for workload in of)


_Turns = tuple[Turn, int, Line]
"""Whose turn it is by place in a line, whose others have theirs later."""


class _Trial:
    """A cycle of ``seats``, as far as it is played: ``overlay`` is as it is by then, ahead's own, which expects who
    starts, while nobody holds a node or has gone, else a copy. ``_since``: whose turn has not come; ``_next``: the
    first who may look; ``_looking``: who holds a node and may; ``_claimless``: lines without a claim; ``_vain``: lines
    and priorities that nobody goes for, until something changes; for the rest see ``PlainCycle``."""

    def __init__(self, seats: Seats, now: int) -> None:
        ahead = seats.ahead
        self._seats, self._ahead, self.overlay, self._now = seats, ahead, ahead.overlay, now
        queues, self._holders = ahead.overlay.state.configuration, ahead.overlay.holders()
        self._held: list[_Turns] = []
        self._looking: set[str] = set()
        for name in self._holders:
            if (of := seats.seated(name)) is not None and (line := of.line) is not None:
                self._held.append((of.turn, bisect_left(line.members, (of.turn,)), line))
                if not of.done:
                    self._looking.add(name)
        if self._holders or seats.verdicts[0] != ahead.moves:  # time alone may end what others hold
            seats.verdicts = ahead.moves, set(), set()
        self._claimless: set[Line] = seats.verdicts[1]
        self._vain: set[_Kind] = seats.verdicts[2]
        self._lines = [line for line in seats.lines.values() if line.awake] if queues.preemption else []
        self._lawful = queues.rules.keeps_guarantees
        self._attempts: dict[int, int] = {}
        self._starts: list[tuple[Waiting, int]] = []
        self._tried: dict[Line, list[Member]] = {}
        self._evicting: list[tuple[Waiting, Outcome]] = []
        self._since: Since = ()
        self._next = min((line.awake[0][0] for line in self._lines), default=None)

    def cycle(self) -> PlainCycle | None:
        """None: what it comes to is not plain."""
        grown, lines = self._ahead.grown, self._seats.lines.values()
        vain: list[Line] = []
        todo: list[_Turns] = self._held + self._from((), [line for line in lines if line.vain != grown])
        heapify(todo)
        while todo:
            turn, place, line = todo[0]
            waiting = line.members[place][1]
            holds = waiting.ask.id in self._holders
            node = self._node(waiting, line, holds=holds)
            if node is not None:
                evicting = len(self._evicting)
                if not self._until(turn):
                    return None
                if len(self._evicting) > evicting:  # they hold nodes now, and are expected
                    node = self._node(waiting, line, holds=holds)
            if node is None:
                heappop(todo)
                if not holds:
                    vain.append(line)
                continue
            self._start(waiting, line, node, holds=holds)
            if holds:  # its node is there for others now
                heappop(todo)
                todo = [other for other in todo if other in self._held] + self._from((*turn, ""), lines)
                vain = []
                heapify(todo)
            elif (following := line.first(place + 1, self._holders)) is not None:
                heapreplace(todo, (line.members[following][0], following, line))
            else:
                heappop(todo)
        return PlainCycle(self._starts, self._tried, self._evicting, vain) if self._until(None) else None

    def _from(self, since: Since, lines: Iterable[Line]) -> list[_Turns]:
        """The first of each line from a turn on that holds no node."""
        places = [(line.first(bisect_left(line.members, (since,)), self._holders), line) for line in lines]
        return [(line.members[place][0], place, line) for place, line in places if place is not None]

    def _node(self, waiting: Waiting, line: Line, *, holds: bool) -> int | None:
        """Where it runs now."""
        if holds:
            request = self._seats.request(waiting)
            return place(self.overlay, request) if has_headroom(self.overlay, request) else None
        return line.room.node(self.overlay) if line.bounds.have_headroom(self.overlay) else None

    def _start(self, waiting: Waiting, line: Line, node: int, *, holds: bool) -> None:
        """There is less to go for, and whoever found nobody might now."""
        given, task = self._ahead.overlay, waiting.ask.tasks[0]
        if not self._starts:
            self._claimless = self._claimless.copy()
        self._vain = set()
        self._starts.append((waiting, node))
        self._since = (*waiting.turn, "")
        if self._next == waiting.turn:
            self._next = self._first()
        plain = self.overlay is given and not given.held
        if not (plain and self._ahead.expect(waiting.job, waiting.ask.queue, task, node)):
            request = self._seats.request(waiting) if holds else line.request
            self._own().place(node, request, holds=holds)

    def _own(self) -> Overlay:
        if self.overlay is self._ahead.overlay:
            self.overlay = self.overlay.copy()
        return self.overlay

    def _first(self) -> Turn | None:
        """The first that may look whose turn has not come."""
        since, first = (self._since,), None
        for line in self._lines:
            place = bisect_left(line.awake, since)
            if place < len(line.awake) and (first is None or line.awake[place][0] < first):
                first = line.awake[place][0]
        return first

    def _until(self, turn: Turn | None) -> bool:
        """Those that found no room look, up to this turn, or all. False: what comes of it is not plain."""
        if turn is not None and (self._next is None or turn <= self._next):
            self._since = turn
            return True
        queues: dict[int, list[Member]] = {}
        lines: list[Line] = []
        for line in self._lines:
            queue = line.request.queue
            left = ATTEMPTS - self._attempts.get(queue, 0)
            if left and (looking := line.may_look(self._since, turn, left)):
                lines.append(line)
                queues[queue] = [*queues[queue], *looking] if queue in queues else looking
        self._since = turn or ()
        self._next = self._first()
        for queue in queues:
            if len(lines) > len(queues):
                queues[queue] = sorted(queues[queue])[: ATTEMPTS - self._attempts.get(queue, 0)]
            self._attempts[queue] = self._attempts.get(queue, 0) + len(queues[queue])
        if len(lines) == len(queues) and not self._looking and all(map(self._has_no_claim, lines)):
            for line, looking in zip(lines, queues.values(), strict=True):
                self._tried[line] = [*self._tried[line], *looking] if line in self._tried else looking
            return True
        return all(map(self._look, sorted(chain.from_iterable(queues.values()))))

    def _look(self, member: Member) -> bool:
        waiting, line = member[1], member[1].line
        if line is None or waiting.ask.id in self._looking:
            return False
        runs = waiting.job in self._ahead.running
        like = None if runs or waiting.ask.id in self._ahead.running else (line, waiting.priority)
        if like not in self._vain and not self._has_no_claim(line):
            outcome = self._search(waiting, line, runs=runs)
            if outcome.kind == "admit" or outcome.cancelled:
                return False
            if outcome.kind != "wait":
                self._evicting.append((waiting, outcome))
                self._claimless, self._vain = set(), set()
                return True
            if like is not None:
                self._vain.add(like)
        self._tried[line] = [*self._tried[line], member] if line in self._tried else [member]
        return True

    def _search(self, waiting: Waiting, line: Line, *, runs: bool) -> Outcome:
        """What comes of its look, which is carried out."""
        overlay, request, in_vain = self._own(), self._seats.request(waiting), self._ahead.in_vain
        overlay.state = self._ahead.tasks()
        request = replace(request, application=waiting.job) if runs else request
        vain = in_vain[request.queue]
        if (outcome := next_alike(overlay, request, line.bounds)) is not None:
            in_vain[request.queue] = 0
        else:
            outcome = Outcome.wait("no-node")
            if vain < _IN_VAIN or may_find(overlay, request, self._now):
                headroom, context = line.bounds.have_headroom(overlay), Context(self._now, scored=True)
                outcome = look_for_victims(overlay, request, context, SILENT, headroom=headroom, shared=True)
                in_vain[request.queue] = vain + 1 if outcome.kind == "wait" and vain < _IN_VAIN else 0
        if outcome.kind == "preempt" and not outcome.cancelled:
            apply(overlay, request, outcome)
        return outcome

    def _has_no_claim(self, line: Line) -> bool:
        """Nobody in the line finds anybody."""
        if line not in self._claimless and self._lawful and line.bounds.claim(self.overlay) is None:
            self._claimless.add(line)
        return line in self._claimless
