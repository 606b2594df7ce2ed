"""KAI Scheduler as an engine: decisions by one cycle over all asks or for every ask alone, rounds, the wiring, and a
compiled state after a delta, in which what the delta doesn't name is taken over.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from functools import partial
from heapq import nlargest
from itertools import accumulate
from typing import Any, TypeVar

from app.solver import kubernetes
from app.solver.compiled import ResourceIndex
from app.solver.delta import Changes
from app.solver.engine import Engine
from app.solver.engines.kai import FACTS
from app.solver.engines.kai.actions import Cycle, allocate, begin, consolidation, preempt, reclaim, stale_gang_eviction
from app.solver.engines.kai.answer import Draw, answer, drawn, effective_settings, findings, shares, with_chance
from app.solver.engines.kai.chance import (
    DRAWS,
    MOST_DRAWS,
    MOST_PODS,
    MOST_PODS_PROBED,
    MOST_STEPS,
    PROBES,
    Chance,
    HangsOnOrder,
    Trail,
    Unheard,
)
from app.solver.engines.kai.configuration import (
    CompiledConfiguration,
    changed,
    compile_configuration,
    noted,
    undone,
)
from app.solver.engines.kai.explain import Recorder
from app.solver.engines.kai.gangs import Gang
from app.solver.engines.kai.jobs import (
    BY_JOB,
    NOWHERE,
    Columns,
    Jobs,
    Readable,
    Share,
    add_workloads,
    job_problems,
    task_problems,
)
from app.solver.engines.kai.overlay import Bookmark
from app.solver.engines.kai.placing import kinds_of, overfilled
from app.solver.engines.kai.preemptibility import judge, preemptibility
from app.solver.engines.kai.rounds import KaiRounds
from app.solver.engines.kai.rule_sets import RULES
from app.solver.engines.kai.solver import Budget
from app.solver.engines.kai.state import (
    Baseline,
    CompiledState,
    Kind,
    Resident,
    Victim,
    baseline,
    columns_of,
    compile_state,
    homeless,
    is_plain,
    layout,
    sums_over,
    upwards,
    usage_over_time,
)
from app.solver.model.decision import Decision, Plan, Result, each_alone
from app.solver.model.kai import Action
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask, State, Workload
from app.solver.question import Question, safe_point

T = TypeVar("T")
Edit = tuple[int, int, int, int]
"""``[a, b)`` of the old table becomes ``[c, d)`` of the fresh one."""
_Touched = tuple[int, int, Workload | None]
"""A job of the old table; how many of it are replaced: 1, or 0 where something comes before it; by what."""

_BY_JOB = (*BY_JOB, "ask")
_BY_TASK = ("task_name", "task_node", "task_state", "task_request", "task_wire", "task_portion")


def update(loaded: CompiledState, configured: CompiledConfiguration, state: State, changes: Changes) -> CompiledState:
    """``state`` compiled, from what was compiled before where that will do. Raises what ``compile_state`` raises."""
    compiled = followed(loaded, configured, state, changes)
    return compile_state(configured, state) if compiled is None else compiled


def followed(
    loaded: CompiledState, configured: CompiledConfiguration, state: State, changes: Changes
) -> CompiledState | None:
    """``state`` compiled; None where it has to be compiled anew: nodes changed, or a request names a resource that no
    node has, or can't be read. Raises KeyError, QuantityError."""
    old, width = loaded.jobs, loaded.named_by_nodes
    if changes.nodes or configured is not loaded.configuration or len(loaded.resources) != width:
        return None
    touched = _touched(old, changes)
    now = [new for _, _, new in touched if new is not None]
    resources = ResourceIndex(loaded.resources.names)
    fresh = Jobs()
    add_workloads(fresh, now, configured.tree.index, loaded.node_index, Columns(resources, configured.policy.release),
                  configured.policy.release, layout(loaded).gpu_memory)  # fmt: skip
    if len(resources) != width or not _readable(now):
        return None
    jobs_edits, task_edits = _edits(old, fresh, touched)
    columns = ((name, edits) for of, edits in ((_BY_JOB, jobs_edits), (_BY_TASK, task_edits)) for name in of)
    spliced: dict[str, Any] = {
        name: _spliced(getattr(old, name), getattr(fresh, name), edits) for name, edits in columns
    }
    jobs = Jobs(**spliced)
    _number(jobs, _spliced(old.tasks, fresh.tasks, jobs_edits))
    return CompiledState(
        configuration=configured, resources=loaded.resources, nodes=state.nodes, node_name=loaded.node_name,
        node_index=loaded.node_index, capacity=loaded.capacity, jobs=jobs, named_by_nodes=width,
        workloads=state.workloads, usage=usage_over_time(configured, state),
        resident=_resident(loaded, jobs, fresh, jobs_edits, task_edits),
    )  # fmt: skip


def _readable(workloads: Sequence[Workload]) -> bool:
    readable = Readable()
    if any(True for w in workloads for _ in job_problems(w, ())):
        return False
    return all(task.count == 1 and readable(task.requests) for w in workloads for task in w.tasks)


def _touched(old: Jobs, changes: Changes) -> list[_Touched]:
    """In the order of ids."""
    touched: list[_Touched] = []
    for _, before, new in changes.workloads:
        if before is not None:
            touched.append((old.by_id[before.id], 1, new))
        elif new is not None:
            touched.append((bisect_left(old.id, new.id), 0, new))
    return sorted(touched, key=lambda entry: (entry[0], entry[1], entry[2].id if entry[2] is not None else ""))


def _edits(old: Jobs, fresh: Jobs, touched: list[_Touched]) -> tuple[list[Edit], list[Edit]]:
    """Of the job columns and of the task columns, in order."""
    ends = [0, *accumulate(map(len, fresh.tasks))]
    jobs: list[Edit] = []
    tasks: list[Edit] = []
    job = start = 0  # in the old tasks: the first of job ``job``
    added = 0
    for j, width, new in touched:
        start += sum(map(len, old.tasks[job:j]))
        job = j + width
        end = start + (len(old.tasks[j]) if width else 0)
        until = added + (new is not None)
        jobs.append((j, job, added, until))
        tasks.append((start, end, ends[added], ends[until]))
        start, added = end, until
    jobs.append((len(old.id), len(old.id), added, added))  # what is left of the old ones follows
    tasks.append((len(old.task_name), len(old.task_name), ends[added], ends[added]))
    return jobs, tasks


def _spliced(old: list[T], fresh: list[T], edits: list[Edit]) -> list[T]:
    out: list[T] = []
    done = 0
    for a, b, c, d in edits:
        out += old[done:a]
        out += fresh[c:d]
        done = b
    return out


def _number(jobs: Jobs, tasks: list[list[int]]) -> None:
    """Number the pods by job; ``tasks`` tells how many each has."""
    first = 0
    for j, of in enumerate(tasks):
        jobs.tasks.append(of if of and of[0] == first else list(range(first, first + len(of))))
        jobs.task_job += [j] * len(of)
        first += len(of)
    jobs.by_id = dict(zip(jobs.id, range(len(jobs.id)), strict=True))


def _resident(
    loaded: CompiledState, jobs: Jobs, fresh: Jobs, jobs_edits: list[Edit], task_edits: list[Edit]
) -> Resident:
    """What decisions found out, for the jobs that are as they were."""
    before, old = loaded.resident, loaded.jobs
    baseline = _baseline(loaded, fresh, jobs_edits, task_edits)
    resident = Resident(baseline=baseline, layout=before.layout, asks=before.asks, likes=before.likes,
                        divided=before.divided, in_line=before.in_line)  # fmt: skip
    if baseline is not None:
        gone = (t for a, b, _, _ in task_edits for t in range(a, b))
        touched = {*(old.task_node[t] for t in gone), *fresh.task_node} - {NOWHERE}
        resident.alike = _alike(before, baseline, sorted(touched))
    known_order, known_victims = before.order.copy(), before.victims.copy()
    if not known_order and not known_victims:
        return resident
    done = shift = 0
    for a, b, c, d in jobs_edits:
        for j in range(done, a):
            now = j + shift
            by = jobs.tasks[now][0] - old.tasks[j][0] if old.tasks[j] else 0
            if (order := known_order.get(j)) is not None:
                resident.order[now] = [t + by for t in order] if by else order
            if (victim := known_victims.get(j)) is not None:
                resident.victims[now] = _renumbered(victim, now, by) if by or shift else victim
        shift += (d - c) - (b - a)
        done = b
    return resident


def _alike(before: Resident, after: Baseline, touched: list[int]) -> dict[Kind, list[int]] | None:
    """``state.alike`` where only ``touched`` nodes are others."""
    if before.alike is None or before.layout is None or before.baseline is None:
        return None
    kinds, place = before.alike.copy(), before.layout.place
    were, are = (kinds_of(base, before.layout, touched) for base in (before.baseline, after))
    for n, was, now in zip(touched, were, are, strict=True):
        if was != now:
            kinds[was] = [other for other in kinds[was] if other != place[n]]
            if not kinds[was]:
                del kinds[was]
            kinds[now] = sorted((*kinds.get(now, ()), place[n]))
    return kinds


def _renumbered(victim: Victim, job: int, by: int) -> Victim:
    priority, rank, created, uid, _ = victim.key
    return Victim(
        job, (priority, rank, created, uid, job), [t + by for t in victim.tasks], victim.holds, others=victim.others
    )


def _baseline(loaded: CompiledState, fresh: Jobs, jobs_edits: list[Edit], task_edits: list[Edit]) -> Baseline | None:
    """The sums of before, less the jobs that went, with those that came; None where they have to be worked out anew."""
    before = loaded.resident.baseline
    if before is None or before.homeless or homeless(fresh):
        return None
    old, tree = loaded.jobs, loaded.configuration.tree
    taken = list(columns_of(fresh.task_request, fresh.task_portion, {}))
    sums = sums_over(tree, layout(loaded).lacking, before.free, before.idle)
    for a, b, _, _ in jobs_edits:
        for j in range(a, b):
            sums.count(old, j, before.columns, -1)
    counted = [sums.count(fresh, j, taken, 1) for j in range(len(fresh.id))]
    return Baseline(
        active=_spliced(before.active, [active for active, _ in counted], jobs_edits),
        used=_spliced(before.used, [used for _, used in counted], jobs_edits),
        columns=_spliced(before.columns, taken, task_edits), free=sums.free, idle=sums.idle,
        allocated=_plus(before.allocated, upwards(tree, sums.allocated)),
        fixed=_plus(before.fixed, upwards(tree, sums.fixed)), homeless=[],
    )  # fmt: skip


def _plus(before: list[Share], change: list[Share]) -> list[Share]:
    return [(a[0] + b[0], a[1] + b[1], a[2] + b[2]) for a, b in zip(before, change, strict=True)]


def plan(state: CompiledState, question: Question) -> Result:
    """Decide. Raises InvalidInput for pods that KAI can't read or Kubernetes would refuse, and for running ones without
    a node."""
    new = check_asks(state, question.asks)
    if question.mode == "cycle":
        result = _answer(state, question.asks, question, Budget())
        are_sound(state, new)
        return result
    return _each_alone(state, question)


def check_asks(state: CompiledState, asks: Sequence[Ask]) -> list[Ask]:
    """Those of which nobody knows yet that they are sound. Raises InvalidInput as ``plan`` does."""
    problems, new = list[Problem](), list[Ask]()
    known, readable, gangs = state.resident.asks, Readable(), any(state.jobs.gang)
    unsure = {a for a, ask in enumerate(asks) if (read := known.get(id(ask))) is None or not read.sound}
    for a in range(len(asks)) if gangs else sorted(unsure):
        ask, sound = asks[a], a not in unsure
        if not sound:
            new.append(ask)
            sound = is_plain(ask, readable)
        if sound and not (gangs and _gang_of(state, ask) is not None):
            continue
        problems += job_problems(ask, ("asks", a))
        problems += _strangers(state, ask, ("asks", a))
        problems += task_problems(ask.tasks, ("asks", a))
        for t, task in enumerate(ask.tasks):
            problems += kubernetes.problems(task, ("asks", a, "tasks", t))
    homeless = baseline(state).homeless
    place = {w.id: i for i, w in enumerate(state.workloads)} if homeless else {}
    for j, i in homeless:
        where = pointer("state", "workloads", place[state.jobs.id[j]], "tasks", i, "node")
        problems.append(Problem(pointer=where, detail="a running pod is on a node: say which"))
    if problems:
        raise InvalidInput(problems)
    return new


def are_sound(state: CompiledState, asks: Sequence[Ask]) -> None:
    """What was checked and read need not be checked again."""
    known = state.resident.asks
    for ask in asks:
        if (read := known.get(id(ask))) is not None:
            read.sound = True


def _gang_of(state: CompiledState, ask: Ask) -> Gang | None:
    """That of the workload which the ask grows."""
    j = state.jobs.by_id.get(ask.workload) if ask.workload is not None else None
    return None if j is None else state.jobs.gang[j]


def _strangers(state: CompiledState, ask: Ask, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Pods of an ask that are in none of the sub groups of the workload that it grows."""
    gang = _gang_of(state, ask)
    if gang is None:
        return
    names = {pod_set.name for pod_set in gang.pod_sets}
    for t, task in enumerate(ask.tasks):
        if task.sub_group not in names:
            detail = (
                "its workload has sub groups: say which" if task.sub_group is None else "its workload has none of it"
            )
            yield Problem(pointer=pointer(*path, "tasks", t, "sub_group"), detail=detail)


def _each_alone(state: CompiledState, question: Question) -> Result:
    decided: list[tuple[Decision, Plan]] = []
    budget = Budget()
    for ask in question.asks:
        safe_point()
        alone = _answer(state, [ask], question, budget)
        decided.append((alone.decisions[0], alone.plan))
    return each_alone(decided)


_SMALL = 250
"""Pods times nodes up to which 40 draws that don't tell which outcome is the likeliest are followed by more."""


def _answer(state: CompiledState, asks: Sequence[Ask], question: Question, budget: Budget) -> Result:
    pods = len(state.jobs.task_job) + sum(len(ask.tasks) for ask in asks)
    runs, few = Runs(state, asks, question), MOST_PODS // max(1, pods)
    probes = min(PROBES, MOST_PODS_PROBED // max(1, pods))
    try:
        cycle, chance = runs.undrawn(budget, stops=question.draws and few > 1, looks=probes > 0)
    except HangsOnOrder:
        usual = None
    else:
        result = answer(cycle, question)
        if chance.matters:
            return with_chance(result, (), 0)
        if not chance.may_matter:
            return result
        usual = result, cycle.outcome()
        if not runs.come_to_others(usual[1], probes):
            return result
    most = MOST_DRAWS if pods * len(state.nodes) <= _SMALL else DRAWS
    draws, number, heard = _drawn(runs, min(few, DRAWS), most, question)
    if usual is not None and (stays := _unless_less_likely(draws, usual[1])):
        return with_chance(usual[0], stays, number)
    again = Runs(state, asks, question)
    if not draws or draws[0].overfills:
        cycle, _ = again.undrawn(budget)
        return with_chance(answer(cycle, question), [drawn(cycle, cycle.outcome(), 0), *draws], number)
    if heard is None or draws[0].seed:
        heard = answer(again.drawn(draws[0].seed, Budget(MOST_STEPS), heard=True), question)
    return with_chance(heard, draws, number)


def _unless_less_likely(draws: list[Draw], outcome: Hashable) -> list[Draw] | None:
    """The draws with those of ``outcome`` in front. None where there are none, or it overfills a node, or the first one
    is the likelier for certain."""
    of_it = next((draw for draw in draws if draw.outcome == outcome and not draw.overfills), None)
    if of_it is None or (of_it is not draws[0] and _told_apart((draws[0], of_it))):
        return None
    return [of_it, *(draw for draw in draws if draw is not of_it)]


def _drawn(runs: "Runs", few: int, most: int, question: Question) -> tuple[list[Draw], int, Result | None]:
    """What the cycle can come to, the likeliest first that overfills no node; how many draws tell so; and what the
    first of them answers. After ``few`` draws of which no outcome has the majority there are too many to tell."""
    outcomes: dict[Hashable, Draw] = {}
    number, steps = 0, Budget(MOST_STEPS)
    heard: Result | None = None
    while (
        number < few
        or (number < DRAWS and 2 * max(draw.times for draw in outcomes.values()) > number)
        or (DRAWS <= number < most and not _told_apart(outcomes.values()))
    ):
        if number % DRAWS == 0:
            steps = Budget(MOST_STEPS)
        cycle = runs.drawn(number, steps, heard=number == 0)
        if steps.spent:
            break
        outcome = cycle.outcome()
        if outcome not in outcomes:
            outcomes[outcome] = drawn(cycle, outcome, number)
        outcomes[outcome].times += 1
        heard = heard or answer(cycle, question)
        number += 1
    return sorted(outcomes.values(), key=lambda draw: (draw.overfills, -draw.times)), number, heard


def _told_apart(outcomes: Collection[Draw]) -> bool:
    """Whether the likeliest outcome leads the next one by two standard deviations."""
    first, second = nlargest(2, (0, *(draw.times for draw in outcomes)))
    return (first - second) ** 2 > 4 * (first + second)


def _trail(question: Question) -> Trail:
    if question.brief and not question.ordered:
        return Unheard()
    return Trail() if question.explain == "none" else Recorder()


_ACTIONS: dict[Action, Callable[[Cycle], None]] = {
    "allocate": allocate, "consolidation": consolidation, "reclaim": reclaim, "preempt": preempt,
    "stalegangeviction": stale_gang_eviction,
}  # fmt: skip


class Runs:
    """Runs of one cycle: one without draws, others each with orders of maps of its own. Actions that come before
    anything could be drawn are run once for all of them."""

    def __init__(self, state: CompiledState, asks: Sequence[Ask], question: Question) -> None:
        self._begin = partial(begin, state, asks, question.now)
        self._question = question
        self._actions = state.configuration.policy.actions
        policy = state.configuration.policy
        self._shares = policy.release.draws and question.draws
        self._looks = self._shares and not policy.rules.exact
        self._common: tuple[Cycle, Bookmark] | None = None
        self._done = self._spent = 0

    def undrawn(self, budget: Budget, *, stops: bool = False, looks: bool = False) -> tuple[Cycle, Chance]:
        """The run with orders as they come in, and whether a choice of it hangs on one or, with ``looks``, may. Where a
        bookkeeping habit of KAI's would end in an overfull node, the cycle runs without it. Raises HangsOnOrder with
        ``stops``."""
        chance = Chance(stops=stops, looks=looks and self._looks)
        cycle = self._from_start(budget, chance, _trail(self._question))
        if overfilled(cycle.overlay):
            trail = _trail(self._question)
            cycle = self._go_on(self._begin(budget=budget, trail=trail, chance=chance, strict=True), 0)
            chance.may_matter = False  # a draw has that habit
        return cycle, chance

    def come_to_others(self, outcome: Hashable, number: int) -> bool:
        """Whether one of so many draws, of which nobody hears, comes to another outcome."""
        steps = Budget(MOST_STEPS)
        draws = (self.drawn(seed, steps, heard=False).outcome() for seed in range(number))
        return any(drawn != outcome and not steps.spent for drawn in draws)

    def drawn(self, seed: int, budget: Budget, *, heard: bool) -> Cycle:
        """One with draws, which stands until the next one. One at most may be heard: it goes on with what was heard of
        the actions that all share."""
        unheard = None if heard else Unheard()
        if self._common is None:
            return self._from_start(budget, Chance(seed), unheard or _trail(self._question))
        before, bookmark = self._common
        before.overlay.go_back(bookmark)
        budget.spend(self._spent)
        cycle = before.again(budget, before.tools.chance.again(seed), unheard or before.tools.trail)
        return self._go_on(cycle, self._done)

    def _from_start(self, budget: Budget, chance: Chance, trail: Trail) -> Cycle:
        left = budget.left
        cycle = self._begin(budget=budget, trail=trail, chance=chance, strict=False)
        for done, action in enumerate(self._actions):
            if self._shares and chance.untouched and not cycle.overlay.by_steps:
                common = cycle.again(budget, chance.again(0), trail.again())
                self._common = common, cycle.overlay.keep()
                self._done, self._spent = done, left - budget.left
            _ACTIONS[action](cycle)
        return cycle

    def _go_on(self, cycle: Cycle, done: int) -> Cycle:
        for action in self._actions[done:]:
            _ACTIONS[action](cycle)
        return cycle


ENGINE: Engine[CompiledConfiguration, CompiledState] = Engine(
    facts=FACTS,
    rules=RULES,
    configure=compile_configuration,
    load=compile_state,
    update=update,
    plan=plan,
    rounds=KaiRounds,
    shares=shares,
    preemptibility=preemptibility,
    judge=judge,
    changed=changed,
    undone=undone,
    noted=noted,
    effective_settings=effective_settings,
    findings=findings,
)
"""Queues with deserved quotas, fair shares, minimum runtimes; actions on nodes with whole GPUs."""
