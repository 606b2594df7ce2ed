"""KAI's rounds: what waits, and when time alone lets it act; and in a run that nobody watches rounds that are plain
before they are asked, on sums that go ahead of the state: one job asks, alone, and all of it starts; or whatever asks
and runs is a crowd, of which one pod makes room for another.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from msgspec.structs import replace

from app.solver import rounds
from app.solver.engines.kai.ahead import Ahead, Job, Kind, Sums, ranked
from app.solver.engines.kai.configuration import CompiledConfiguration, unprotected_from
from app.solver.engines.kai.crowd import Crowd, Turns
from app.solver.engines.kai.job_order import Victims, best_of, worse
from app.solver.engines.kai.jobs import Share, rank
from app.solver.engines.kai.queue_order import (
    NOTHING,
    Entry,
    Position,
    QueueTree,
    Standing,
    Waiting,
    holds_within,
    plus,
    put_in_line,
)
from app.solver.engines.kai.queue_order import Node as QueueNode
from app.solver.engines.kai.state import CompiledState, Key, Victim
from app.solver.engines.kai.validators import Balance, Taken, may_lose
from app.solver.model.base import micros, parse_duration, to_datetime
from app.solver.model.configuration import Configuration
from app.solver.model.decision import PlannedEviction, Result
from app.solver.model.kai import Action
from app.solver.model.request import RunOptions
from app.solver.model.state import Ask, Node, State, Task, Workload
from app.solver.question import Question, safe_point
from app.solver.rounds import Holds, Leaving, Outcome, PlacedRounds, Turn, Unit, Wakes


class PlainCycle:
    """One cycle of a crowd: nothing is on its way out, and every pod may go to any node. ``starts``: pods with places
    of their nodes; ``evictions``: victim, pod, action, and whom it is for; ``turns``: who had one, in order of the
    first. What it moves is in ``Sums.played``.

    A narrower statement of ``actions``: it says nothing where an attempt is not won by the first pod of the victim
    order, or another place than that pod's would do. Source: these, ``solver``, ``search`` and ``job_order``."""

    def __init__(self, crowd: Crowd, now: int) -> None:
        crowd.sums.settle()
        self._crowd, self._sums, self._jobs, self._now = crowd, crowd.sums, crowd.jobs, now
        self._policy, self._flat = crowd.configuration.policy, crowd.flat
        self._order = crowd.order()
        self._lines, self._victims, self._kinds = crowd.lines.copy(), crowd.victims.copy(), dict(crowd.kinds)
        self._vectors = crowd.vectors()
        self._placed, self._evicted = dict[int, int](), dict[int, int]()
        self._keys, self._settled = dict[int, Key](), list[int]()
        self.starts: list[tuple[Job, Task, int]] = []
        self.evictions: list[tuple[Job, Task, Action, Job]] = []
        self.turns: dict[int, None] = {}

    def play(self) -> bool:
        """Whether all of it can be told."""
        plain = all(map(self._act, self._policy.actions))
        if not plain:
            self._sums.settle()
        return plain

    def order(self) -> list[str]:
        """All that wait, in the order of their first turns."""
        self._allocate(everybody=True)
        self._sums.settle()
        return [self._jobs[number].name for number in self.turns]

    def _act(self, action: Action) -> bool:
        if not self._lines:
            return True
        if action == "allocate":
            return not self.evictions and self._allocate()
        return self._nobody_moves() if action == "consolidation" else self._each(action)

    def _allocate(self, *, everybody: bool = False) -> bool:
        """``everybody`` has a turn, whether or not anything comes of it."""
        fits = self._any_fits()
        if not (everybody or fits):
            return True
        turns = self._turns()
        while (turn := turns.next()) is not None:
            safe_point()
            queue, number = turn
            self.turns.setdefault(number)
            job = self._jobs[number]
            place = self._sums.best(job.request, shares=False) if fits and not self._is_over(job) else None
            if place is not None:
                self.starts.append((job, job.waits[self._placed.get(number, 0)], place))
                self._place(number, place)
                fits = self._any_fits()
            if not (everybody or fits):
                return True
            turns.took(queue)  # who is left is compared, and holds what he held
            if place is not None and self._left(number):
                turns.push(queue, number)
        return True

    def _is_over(self, job: Job) -> bool:
        """Whether one more pod of it would pass a bound."""
        return self._order.passed(job.queue, job.want, preemptible=job.preemptible) is not None

    def _any_fits(self) -> bool:
        kinds, with_room = self._kinds.items(), self._sums.with_room
        return any(
            with_room(vector)[1] and any(count and request.vector == vector for (_, request, _), count in kinds)
            for vector in self._vectors
        )

    def _tree(self, lines: dict[int, list[Entry]]) -> QueueTree[Waiting]:
        """All queues that have ``lines``, the one whose job is best first."""
        tree = QueueTree[Waiting](self._crowd.tree.parent, self._first)
        for queue, entries in sorted(lines.items(), key=lambda of: of[1][0]):
            tree.add(queue, Waiting(self._settled, self._key, entries))
        return tree

    def _turns(self) -> Turns:
        tree = None if self._flat else self._tree(self._lines)
        moved, settled, goes_before = self._sums.played, self._settled, self._order.goes_before
        return Turns(self._lines, moved, settled, self._key, self._standing, goes_before, tree)

    def _standing(self, queue: int, number: int) -> Position:
        """What the queue is compared by if that job is its best."""
        return self._order.standing(queue, self._jobs[number].want, NOTHING)

    def _first(self, a: QueueNode[Waiting], b: QueueNode[Waiting]) -> bool:
        want_a, want_b = self._jobs[best_of(a).first()].want, self._jobs[best_of(b).first()].want
        return self._order.first(a.queue, b.queue, want_a, want_b, NOTHING, NOTHING)

    def _left(self, number: int) -> int:
        return len(self._jobs[number].waits) - self._placed.get(number, 0)

    def _place(self, number: int, place: int) -> None:
        """The next pod of the job goes there."""
        job = self._jobs[number]
        self._sums.play(job, place, 1)
        self._placed[number] = self._placed.get(number, 0) + 1
        self._kinds[job.queue, job.request, job.preemptible] -= not self._left(number)
        self._rank(number)

    def _rank(self, number: int) -> None:
        """The job has been placed or evicted. Exact books take from nobody whom the cycle has placed."""
        job, placed, before = self._jobs[number], self._placed.get(number, 0), self._key(number)
        active = len(job.runs) - self._evicted.get(number, 0) + placed
        now = self._keys[number] = ranked(before, rank(active, 1))
        self._settled.append(number)
        left, may_go = self._left(number), active and not (placed and self._policy.rules.exact)
        if job.waits and not (left and now == before):
            put_in_line(self._lines, job.queue, number, before, now if left else None)
        if job.preemptible and not (may_go and now == before):
            put_in_line(self._victims, job.queue, number, before, now if may_go else None)

    def _key(self, number: int) -> Key:
        return self._keys.get(number) or self._jobs[number].key

    def _nobody_moves(self) -> bool:
        """Whether consolidation does nothing, as each that waits and may move wants more than is free in all."""
        if self._policy.max_consolidation_preemptees == 0:
            return True
        room = self._sums.room()
        waiting = {request.vector for (_, request, movable), count in self._kinds.items() if movable and count}
        return all(any(amount > have for amount, have in zip(of, room, strict=False)) for of in waiting)

    def _each(self, action: Action) -> bool:
        """Reclaim and preempt. Who fails without a try may keep others of his queue from theirs."""
        if not self._hope(action, self._kinds, None):
            return True
        if self._crowd.protects:
            return False
        left, turns = self._kinds.copy(), self._turns()
        while (turn := turns.next()) is not None:
            safe_point()
            queue, number = turn
            turns.took(queue)
            job = self._jobs[number]
            kind = queue, job.request, job.preemptible
            left[kind] -= 1
            if action == "reclaim" and not self._may_reclaim(kind):
                continue
            if not self._has_chance(action, kind, self._key(number)[0]):
                of_queue = {other: count for other, count in left.items() if other[0] == queue}
                if self._hope(action, of_queue, turns):
                    return False
            elif not self._solve(action, number):
                return False
            elif not self._hope(action, left, turns):
                return True
        return True

    def _hope(self, action: Action, left: Mapping[Kind, int], turns: Turns | None) -> bool:
        """Whether any of those left has a chance. ``turns``: they in their order; None: everybody is left."""
        for kind, count in left.items():
            if not count:
                continue
            queue = kind[0]
            best = self._lines[queue][0][0][0] if turns is None else turns.best(queue)
            if best is None or (action == "reclaim" and not self._may_reclaim(kind)):
                continue
            if self._has_chance(action, kind, best):
                return True
        return False

    def _may_reclaim(self, kind: Kind) -> bool:
        """Reclaim's gate."""
        (queue, request, preemptible), order = kind, self._order
        want = request.want
        return holds_within(plus(order.held(queue), want), order.fair[queue]) and (
            preemptible or holds_within(plus(order.held_fixed(queue), want), order.deserved[queue])
        )

    def _has_chance(self, action: Action, kind: Kind, priority: int) -> bool:
        """Whether there are victims for it, and preempt's bound. ``priority``: as keys have it."""
        queue, request, preemptible = kind
        if action == "reclaim":
            return bool(self._losing(queue, request.want))
        victims = self._victims.get(queue)
        if victims is None or victims[-1][0][0] <= priority:
            return False
        return preemptible or self._order.over_deserved(queue, request.want) is None

    def _losing(self, queue: int, want: Share) -> list[int]:
        """The queues that reclaim may take from."""
        filters = self._policy.release.filters_by_queue
        return [
            other for other in self._victims
            if other != queue and not (filters and not may_lose(self._order, queue, want, other)[2])
        ]  # fmt: skip

    def _solve(self, action: Action, number: int) -> bool:
        """Whether the job has its place once the first pod of the victim order is gone, and that is the only one."""
        job, sums = self._jobs[number], self._sums
        vector = job.request.vector
        if self._is_over(job) or number in self._evicted or sums.with_room(vector)[1]:
            return False
        v = self._worst(action, job)
        victim = self._jobs[v]
        if v in self._placed or victim.started > self._now:
            return False
        if action == "reclaim" and not self._is_fair(job, victim):  # judged by what queues hold before
            return False
        task = victim.runs[-1 - self._evicted.get(v, 0)]
        place = sums.place[task.node or ""]
        sums.play(victim, place, -1)
        if not sums.takes(place, vector) or (action == "reclaim" and not self._goes_first(number, v)):
            return False
        self._evicted[v] = self._evicted.get(v, 0) + 1
        self._place(number, place)
        self._rank(v)
        self.evictions.append((victim, task, action, job))
        return not sums.with_room(victim.request.vector)[1]  # where it does, the victim may move

    def _worst(self, action: Action, job: Job) -> int:
        """The first of the victim order."""
        if action == "preempt":
            return self._victims[job.queue][-1][1]
        worst = [(self._victims[queue][-1], queue) for queue in self._losing(job.queue, job.want)]
        placed = next((number for (_, number), _ in worst if number in self._placed), None)
        if len(worst) == 1 or placed is not None:
            return worst[0][0][1] if placed is None else placed
        gives = list[Share]()
        for (_, number), _ in worst:
            victim, active = self._jobs[number], len(self._jobs[number].runs) - self._evicted.get(number, 0)
            gives.append((victim.want[0] * active, victim.want[1] * active, victim.want[2] * active))
        if self._flat:  # whoever stands last, alone, is at the top of their heap
            standings = [self._order.standing(of[1], NOTHING, holds) for of, holds in zip(worst, gives, strict=True)]
            if standings.count(last := max(standings)) == 1:
                return worst[standings.index(last)][0][1]
        tree = QueueTree[Victims](self._crowd.tree.parent, partial(worse, Standing(self._order)))
        for ((key, number), queue), holds in sorted(zip(worst, gives, strict=True), reverse=True):
            tree.add(queue, Victims([(key, Victim(number, key, [], holds, others=False))], NOTHING))
        turn = tree.next()
        assert turn is not None
        return turn[1].items[-1][1].job

    def _goes_first(self, number: int, v: int) -> bool:
        """Whether the job has its turn before the victim, which would take its place again. The job competes as a gang
        of the one pod, in 0.17 with what it runs."""
        job, victim, key, of_victim = self._jobs[number], self._jobs[v], self._key(number), self._key(v)
        active = len(victim.runs) - self._evicted.get(v, 0) - 1
        alone = key if self._policy.release.carries_running else ranked(key, 0)
        others = ranked(of_victim, rank(active, 1)), v
        if self._flat and (alone, number) <= self._lines[job.queue][0]:
            line = [entry for entry in self._lines.get(victim.queue, [])[:2] if entry[1] != v]
            first = min(line[0], others)[1] if line else v
            if self._standing(job.queue, number) < self._standing(victim.queue, first):
                return True  # whoever else has a turn, they are compared like this until the job has had its own
        lines = self._lines.copy()
        put_in_line(lines, job.queue, number, key, alone)
        put_in_line(lines, victim.queue, v, of_victim, others[0])
        tree = self._tree(lines)
        while (turn := tree.next()) is not None:
            first = turn[1].pop()
            tree.took(turn[0])
            if first in (number, v):
                return first == number
        return False

    def _is_fair(self, job: Job, victim: Job) -> bool:
        balance, want = Balance(self._order, self._crowd.tree), victim.want
        remaining, involved = dict[int, Share](), dict[int, set[int]]()
        taken = Taken(want, want, lambda: [want])
        return (
            balance.take(job.queue, job.want, victim.queue, taken, remaining, involved) is None
            and balance.stays_below(job.queue, job.want, remaining, involved, preemptible=job.preemptible) is None
        )


class KaiRounds(PlacedRounds[CompiledConfiguration, CompiledState]):
    """See the module. Victims are ``releasing`` until their grace is over; room that is being released is room.

    ``_since``: queue and start of what runs, by job; ``_known``: whether that is all that runs; ``_evicted``: when a
    job was last evicted; ``_delays``: when those that wait may make somebody go."""

    unit: ClassVar[Unit] = "gang"

    def __init__(self, configured: CompiledConfiguration, configuration: Configuration, options: RunOptions) -> None:
        super().__init__(configured, configuration, options)
        self._since: dict[str, tuple[str, int]] = {}
        self._wakes = Wakes()
        self._known = False
        self._evicted: dict[str, int] = {}
        self._delays = Wakes()
        self._crowd: Crowd | None = None
        self._news: set[str] = set()

    def arrive(self, ask: Ask) -> None:
        super().arrive(ask)
        self._news.add(ask.id)
        delays = self.configured.policy.release.delays_preemption
        if delays and ask.preemption_delay is not None and ask.created_at is not None:
            since = max(micros(ask.created_at), self._evicted.get(ask.id, 0))
            self._delays.set(ask.id, since + parse_duration(ask.preemption_delay))

    def leave(self, job: str) -> None:
        super().leave(job)
        self._news.add(job)
        self._gone(job)
        self._delays.set(job, None)
        self._evicted.pop(job, None)

    def asked(self, ask: Ask, holds: Holds) -> Ask:
        evicted = self._evicted.get(ask.id) if ask.preemption_delay is not None else None
        return super().asked(ask if evicted is None else replace(ask, last_evicted_at=to_datetime(evicted)), holds)

    def changed(self, configured: CompiledConfiguration, configuration: Configuration, nodes: Sequence[Node]) -> None:
        super().changed(configured, configuration, nodes)
        self._known = False

    def wakes_at(self) -> int | None:
        first = [when for when in (self._wakes.first(), self._delays.first()) if when is not None]
        return min(first, default=None) if self.waiting else None

    def before(self, loaded: CompiledState, state: State, now: int) -> Turn | None:
        """Nothing is carried over; what runs that no round started is taken note of."""
        if not self._known:
            self._known = True
            self._since.clear()
            self._wakes.clear()
            for workload in state.workloads:
                running = any(task.state == "running" for task in workload.tasks)
                if workload.started_at is not None and running:
                    self._runs(workload.id, workload.queue, micros(workload.started_at), now)
        return None

    def ahead(self, loaded: CompiledState) -> Ahead | None:
        """Where the first action starts what it can, and nothing is done for nobody."""
        actions = self.configured.policy.actions
        return Ahead(loaded) if actions[:1] == ("allocate",) and "stalegangeviction" not in actions else None

    def foreseen(self, ahead: rounds.Ahead[CompiledState], now: int) -> Outcome | None:
        """A round in which one job asks, and all of it starts; or one of a crowd."""
        sums = ahead.sums() if isinstance(ahead, Ahead) else None
        if sums is None:
            return None
        if len(self.waiting) == 1:
            (ask,) = self.waiting.values()
            if (places := sums.starts(ask)) is not None:
                when = to_datetime(now)
                tasks = [replace(t, node=sums.names[n], started_at=when, state="running") for t, n in places]
                return Outcome(lambda _: [ask.id], lambda _: self._turn({ask.id: tasks}, [], now))
        crowd = self._follow(sums)
        cycle = None if crowd.odd else PlainCycle(crowd, now)
        return self._outcome(crowd, cycle, now) if cycle is not None and cycle.play() else None

    def _follow(self, sums: Sums) -> Crowd:
        crowd = self._crowd
        if crowd is None or crowd.sums is not sums:
            crowd = self._crowd = Crowd(sums)
            self._news |= self.waiting.keys() | sums.held.keys()
        for name in self._news | sums.moved:
            _, running = sums.held.get(name, (0, None))
            crowd.look(name, self.waiting.get(name), running)
        self._news.clear()
        sums.moved.clear()
        return crowd

    def _outcome(self, crowd: Crowd, cycle: PlainCycle, now: int) -> Outcome:
        tasks, when, names = dict[str, list[Task]](), to_datetime(now), crowd.tree.names
        pods = list[Task | None]()
        for job, task, place in cycle.starts:
            placed = replace(task, node=crowd.sums.names[place], started_at=when, state="running")
            tasks.setdefault(job.name, []).append(placed)
            pods.append(placed)
        for _, task, _, _ in cycle.evictions:
            pods += task, None  # whoever takes the place waits for it
        evictions = [
            PlannedEviction(
                workload=victim.name, task=task.name, queue=names[victim.queue], node=task.node, reason=action,
                for_ask=job.name,
            )
            for victim, task, action, job in cycle.evictions
        ]  # fmt: skip

        def carry_out(leaving: Leaving) -> Turn:
            crowd.sums.keep(pods)
            return self._turn(tasks, [eviction for eviction in evictions if not leaving(eviction)], now)

        return Outcome(lambda _: PlainCycle(crowd, now).order(), carry_out, evictions)

    def _turn(self, tasks: dict[str, list[Task]], evicted: list[PlannedEviction], now: int) -> Turn:
        """A round that was told is carried out."""
        turn, queues = Turn(evicted=evicted), {name: self.waiting[name].queue for name in tasks}
        self.begin(turn, tasks)
        self.mark_seen(acted=bool(tasks or evicted))
        self._carried_out(turn, queues, now)
        return turn

    def begin(self, turn: Turn, started: dict[str, list[Task]]) -> None:
        super().begin(turn, started)
        self._news.update(started)

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        queues = {ask.id: ask.queue for ask in question.asks}
        turn = super().answered(question, result, leaving)
        self._carried_out(turn, queues, question.now)
        return turn

    def _carried_out(self, turn: Turn, queues: dict[str, str], now: int) -> None:
        """A round has had its turn at ``now``. ``queues``: of what asked."""
        for start in turn.started:
            if start.job not in self._since:
                self._runs(start.job, queues[start.job], now, now)
        for job in self._wakes.passed(now):
            self._runs(job, *self._since[job], now)
        self._delays.passed(now)
        for start in turn.started:
            if start.job not in self.waiting:
                self._delays.set(start.job, None)
        self._evicted |= dict.fromkeys((eviction.workload for eviction in turn.evicted), now)

    def carried(self) -> tuple[Hashable, Hashable]:
        """Whose delay is not over; when that is moves on with time."""
        return (), tuple(job for job in sorted(self._delays.keys()) if job in self.waiting)

    def evicting(self, workload: Workload, task: str | None) -> Workload:
        after = super().evicting(workload, task)
        if not any(pod.state == "running" for pod in after.tasks):
            self._gone(workload.id)
        return after

    def _runs(self, job: str, queue: str, since: int, now: int) -> None:
        """It runs; it may be unprotected at some later time."""
        self._since[job] = queue, since
        configured = self.configured
        lengths = configured.min_runtimes.lengths(configured.tree.index[queue])
        ends = (unprotected_from(since, length, configured.policy.rules) for length in lengths)
        self._wakes.set(job, min((end for end in ends if end > now), default=None))

    def _gone(self, job: str) -> None:
        self._since.pop(job, None)
        self._wakes.set(job, None)
