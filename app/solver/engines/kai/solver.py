"""The search of consolidation, reclaim and preempt: the pending gang pod by pod, each part with a growing prefix
of the victim order, judged by simulation and then by the validators.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import inf
from operator import add, le

from app.solver.engines.kai.chance import Chance, Trail
from app.solver.engines.kai.job_order import Contenders, Lines, Turns, VictimOrder, VictimTable
from app.solver.engines.kai.jobs import GPU, PENDING, PIPELINED, RELEASING, packs, total
from app.solver.engines.kai.nodes import WHOLE
from app.solver.engines.kai.overlay import Mark, Overlay
from app.solver.engines.kai.placing import Placer
from app.solver.engines.kai.queue_order import QueueOrder, Standing
from app.solver.engines.kai.scenario import Group, Headroom, Scenario
from app.solver.engines.kai.state import layout
from app.solver.engines.kai.validators import Balance, Foregone, Refusal, ScenarioValidator, refused_scenario
from app.solver.question import safe_point

MOST_STEPS = 1_000_000


class Budget:
    """Counts down; ``spent`` once nothing is left."""

    def __init__(self, steps: int | None = None) -> None:
        self.left = MOST_STEPS if steps is None else steps

    @property
    def spent(self) -> bool:
        """Whether the search was cut short."""
        return self.left <= 0

    def spend(self, steps: int = 1) -> bool:
        """Pay for some steps, each of them a safe point. False when there is nothing left."""
        safe_point()
        self.left -= steps
        return self.left > 0


@dataclass(frozen=True, slots=True)
class Tools:
    """What every action works with."""

    overlay: Overlay
    order: QueueOrder
    placer: Placer
    budget: Budget
    trail: Trail
    victims: VictimTable
    lines: Lines
    chance: Chance


@dataclass(frozen=True, slots=True)
class Found:
    """A part's solution: the groups that must go, and the nodes that somebody leaves."""

    groups: list[Group]
    left: set[int]


def open_nodes(tools: Tools, job: int) -> Iterable[int]:
    """Nodes with a GPU idle or being released; all of them where some pod of the job needs none."""
    overlay = tools.overlay
    if not all(overlay.request[t][GPU] or overlay.gpus.by_memory(t) for t in overlay.jobs.tasks[job]):
        return tools.placer.everywhere
    if overlay.gpus.any:
        return [n for n in tools.placer.everywhere if max(overlay.nodes.gpu_room(n)) > 0]
    return [
        n
        for n, (free, idle) in enumerate(zip(overlay.free[GPU], overlay.idle[GPU], strict=True))
        if idle > 0 or free > idle
    ]


def disturbed(overlay: Overlay, tasks: Iterable[int]) -> list[int]:
    """Those of ``tasks`` that did not stay where they were: first who is gone, then who only moves."""
    status = overlay.status
    gone: list[int] = []
    moved: list[int] = []
    for t in tasks:
        times = 1 if status[t] == RELEASING else overlay.evictions_of(t)
        if status[t] == PIPELINED and times < 2:
            moved.append(t)
        elif times:
            gone.append(t)
    return gone + moved


def leaves_out(overlay: Overlay, tasks: Iterable[int]) -> bool:
    """Whether some of ``tasks``, which had their turn, are without a place."""
    return any(overlay.status[t] == RELEASING for t in tasks)


def down_for_gone(tools: Tools, job: int) -> bool:
    """Whether released KAI has the job down for a pod that it evicted: what the job would place was looked up while the
    statement that took the pod was open, when it lacked a place, and is not looked up anew until a pod of the job
    changes. So nothing is found for the rest of the cycle. Looked at where nothing of the job is left to be taken.

    Source: KAI-Scheduler ``api/podgroup_info/allocation_info.go`` (tasksToAllocate), ``framework/statement.go``.
    """
    overlay = tools.overlay
    status, jobs = overlay.status, overlay.jobs
    if overlay.exact or overlay.active[job] or not overlay.counts.taken[job]:
        return False
    gone = {t: overlay.evictions[t].statement for t in jobs.tasks[job] if t in overlay.evictions}
    latest = max(gone.values(), default=0)
    lacks = [t for t in overlay.in_order(job) if status[t] == PENDING or gone.get(t) == latest]
    gang = jobs.gang[job]
    first = (lacks if gang is None else gang.next_pods({}, jobs.by_pod_set(lacks)))[:1]
    if not any(status[t] == RELEASING for t in first):
        return False
    tools.trail.note("down-for-gone", "pods of it were evicted in this cycle, and it is still down for them")
    return True


class Hope:
    """Whether scenarios of a part could make room at all; only those that could are simulated, and those that take pods
    twice. ``gone``: the recorded pods; ``fit``: whether all pods gone could have a place, where all must."""

    def __init__(
        self, overlay: Overlay, recorded: list[Group], gone: list[int], headroom: Headroom,
        fit: Callable[[list[int]], bool] | None,
    ) -> None:  # fmt: skip
        self._overlay = overlay
        self._recorded = recorded
        self._gone = gone
        self._headroom = headroom
        self._fit = fit
        self._twice = len(set(gone)) < len(gone)
        self._any_node: bool | None = None

    def of(self, recorded: set[int], extra: list[Group]) -> bool:
        """Of the scenario that takes ``extra`` beside what is recorded."""
        more = [t for group in extra for t in group.tasks]
        if self._twice or not recorded.isdisjoint(more):
            return True
        return self._headroom.enough(more) and (self._fit is None or self._fit([*self._gone, *more]))

    def of_any_node(self, by_node: Callable[[], dict[int, list[int]]]) -> bool:
        """Of one that takes victims of one node, whichever and however many. ``by_node``: all their pods."""
        if self._any_node is None:
            recorded, active = set(self._gone), self._overlay.active
            twice = self._twice or any(active[group.job] > len(group.tasks) for group in self._recorded)
            self._any_node = twice or any(
                self._headroom.enough([t for t in tasks if t not in recorded]) for tasks in by_node().values()
            )
        return self._any_node


class Reach:
    """Whether the first pod of an attempt, which fits nowhere as all stands, could have a place once victims are gone,
    node by node, under exact books. Never wrong where it says no.

    A scenario takes pods of one node, but those of a job that is on several (``_spread``). Pods of queues that may lose
    none for good (``_spares``) are back on their node in the end if they fit on no other, whatever a scenario takes. So
    the pod must fit what others leave, amount by amount, and share by share on GPUs."""

    def __init__(
        self, tools: Tools, job: int, victims: Sequence[int], fairness: Balance | None,
        fitting: dict[Hashable, list[int]], *, stay: bool,
    ) -> None:  # fmt: skip
        """``stay``: nobody may go for good; ``fitting``: by pod, and by what it is like, the nodes that it fits."""
        overlay = self._overlay = tools.overlay
        self._placer, self._fitting, self._memory = tools.placer, fitting, layout(overlay.state).gpu_memory
        self._pod = t = overlay.wanted(job)[0][0]
        asks, spares = (overlay.jobs.queue[job], total(overlay.wants, [t])), fairness and fairness.spares
        self._spares: Callable[[int], bool] = cache(partial(spares, *asks)) if spares else lambda _: stay
        self._fits = tools.placer.fits_somewhere(t, tools.placer.everywhere)
        self._asked = [(r, amount) for r, amount in overlay.nodes.columns[t] if amount > 0 and r != GPU]
        self._spread, self._by_node = set[int](), dict[int, list[int]]()
        self._all, self._opens = dict[tuple[int, bool], bool](), dict[int, bool]()
        self._lacks, self._given = dict[int, list[float]](), dict[tuple[int, bool], list[int]]()
        for tasks in (tools.victims.of(victim).tasks for victim in victims):
            if len(tasks) > 1 and len(places := {overlay.node[v] for v in tasks}) > 1:
                self._spread |= places
            for v in tasks:
                self._by_node.setdefault(overlay.node[v], []).append(v)
        self._nodes = {*open_nodes(tools, job), *self._by_node}

    def of_any(self) -> bool:
        """With all victims of some node gone."""
        return self._fits or any(self.of_all(n, stay=n not in self._spread) for n in self._by_node)

    def tells(self, n: int) -> bool:
        """Whether what the node offers is all that a scenario there offers."""
        return not self._fits and n not in self._spread

    def of_all(self, n: int, *, stay: bool) -> bool:
        """With all victims of the node gone."""
        if (n, stay) not in self._all:
            self._all[n, stay] = n in self._by_node and self.of(n, self._by_node[n], stay=stay)
        return self._all[n, stay]

    def of(self, n: int, victims: Sequence[int], *, stay: bool) -> bool:
        """With these gone, who are all there. ``stay``: but for those who are back in the end; else at any time."""
        overlay, allowed, given = self._overlay, self._placer.allowed(self._pod), self._given
        if n not in self._lacks:
            lacks = self._gpus(self._pod, n) - self._gpus_left(n)
            self._lacks[n] = [lacks, *(amount - overlay.free[r][n] for r, amount in self._asked)]
        sums = [0] * len(self._lacks[n])
        for v in victims:
            if (v, stay) not in given:
                given[v, stay] = self._gives(v, n, stay=stay)
            if gives := given[v, stay]:
                sums = [*map(add, sums, gives)]
        if not all(map(le, self._lacks[n], sums)) or not (allowed is None or allowed[n]):
            return False
        return not stay or self._packs(n, victims)

    def _gives(self, v: int, n: int, *, stay: bool) -> list[int]:
        """What the pod leaves to others where it is, GPUs first; nothing where it is back in the end."""
        nodes, jobs = self._overlay.nodes, self._overlay.jobs
        bound = stay and self._spares(jobs.queue[jobs.task_job[v]])
        if bound and all(m == n or m not in self._nodes for m in self._fit(v)):
            return []
        columns = dict(nodes.columns[v])
        return [self._gpus(v, n), *(columns.get(r, 0) for r, _ in self._asked)]

    def _gpus(self, t: int, n: int) -> int:
        """What the pod takes of GPUs of the node, in thousandths of a MiB."""
        overlay, portion = self._overlay, self._overlay.jobs.task_portion[t]
        if portion is None:
            return overlay.request[t][GPU] * self._memory[n]
        return portion.devices * overlay.gpus.need(t, n) * WHOLE

    def _gpus_left(self, n: int) -> float:
        """At least what of them nobody takes for good, likewise."""
        overlay, size = self._overlay, self._memory[n]
        held = overlay.gpus.held_for_good(n) if overlay.gpus.any else {}
        shared = inf if held is None else sum(max(0, size - amount) for amount in held.values())
        return max(0, overlay.free[GPU][n]) * size + shared * WHOLE

    def _packs(self, n: int, victims: Sequence[int]) -> bool:
        """Whether GPUs of the node, with these gone, hold the pod and the shares of those who are back in the end."""
        overlay, portions, size = self._overlay, self._overlay.jobs.task_portion, self._memory[n]
        back = [v for v in victims if portions[v] is not None and not self._given[v, True]]
        held = overlay.gpus.held_for_good(n) if back else None
        if held is None:
            return True
        whole = max(0, overlay.free[GPU][n])
        for v in victims:
            if portions[v] is not None:
                held |= {d: held[d] - overlay.gpus.need(v, n) for d in overlay.gpus.on(v) if d in held}
            elif self._given[v, True]:
                whole += overlay.request[v][GPU]
        rooms = [size] * (whole // WHOLE) + [size - amount for amount in held.values()]
        shares = [p for v in (*back, self._pod) if (p := portions[v]) is not None for _ in range(p.devices)]
        gpus = 0 if portions[self._pod] is not None else overlay.request[self._pod][GPU] // WHOLE
        return packs(rooms, [share.memory_on(size) for share in shares] + [size] * gpus)

    def opens(self, n: int) -> bool:
        """Whether somebody could move to the node, were it open."""
        if n not in self._opens:
            self._opens[n] = any(n in self._fit(v) for m, there in self._by_node.items() if m != n for v in there)
        return self._opens[n]

    def _fit(self, v: int) -> list[int]:
        if v in self._fitting:
            return self._fitting[v]
        overlay, allowed, placer = self._overlay, self._placer.allowed(v), self._placer
        kind = overlay.request[v], overlay.jobs.task_portion[v], id(allowed)
        if (fitting := self._fitting.get(kind)) is None:
            fitting = [m for m in overlay.nodes.fitting(v, placer.by_name) if allowed is None or allowed[m]]
        self._fitting[v] = self._fitting[kind] = fitting
        return fitting


class Solver:
    """One attempt to make room for one job that has pods to place. ``victims``: jobs that may be taken from, at least
    one, in order of the request. ``foregone``: see ``validators.Foregone``. ``stay``: a validator wants a place for all
    victims, so that one without ends a try; but who explains hears of all, and shares of GPUs leave traces."""

    def __init__(
        self, tools: Tools, job: int, victims: Sequence[int], validators: Sequence[ScenarioValidator],
        foregone: Foregone | None = None, *, stay: bool = False,
    ) -> None:  # fmt: skip
        self._tools = tools
        self._stay = stay and not tools.trail.counts and not tools.overlay.gpus.any
        self._overlay = tools.overlay
        self._job = job
        self._validators = validators
        self._foregone = foregone
        self._before = Standing(tools.order.frozen())
        self._victims = tools.victims.by_leaf(victims)
        self._open = set(open_nodes(tools, job))
        self._contenders = Contenders(self._overlay, tools.lines, job, 0)
        self._scenario = Scenario(self._overlay, job)
        self._order = VictimOrder(self._overlay, self._before, self._victims)
        self._evicted: Mark = self._overlay.checkpoint()
        self._kinds: dict[tuple[object, ...], int] = {}
        self._undisturbed: bool
        self._reach: Reach | None = None
        self._passed_over: list[tuple[int, list[int]]] = []

    def solve(self, reach: Reach | None = None) -> bool:
        """Whether the job found its place. True leaves the winning statement open; False leaves nothing behind.
        ``reach``: tells of the first pod."""
        self._reach = reach
        overlay, job = self._overlay, self._job
        tasks = list(overlay.wanted(job)[0])
        start = overlay.checkpoint()
        solved = Found([], set())
        for size in range(1, len(tasks) + 1):
            self._tools.trail.part(size, len(tasks))
            self._take_up(tasks[:size], solved.groups, start)
            solution = self._solve_part(self._open | solved.left)
            if solution is None:
                if self._tools.budget.spent:
                    self._tools.trail.cut_short()
                overlay.rollback(start)
                return False
            solved = solution
        return True

    def _take_up(self, part: list[int], recorded: list[Group], start: Mark) -> None:
        """Begin a part: the recorded victims evicted, the rest as it was."""
        overlay, scenario = self._overlay, self._scenario
        known, before, done = scenario.is_recorded, scenario.recorded_jobs, len(scenario.recorded)
        overlay.rollback(self._evicted)
        goes_on = recorded[:done] == scenario.recorded
        if not goes_on and not known <= {t for group in recorded for t in group.tasks}:
            overlay.rollback(start)
            known = set[int]()
        if not part[1:] or not scenario.go_on(part, recorded):
            scenario.start(part, recorded)
            self._order = VictimOrder(overlay, self._before, self._victims)
        new = recorded[done:] if goes_on else recorded
        for t in (t for group in new for t in group.tasks if t not in known):
            overlay.evict(t)
        self._update_contenders(before, {group.job for group in new} if goes_on else {*before, *scenario.recorded_jobs})
        self._evicted = overlay.checkpoint()

    def _update_contenders(self, before: dict[int, tuple[int, ...]], jobs: Iterable[int]) -> None:
        """``before``: which chunks of each job were recorded until now; ``jobs``: those of which others may be."""
        overlay, now = self._overlay, self._scenario.recorded_jobs
        for job in jobs:
            if job not in now:
                self._contenders.update(job, victim=False)
            elif before.get(job) != now[job]:
                self._contenders.update(job, victim=True)
                self._kinds |= self._kinds_of(overlay.wanted(job)[0][:1])

    def _kinds_of(self, tasks: Iterable[int]) -> dict[tuple[object, ...], int]:
        """One pod of each request and constraint among ``tasks``."""
        request, allowed = self._overlay.request, self._tools.placer.allowed
        return {(request[t], id(allowed(t))): t for t in tasks}

    def _solve_part(self, nodes: set[int]) -> Found | None:
        """What must go for the part, its statement open; None when no prefix will do."""
        scenario, trail, budget = self._scenario, self._tools.trail, self._tools.budget
        allowed, shares = self._tools.placer.allowed, self._overlay.gpus.any  # tries leave traces in books of shares
        bounded = self._tools.order.over_bounds(self._job, total(self._overlay.bounded, scenario.part)) is not None
        headroom = None if shares else Headroom(self._overlay, scenario.part, allowed, whole=not bounded)
        grew: bool | None = True
        doomed = self._doomed(scenario.elastic)
        while grew is not None and budget.spend():
            if doomed is None and grew and scenario.latest is not None:
                doomed = self._doomed((scenario.latest,))
            if doomed is not None and not scenario.recorded:
                trail.judged(scenario, doomed)
                return None
            if grew and scenario.room.enough():
                solution = self._try(nodes, headroom, doomed)
                if solution is not None:
                    return solution
            elif grew:
                trail.too_short(scenario)
            grew = scenario.grow(self._order)
        return None

    def _doomed(self, victims: Iterable[int]) -> Refusal | None:
        """Why this scenario and all longer ones are out, as far as what is listed of ``victims`` goes."""
        if self._foregone is None or self._overlay.gpus.any:
            return None
        return next((r for victim in victims if (r := self._foregone(self._scenario, victim)) is not None), None)

    def _try(self, nodes: set[int], headroom: Headroom | None, doomed: Refusal | None) -> Found | None:
        """One prefix: on each node of its latest victim, until the part fits somewhere. What must fail is simulated
        only where that leaves a trace: recorded pods evicted again."""
        overlay, scenario = self._overlay, self._scenario
        if scenario.latest is None:
            return self._simulate([], nodes)[1] if scenario.recorded else None
        there = scenario.nodes_of_latest()
        for node in there:
            if self._in_vain(node, nodes, alone=len(there) == 1):
                continue
            extra = scenario.victims_on(node)
            hopeless = doomed is not None or (headroom is not None and not headroom.enough(extra))
            if hopeless and scenario.is_recorded.isdisjoint(extra):
                if doomed is not None:
                    self._tools.trail.judged(scenario, doomed)
                else:
                    self._tools.trail.no_room(scenario, None)
                continue
            new = {overlay.node[t] for t in extra} - nodes
            nodes |= new
            fits, solution = self._simulate(extra, nodes)
            if fits:
                return solution
            nodes -= new
            if not self._tools.budget.spend():
                break
        return None

    def _in_vain(self, node: int, nodes: set[int], *, alone: bool) -> bool:
        """Whether it is plain that the pod finds no place there, or that somebody else finds none. The latter may leave
        the node open, which is seen to once it counts. ``alone``: a refusal ends nothing else."""
        reach, scenario = self._reach, self._scenario
        if reach is None or len(scenario.part) > 1:
            return False
        if reach.tells(node):
            opens = node not in nodes and reach.opens(node)
            if not reach.of_all(node, stay=alone and not opens):
                return True
            extra = scenario.victims_on(node)
            if not reach.of(node, extra, stay=False):
                return True
            if alone and not reach.of(node, extra, stay=True):
                if opens:
                    self._passed_over.append((node, extra))
                return True
        for n, passed_over in self._passed_over:
            if n not in nodes and self._simulate(passed_over, nodes | {n})[0]:
                nodes.add(n)
        self._passed_over.clear()
        return False

    def _simulate(self, extra: list[int], nodes: set[int]) -> tuple[bool, Found | None]:
        """Evict, place again, ask the validators. Whether the part fits, and its solution if they agree: a refusal
        ends the prefix, whatever other nodes might have offered."""
        overlay, scenario = self._overlay, self._scenario
        mark = overlay.checkpoint()
        for t in extra:
            overlay.evict(t)
        task_job = overlay.jobs.task_job
        extra_jobs = dict.fromkeys(task_job[t] for t in extra)
        scenario.taking = scenario.recorded_jobs.keys() | extra_jobs.keys() if extra_jobs else scenario.recorded_jobs
        if not self._place(extra_jobs, nodes):
            overlay.rollback(mark)
            return False, None
        refusal = refused_scenario(self._validators, scenario)
        self._tools.trail.judged(scenario, refusal)
        if refusal is not None:
            overlay.rollback(mark)
            return True, None
        return True, self._needed(extra, extra_jobs)

    def _place(self, extra_jobs: dict[int, None], nodes: set[int]) -> bool:
        """Victims and the part in the order of pending jobs, each where it fits; True when the part found its place."""
        overlay, scenario, placer = self._overlay, self._scenario, self._tools.placer
        budget, taking, part = self._tools.budget, scenario.taking, list(scenario.part)
        wants = self._job, total(overlay.wants, part)
        turns = Turns(overlay, self._tools.order, self._contenders, extra_jobs, wants)
        self._undisturbed, placed, awaited, lost = True, False, {self._job, *taking}, False
        while awaited and not (placed and lost) and (job := turns.pop()) is not None and budget.spend():
            awaited.discard(job)
            if job == self._job:
                if not placer.place_job(job, part, nodes, bind=False):
                    self._tools.trail.no_room(scenario, placer.refused)
                    return False
                placed = True
                if not self._room_left(extra_jobs, nodes):
                    return True
            elif job in taking:
                if placer.place_job(job, overlay.wanted(job)[0], nodes, bind=False):
                    self._undisturbed = False
                lost = lost or (self._stay and leaves_out(overlay, scenario.listed[job]))
        budget.spend(turns.left)  # their turns change nothing
        return placed and not budget.spent

    def _room_left(self, extra_jobs: Iterable[int], nodes: set[int]) -> bool:
        """Whether any victim could still find a place, by the first pod that it would place."""
        overlay, placer = self._overlay, self._tools.placer
        kinds = self._kinds | self._kinds_of(t for job in extra_jobs for t in overlay.wanted(job)[0][:1])
        return any(placer.fits_somewhere(t, nodes) for t in kinds.values())

    def _needed(self, extra: list[int], extra_jobs: dict[int, None]) -> Found:
        """The groups of which some pod did not stay where it was. Only nodes that somebody leaves are open to the
        next part, not those of a pod that its group draws along."""
        overlay, scenario = self._overlay, self._scenario
        if self._undisturbed:
            groups = [*scenario.recorded, *scenario.chunks_of(extra_jobs)]
            return Found(groups, {overlay.node[t] for group in groups for t in group.tasks})
        out = disturbed(overlay, [*(t for group in scenario.recorded for t in group.tasks), *extra])
        by_job: dict[int, dict[Group, None]] = {}
        group_of: dict[int, Group] = {}
        task_job = overlay.jobs.task_job
        for t in out:
            chosen = by_job.get(task_job[t])
            if chosen is None:
                chosen = by_job[task_job[t]] = {}
                group_of |= {other: group for group in scenario.groups[task_job[t]] for other in group.tasks}
            chosen[group_of[t]] = None
        left = {overlay.node_before(t) for t in out}
        return Found([group for groups in by_job.values() for group in groups], left)
