"""The search of consolidation, reclaim and preempt as of 0.17: scenarios from growing prefixes of the victim order, by
two generators, each for parts of the pending gang until one solves the whole.

A part that is solved is given back at once; what it needed is recorded, and goes first for the next part. Sources:
KAI-Scheduler ``actions/common/solvers/job_solver.go``, ``plugins/nodelocalgreedy``, ``plugins/multinodegang``.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cached_property, partial

from app.solver.engines.kai.chance import Chance, Map
from app.solver.engines.kai.job_order import Contenders, Turns, VictimOrder, sort_victims
from app.solver.engines.kai.jobs import NOWHERE, added_up, rank, total
from app.solver.engines.kai.overlay import Mark, Overlay
from app.solver.engines.kai.queue_order import Standing
from app.solver.engines.kai.rule_sets import Generator, ReleaseRules
from app.solver.engines.kai.scenario import FreeGpus, GpuRoom, Group, Headroom, Scenario, Tape, Trial, all_fit
from app.solver.engines.kai.solver import Budget, Found, Hope, Tools, disturbed, leaves_out, open_nodes
from app.solver.engines.kai.state import layout
from app.solver.engines.kai.validators import ScenarioValidator, refused_scenario

_Sizes = tuple[tuple[int, ...], tuple[int, ...]]


class Search:
    """One attempt to make room for one job that has pods to place. ``victims``: jobs that may be taken from, at least
    one, in order of the request. ``cap``: how many of them are drawn for each part. ``stay``: see ``Solver``."""

    def __init__(
        self, tools: Tools, job: int, victims: Sequence[int], validators: Sequence[ScenarioValidator],
        cap: int | None, *, stay: bool = False,
    ) -> None:  # fmt: skip
        self._tools = tools
        self._chance = tools.chance
        self._cap = cap
        self._overlay = tools.overlay
        self._stay = stay and not tools.trail.counts and not self._overlay.gpus.any
        self._rules = tools.overlay.state.configuration.policy.release
        self._job = job
        self._validators = validators
        self._before = Standing(tools.order.frozen())
        self._victims = victims
        self._candidates: Map[int] | None = None
        self._open = frozenset(open_nodes(tools, job))
        self._gpus = FreeGpus(self._overlay)
        self._start: Mark = self._overlay.checkpoint()
        self._failed: set[tuple[int, _Sizes]] = set()
        self._tasks: list[int] = []
        self._prefix: Prefix | None = None
        self._room: tuple[int, float] | None = None
        self._stands = False
        self._brief = not tools.trail.counts and not tools.chance.drawn
        self._paid = Budget() if tools.chance.drawn else None  # a scenario costs as much whether it is spared or not

    def _free(self) -> FreeGpus:
        """As they are: tries may leave traces in books of shares."""
        return FreeGpus(self._overlay) if self._overlay.gpus.any else self._gpus

    @cached_property
    def _tape(self) -> Tape:
        by_leaf = self._tools.victims.by_leaf(self._victims)
        return Tape(self._overlay, VictimOrder(self._overlay, self._before, by_leaf))

    def _order_of(self, victims: Iterable[int], entering: Iterable[int] | None = None) -> VictimOrder:
        by_leaf = sort_victims(self._overlay, map(self._tools.victims.of, victims))
        return VictimOrder(self._overlay, self._before, by_leaf, entering if self._chance.drawn else None)

    def solve(self) -> bool:
        """Whether the job found its place. True leaves the winning statement open; False leaves nothing behind that
        anybody knows of."""
        self._tasks = list(self._overlay.wanted(self._job)[0])
        if any(self._solve_with(generator) for generator in self._rules.generators):
            return not self._forgets()
        if self._tools.budget.spent:
            self._tools.trail.cut_short()
        return False

    def _forgets(self) -> bool:
        """Released 0.17 takes a solved gang for unsolved while some pod set lacks pods, be it one that the gang can do
        without; and then it neither carries the solution out nor gives it back."""
        overlay, gang = self._overlay, self._overlay.jobs.gang[self._job]
        if gang is None or overlay.exact or gang.every_set_satisfied(overlay.used_pods(self._job)):
            return False
        overlay.forget()
        self._tools.trail.note("statement-forgotten", "it was solved, and the released scheduler takes it for unsolved")
        return True

    def _solve_with(self, generator: Generator) -> bool:
        number, solved = len(self._tasks), Found([], set())

        def probe(size: int) -> bool:
            nonlocal solved
            solution = self._probe(generator, size, solved)
            if solution is not None:
                solved = solution
            return solution is not None

        if not self._rules.doubling:
            for size in range(1, number + 1):
                if size > 1:
                    self._overlay.rollback(self._start)
                if not probe(size):
                    return False
            return True
        return self._largest(probe) > 0 and (self._stands or probe(number))

    def _largest(self, probe: Callable[[int], bool]) -> int:
        """The size of the largest part that is known to have a solution, by doubling and then halving."""
        number, solved, size = len(self._tasks), 0, 1

        def solves(size: int) -> bool:
            has_solution = probe(size)
            if not self._stands:
                self._overlay.rollback(self._start)
            return has_solution

        while solves(size):
            solved = size
            if solved == number:
                return solved
            size = min(2 * size, number)
        failed = size
        while failed - solved > 1:
            size = (solved + failed) // 2
            if solves(size):
                solved = size
            else:
                failed = size
        return solved

    def _probe(self, generator: Generator, size: int, last: Found) -> Found | None:
        """What must go for the first ``size`` pods, its statement open; None where nothing will do. ``last``: what
        the last part needed."""
        trail, budget = self._tools.trail, self._tools.budget
        part, rank = self._part(size)
        self._stands = False
        trail.part(size, len(self._tasks))
        if not part:  # a set that needs one member less takes one without pods for satisfied
            return None
        contenders = Contenders(self._overlay, self._tools.lines, self._job, rank)
        hope = self._headroom(part, last.groups)
        nodes, self._room = set(self._open | last.left), None
        for extra, prefix in self._offers(generator, part, last.groups, nodes):
            hopeless = hope is not None and not hope.of(prefix.is_recorded, extra)
            cost = len(contenders.keys) + len(last.groups) + len(extra) if self._paid else 1
            if not (hopeless and self._brief) and not budget.spend(cost):
                return None
            if not (last.groups or any(group.tasks for group in extra)):
                continue  # nobody goes: no scenario
            if hope is not None and hopeless and not trail.counts:
                trail.no_room(prefix, None)
                if self._brief and generator == "node-local" and not hope.of_any_node(lambda: self._by_node):
                    return None
                continue
            key = size, self._signature(last.groups, extra)
            if key in self._failed:
                continue
            self._chance.choose_pods(self._overlay, size, *key[1])
            trial = self._trial(part, last.groups, extra)
            if hopeless:
                trail.no_room(trial, None)
                self._failed.add(key)
                continue
            solved, refused = self._simulate(trial, prefix, contenders, nodes)
            if solved is not None:
                self._stands = (
                    size == len(self._tasks) and nodes == {*self._open, *solved.left} and self.repeats(trial, solved)
                )
                return solved
            self._failed.add(key)
            if refused and not self._rules.own_scenario:
                prefix.ended = True
        return None

    def _headroom(self, part: list[int], recorded: list[Group]) -> Hope | None:
        """None where a try that fails says more than that, or leaves traces: queues near their bounds, books of shared
        GPUs."""
        overlay, tools = self._overlay, self._tools
        if overlay.gpus.any or tools.order.over_bounds(self._job, total(overlay.bounded, part)) is not None:
            return None
        gone = [t for group in recorded for t in group.tasks]
        headroom = Headroom(overlay, part, tools.placer.allowed, self._gpus, whole=self._brief, gone=gone)
        all_stay = self._stay and tools.trail.unheard and self._rules.own_scenario and self._rules.restores_nodes
        fit = partial(all_fit, overlay, self._gpus, part) if all_stay else None
        return Hope(overlay, recorded, gone, headroom, fit)

    @cached_property
    def _by_node(self) -> dict[int, list[int]]:
        """All pods that may be taken of the victims that have some on a node."""
        node, by_node = self._overlay.node, dict[int, list[int]]()
        for victim in map(self._tools.victims.of, self._victims):
            tasks = victim.tasks
            for n in {node[t] for t in tasks} if len(tasks) != 1 else (node[tasks[0]],):
                by_node.setdefault(n, []).extend(tasks)
        return by_node

    def _part(self, size: int) -> tuple[list[int], int]:
        """The first ``size`` pods in the order in which a gang of them would be placed; and how it competes: below
        itself, at it or above it."""
        overlay, jobs, job, part = self._overlay, self._overlay.jobs, self._job, self._tasks[:size]
        gang, carries = jobs.gang[job], self._rules.carries_running
        if gang is None:
            runs = overlay.active[job]
            return part, rank(runs, min(jobs.min_available[job], runs + size)) if carries else 0
        active = overlay.active_pods(job) if carries else {}
        of_part = jobs.by_pod_set(part)
        gang = gang.part({name: [*active.get(name, ()), *of_part.get(name, ())] for name in active | of_part})
        return gang.next_pods(active, of_part), gang.rank(active)

    def _signature(self, recorded: list[Group], extra: list[Group]) -> _Sizes:
        taken, more = ((t for group in groups for t in group.tasks) for groups in (recorded, extra))
        return tuple(sorted(taken)), tuple(sorted(more))

    def _offers(
        self, generator: Generator, part: list[int], recorded: list[Group], nodes: set[int]
    ) -> Iterator[tuple[list[Group], "Prefix"]]:
        """What the scenarios of a part take beside what is recorded, from prefix to prefix."""
        trail = self._tools.trail
        self._chance.turn()
        prefix = self._walked(part, recorded)
        grew: bool | None = True
        while grew is not None and self._tools.budget.spend():
            if grew and prefix.enough():
                prefix.ended = False
                for extra in self._choices(generator, prefix, nodes):
                    yield extra, prefix
                    if prefix.ended:
                        break
            elif grew:
                trail.too_short(prefix)
                if self._brief:
                    grew = prefix.far()
                    continue
            grew = prefix.go()

    def _walked(self, part: list[int], recorded: list[Group]) -> "Prefix":
        """Where the walk for a part begins: as far on as the last one's had come, where nothing before can do."""
        entering, last = self._entering(), self._prefix
        if entering is not None or not self._tape.serves(recorded):
            self._prefix = None
            order = self._order_of(entering or self._victims, entering)
            return Prefix(self._overlay, self._job, part, recorded, order, self._free())
        if last is None or not self._rules.own_scenario or not last.go_on(part, recorded):
            last = self._prefix = Prefix(self._overlay, self._job, part, recorded, self._tape, self._free())
        return last

    def _entering(self) -> list[int] | None:
        """The victims of a part as maps yield them, as many as the cap admits. None: all of them, the best first."""
        chance = self._chance
        if self._cap is not None and len(self._victims) > self._cap:
            chance.hangs()
            return chance.order(chance.some(self._victims, self._cap, self._overlay))
        if (jobs := chance.jobs(self._overlay)) is None:
            return None
        if self._candidates is None or self._cap is not None:
            self._candidates = chance.map(filter(set(self._victims).__contains__, jobs))
        return self._candidates.walk()

    def _trial(self, part: Sequence[int], recorded: list[Group], extra: list[Group]) -> Trial:
        """What is recorded is listed first, the pods of a group in the order of a map."""
        groups: dict[int, list[Group]] = {}
        listed: dict[int, list[int]] = {}
        for group in (*recorded, *extra):
            groups.setdefault(group.job, []).append(group)
        for group in recorded:
            tasks = group.tasks if self._overlay.exact else self._chance.pods(group.tasks)
            listed[group.job] = [*listed.get(group.job, ()), *tasks]
        for group in extra:
            listed[group.job] = [*listed.get(group.job, ()), *group.tasks]
        tasks = [t for group in extra for t in group.tasks]
        pods = sum(map(len, listed.values()))
        return Trial(self._job, part, recorded, groups, tasks, listed, self._overlay.jobs, pods)

    def repeats(self, trial: Trial, solution: Found) -> bool:
        """Whether to try a solution by itself is that very try over again. Who explains hears of both, and tries leave
        traces in books of shares."""
        rules, tasks = self._rules, [t for group in solution.groups for t in group.tasks]
        if not self._brief or self._overlay.gpus.any or not rules.own_scenario or not rules.nodes_of_recorded:
            return False
        if tasks != [*(t for group in trial.recorded for t in group.tasks), *trial.extra]:
            return False
        again = self._trial(trial.part, solution.groups, [])
        key = len(self._tasks), self._signature(solution.groups, [])
        room = GpuRoom(self._overlay, trial.part, self._gpus)
        room.give(tasks)
        return [*again.listed.items()] == [*trial.listed.items()] and key not in self._failed and room.enough()

    def _choices(self, generator: Generator, prefix: "Prefix", nodes: set[int]) -> Iterator[list[Group]]:
        if prefix.latest is None:
            if prefix.recorded:
                yield []
        elif generator == "node-local":
            yield from prefix.by_node(self._chance, self._rules)
        else:
            yield from self._by_nodes(prefix, nodes)

    def _by_nodes(self, prefix: "Prefix", nodes: set[int]) -> Iterator[list[Group]]:
        """Victims on growing sets of nodes: those that hold least first, enough of them to hold the part, then 1, 2, 4
        and so on more, up to all."""
        overlay, free, freed = self._overlay, self._free().counted, dict[int, float]()
        needs, node = list(map(overlay.gpus_of, prefix.part)), overlay.node
        for t in (t for group in prefix.recorded for t in group.tasks):
            freed[node[t]] = freed.get(node[t], 0) + overlay.gpus_of(t)
        capacity: dict[int, float] = {}  # in the order in which nodes are met
        there: dict[int, list[int]] = {}
        chunks = prefix.chunks
        for i, group in enumerate(chunks):
            for n, t in ((node[t], t) for t in group.tasks if node[t] != NOWHERE):
                capacity[n] = (capacity[n] if n in there else freed.get(n, 0) + free[n]) + overlay.gpus_of(t)
                there.setdefault(n, []).append(i)
        least = min(needs)
        ranked = sorted((n for n, most in capacity.items() if most >= least or not least), key=capacity.__getitem__)
        lacking = added_up(needs) - self._outside(free, freed, nodes, there.keys())
        covered, count = 0.0, 0
        while covered < lacking:
            if count == len(ranked):
                return
            covered += capacity[ranked[count]]
            count += 1
        step = 1
        while True:
            self._chance.choose(len(prefix.walked), count)
            yield self._chance.order(chunks[i] for i in dict.fromkeys(i for n in ranked[:count] for i in there[n]))
            if count >= len(ranked):
                return
            count, step = min(count + step, len(ranked)), step * 2

    def _outside(self, free: Sequence[float], freed: dict[int, float], nodes: set[int], there: Set[int]) -> float:
        """What is free on ``nodes`` but those of ``there``, with what recorded victims free. ``nodes`` stay or become
        more while a part is solved."""
        if self._overlay.gpus.any:
            return added_up(have for n in sorted(nodes - there) for have in (free[n], freed.get(n, 0)))
        if self._room is None or self._room[0] != len(nodes):
            self._room = len(nodes), sum(free[n] for n in nodes)
        given = sum(amount for n, amount in freed.items() if n in nodes and n not in there)
        return self._room[1] - sum(free[n] for n in there if n in nodes) + given

    def _simulate(
        self, trial: Trial, prefix: "Prefix", contenders: Contenders, nodes: set[int]
    ) -> tuple[Found | None, bool]:
        """Evict, place again, ask the validators. The solution, and whether a validator refused one."""
        overlay, rules, trail = self._overlay, self._rules, self._tools.trail
        recorded = [t for group in trial.recorded for t in group.tasks]
        mark = overlay.checkpoint()
        opened = {overlay.node[t] for t in (*(recorded if rules.nodes_of_recorded else ()), *trial.extra)} - nodes
        for t in (*recorded, *trial.extra):
            overlay.evict(t)
        nodes |= opened
        prefix.taking = trial.listed.keys()
        scenario = trial if rules.own_scenario else prefix
        placed = self._place(trial, scenario, contenders, nodes)
        if placed:
            refusal = refused_scenario(self._validators, scenario)
            trail.judged(scenario, refusal)
            if refusal is None:
                return self._needed(trial, recorded), False
        overlay.rollback(mark)
        nodes -= opened if not placed or rules.restores_nodes else set()
        return None, placed

    def _place(self, trial: Trial, scenario: Scenario | Trial, contenders: Contenders, nodes: set[int]) -> bool:
        """Victims and the part in the order of pending jobs, each where it fits; True when the part found its place."""
        overlay, placer, budget = self._overlay, self._tools.placer, self._paid or self._tools.budget
        part, taking = list(trial.part), dict.fromkeys(trial.listed)
        wants = self._job, total(overlay.wants, part)
        turns = Turns(overlay, self._tools.order, contenders, taking, wants, self._chance)
        placed, awaited, lost = False, {self._job, *taking}, False
        while awaited and not (placed and lost) and (job := turns.pop()) is not None and budget.spend():
            awaited.discard(job)
            if job == self._job:
                if not placer.place_job(job, part, nodes, bind=False):
                    self._tools.trail.no_room(scenario, placer.refused)
                    return False
                placed = True
                if not self._room_left(trial, nodes):
                    break
            elif job in taking:
                if wanted := overlay.wanted(job)[0]:
                    placer.place_job(job, wanted, nodes, bind=False)
                lost = lost or (self._stay and leaves_out(overlay, scenario.listed.get(job, ())))
        budget.spend(turns.left)  # their turns change nothing
        return placed and not budget.spent

    def _room_left(self, trial: Trial, nodes: set[int]) -> bool:
        """Whether any victim could still find a place: some pod of each request and constraint is asked for."""
        overlay, placer = self._overlay, self._tools.placer
        if overlay.gpus.any or any(overlay.pending[job] for job in trial.listed):
            return True
        taken = (t for tasks in trial.listed.values() for t in tasks)
        kinds = {(overlay.request[t], id(placer.allowed(t))): t for t in taken}
        return any(placer.fits_somewhere(t, nodes) for t in kinds.values())

    def _needed(self, trial: Trial, recorded: list[int]) -> Found:
        """The groups of which some pod did not stay where it was, and the nodes that somebody leaves."""
        overlay = self._overlay
        out = disturbed(overlay, (*recorded, *trial.extra))
        chosen: dict[int, dict[Group, None]] = {}
        for t in out:
            job = overlay.jobs.task_job[t]
            of_job = chosen.setdefault(job, {})
            if not any(t in group.tasks for group in of_job):
                of_job[next(group for group in trial.groups[job] if t in group.tasks)] = None
        left = {overlay.node_before(t) for t in out}
        return Found([group for of in self._chance.order(chosen) for group in chosen[of]], left)


class Prefix(Scenario):
    """A growing prefix of the victim order for one part. ``chunks``: in that order, recorded ones left out. ``ended``:
    whether a refusal ends what it still offers."""

    def __init__(
        self, overlay: Overlay, job: int, part: list[int], recorded: list[Group], order: VictimOrder | Tape,
        gpus: FreeGpus | None = None,
    ) -> None:  # fmt: skip
        super().__init__(overlay, job, gpus)
        self.start(part, recorded)
        self.ended = False
        self._order = order
        self._at = 0
        self._twice = sum(len(group.tasks) for group in recorded) > len(self.is_recorded)

    def go(self) -> bool | None:
        if not isinstance(self._order, Tape):
            return self.grow(self._order)
        group = self._order.step(self._at)
        if group is None:
            return None
        self._at += 1
        tasks = group.tasks
        if tasks:
            self.walked.append(group)
        if not tasks or not self.is_recorded.isdisjoint(tasks):
            return False
        self._take_up(group)
        return True

    def far(self) -> bool | None:
        """``go`` until enough is listed; None where that is never."""
        if not isinstance(self._order, Tape) or self._twice:
            while (grew := self.go()) is not None:
                if grew and self.enough():
                    return True
            return None
        looked, passed = self.room.give_until_enough(self._order.walk(self._at), self.is_recorded)
        self.walked += [group for group in self._order.steps[self._at : self._at + looked] if group.tasks]
        self._at += looked
        self._list(passed)
        self._put_on_nodes(passed)
        return True if passed and self.enough() else None

    def go_on(self, part: Sequence[int], recorded: Sequence[Group]) -> bool:
        """As any scenario, on a tape that serves; but pods of several sizes are walked again: more room may take places
        from them. And doubles are added up in order."""
        overlay = self.overlay
        if overlay.in_doubles or len(set(map(overlay.gpus_of, part))) > 1 or not super().go_on(part, recorded):
            return False
        for group in recorded:
            self.groups[group.job][0] = group
        self.ended = False
        return True

    @property
    def chunks(self) -> list[Group]:
        """What it lists beyond the recorded victims, chunk by chunk."""
        return [group for group in self.walked if self.is_recorded.isdisjoint(group.tasks)]

    def enough(self) -> bool:
        """Whether KAI's filter lets it through. A pod that is recorded twice breaks the filter's books, and then it
        lets everything through."""
        return self._twice or self.room.enough()

    def by_node(self, chance: Chance, rules: ReleaseRules) -> Iterator[list[Group]]:
        """Victims by node of the latest one: of every job with a chunk there all that is listed."""
        overlay = self.overlay
        assert self.latest is not None
        seen: set[frozenset[int]] = set()
        here = {overlay.node[t] for t in overlay.jobs.tasks[self.latest]} - {NOWHERE}
        for n in sorted(here, key=overlay.node_names.__getitem__) if rules.nodes_by_name else self.nodes_of_latest():
            groups = list(self._groups_on(n, chance, joined=rules.joined_chunks))
            tasks = frozenset(t for group in groups for t in group.tasks)
            if tasks and tasks not in seen:
                seen.add(tasks)
                yield groups

    def _groups_on(self, n: int, chance: Chance, *, joined: bool) -> Iterable[Group]:
        """Chunk by chunk as listed; recorded pods are taken once more, and last. Exact books take nobody twice, and
        know no order of maps."""
        chance.choose(len(self.walked), layout(self.overlay.state).place[n])
        chance.may_hang(lambda: self.overlay.gpus.any and len(list(self.jobs_on(n))) > 1)
        for job in self.jobs_on(n) if self.overlay.exact else chance.order(self.jobs_on(n)):
            groups = self.groups[job]
            if self.overlay.exact:
                groups = [group for group in groups if self.is_recorded.isdisjoint(group.tasks)]
            elif chance.drawn:
                groups = [Group(job, chance.pods(group.tasks)) for group in groups]
            if not joined or len(groups) == 1:
                yield from groups
            else:
                last = sorted(groups, key=lambda group: not self.is_recorded.isdisjoint(group.tasks))
                yield Group(job, [t for group in last for t in group.tasks])
