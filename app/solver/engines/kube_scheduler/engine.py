"""kube-scheduler as an engine: from a question to decisions, the order of one cycle, its rounds, and the rules that
answers name.

Files of rules are those of ``pkg/scheduler`` in Kubernetes 1.37.2.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import islice
from operator import attrgetter
from typing import Any, ClassVar

from msgspec.structs import replace

from app.solver.delta import Changes
from app.solver.engine import Engine
from app.solver.engines.kube_scheduler import FACTS
from app.solver.engines.kube_scheduler.answer import (
    MOST_STEPS,
    changes,
    decision,
    effective_settings,
    findings,
    judge,
    plan_for,
    preemptibility,
    sampled,
    shares,
)
from app.solver.engines.kube_scheduler.attempt import MANY, Chance, Outcome, attempt, attempt_unseen
from app.solver.engines.kube_scheduler.importance import Attempt, Queue, attempts_of
from app.solver.engines.kube_scheduler.pods import Pod
from app.solver.engines.kube_scheduler.victims import ranks
from app.solver.engines.kube_scheduler.world import (
    CompiledConfiguration,
    CompiledState,
    World,
    compile_state,
    followed,
    update,
)
from app.solver.model import kube_scheduler as wire
from app.solver.model.configuration import Configuration
from app.solver.model.decision import PlannedEviction, Result, each_alone
from app.solver.model.problems import PROPOSALS, InvalidInput, Problem, Rule, pointer
from app.solver.model.request import Options, RunOptions
from app.solver.model.state import Ask, Node, Reservation, State, Task, TaskState, Workload
from app.solver.question import Question, safe_point
from app.solver.rounds import Ahead as AnyAhead
from app.solver.rounds import Holds, PlacedRounds, Turn, Unit
from app.solver.rounds import Outcome as Round

_NO_OPTIONS = Options()


class Ahead(AnyAhead[CompiledState]):
    """See ``Rounds.ahead``. Follows for itself, without what tells states and their requests apart."""

    def __init__(self, loaded: CompiledState) -> None:
        self._loaded = loaded
        nodes, budgets = [machine.node for machine in loaded.machines], [budget.given for budget in loaded.budgets]
        self._state = State(nodes=nodes, disruption_budgets=budgets)
        self._reservations: list[Reservation] | None = None
        self._moved: dict[str, Workload | None] = {}
        settings, count = loaded.configuration.settings, len(loaded.machines)
        all_of_them = settings.min_candidate_nodes_absolute >= count or settings.min_candidate_nodes_percentage == 100
        self._offers: dict[object, object] | None = {} if all_of_them and count <= MANY and not loaded.soft else None

    def moved(self, name: str, after: Workload | None) -> bool:
        """See ``app.solver.rounds.Ahead``."""
        self._moved[name] = after
        return True

    def runs(self, name: str) -> bool:
        """Whether something of this name does, as of the last state."""
        return name in self._loaded.pods.by_workload

    def world(self, reservations: list[Reservation]) -> World:
        """Of now, with these ``reservations``."""
        world = World(self._now(reservations))
        world.offers = self._offers
        return world

    def _now(self, reservations: list[Reservation]) -> CompiledState:
        rest = self._reservations is None or reservations != self._reservations
        if self._moved or rest:
            moved = [(self.runs(name), name, workload) for name, workload in self._moved.items()]
            changed = [workload for runs, _, workload in moved if workload is not None and runs]
            added = [workload for runs, _, workload in moved if workload is not None and not runs]
            changes = Changes([], moved=False, nodes=False, rest=rest)
            state = replace(self._state, reservations=reservations)
            left = [name for runs, name, _ in moved if runs]
            self._loaded = followed(self._loaded, state, left, [*changed, *added], changes)
            self._moved, self._reservations = {}, reservations
        return self._loaded


class KubeSchedulerRounds(PlacedRounds[CompiledConfiguration, CompiledState]):
    """See the module. An ask is called as its job, or ``job/task`` where the job has several pods that are no gang.
    ``_names``: jobs by name of ask, ``_asks_of``: the other way; ``_pods``: what waits of a job, whether anything of it
    ran when it was last asked for, and the asks of its pods; ``_created``: when each pod of several began to wait, for
    one that is evicted leaves the age of the others alone; ``_held``: the nomination of each ask, ``_reserved``: those
    that the state has, None: not known."""

    unit: ClassVar[Unit] = "task"
    infeasible: ClassVar[bool] = False
    on_its_way: TaskState = "preempted"

    def __init__(self, configured: CompiledConfiguration, configuration: Configuration, options: RunOptions) -> None:
        super().__init__(configured, configuration, options)
        self._names: dict[str, str] = {}
        self._asks_of: dict[str, set[str]] = {}
        self._pods: dict[str, tuple[Ask, bool, list[Ask]]] = {}
        self._several: set[str] = set()
        self._created: dict[str, datetime | None] = {}
        self._held: dict[str, Reservation] = {}
        self._reserved: list[Reservation] | None = None
        self._queue: Queue | None = None

    def arrive(self, ask: Ask) -> None:
        waiting = {task.name for task in self.waiting[ask.id].tasks} if ask.id in self.waiting else set[str]()
        super().arrive(ask)
        self._moved(ask.id)
        self._pods.pop(ask.id, None)
        if len(ask.tasks) > 1 and not self.configured.settings.workload_aware:
            self._several.add(ask.id)
        for task in ask.tasks:
            name = self._name(ask.id, task.name)
            self._names[name] = ask.id
            self._asks_of.setdefault(ask.id, set()).add(name)
            if task.name not in waiting or name not in self._created:
                self._created[name] = ask.created_at

    def leave(self, job: str) -> None:
        super().leave(job)
        self._moved(job)
        self._pods.pop(job, None)
        for name in self._asks_of.pop(job, ()):
            del self._names[name]
            self._created.pop(name, None)
            self._held.pop(name, None)
        self._several.discard(job)

    def changed(self, configured: CompiledConfiguration, configuration: Configuration, nodes: Sequence[Node]) -> None:
        super().changed(configured, configuration, nodes)
        there = {node.name for node in nodes}
        self._held, self._reserved = {name: held for name, held in self._held.items() if held.node in there}, None

    def job_of(self, ask: str) -> str:
        return self._names[ask]

    def ahead(self, loaded: CompiledState) -> Ahead | None:
        aware = loaded.configuration.settings.workload_aware
        self._queue = None if aware else Queue(self.waiting)
        return None if aware else Ahead(loaded)

    def foreseen(self, ahead: AnyAhead[CompiledState], now: int) -> Round | None:
        if not isinstance(ahead, Ahead) or self._reserved is None or self._queue is None:
            return None
        world = ahead.world(self._reserved)
        state = world.state
        self._follow(self._queue, state, ahead.runs)
        cleared: list[dict[str, str]] = []
        outcomes = _unseen(world, self._queue.walk(world), Chance(now), cleared)
        question = Question(now, [ask for ask, _ in outcomes.values()], "cycle", _NO_OPTIONS)
        result = Result(decisions=[], notes=_notes(cleared), plan=plan_for(state, outcomes.values()))
        return Round(
            lambda of: _order(_turns(state, of)), lambda leaving: self.answered(question, result, leaving),
            result.plan.evictions,
        )  # fmt: skip

    def question(self, now: int, holds: Holds) -> Question:
        asks: list[Ask] = []
        for job, ask in sorted(self.waiting.items()):
            runs, known = holds(job), self._pods.get(job)
            if known is None or known[0] is not ask or known[1] != runs:
                known = self._pods[job] = ask, runs, self._asked(self.asked(ask, holds))
            asks += known[2]
        return Question(now, [self._with_claim(ask) for ask in asks] if self._held else asks, "cycle", _NO_OPTIONS)

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        held = dict(self._held)
        asks = {ask.id: ask for ask in question.asks}
        turn = super().answered(question, result, leaving)
        for lost in (result.notes or {}).get("nominations_cleared", ()):
            if (claim := self._held.get(lost["ask"])) is not None and claim.node == lost["node"]:
                del self._held[lost["ask"]]
        for placement in result.plan.placements:
            if placement.ask is not None:
                self._held.pop(placement.ask, None)
                if placement.pipelined:
                    # The nomination may outlive what runs of its job, so it names no workload.
                    ask = replace(asks[placement.ask], workload=None, nominated_node=None)
                    self._held[placement.ask] = Reservation(node=placement.node, ask=ask)
        if self._held != held:
            self.mark_seen(acted=True)
            for name in self._held.keys() | held.keys():
                if self._held.get(name) is not held.get(name) and name in self._names:
                    self._moved(self._names[name])
        self._reserved = turn.reservations = list(self._held.values())
        return turn

    def begin(self, turn: Turn, started: dict[str, list[Task]]) -> None:
        super().begin(turn, started)
        for job in started:
            self._moved(job)

    def _moved(self, job: str) -> None:
        """What waits of it is not what did."""
        if self._queue is not None:
            self._queue.changed.add(job)

    def _follow(self, queue: Queue, state: CompiledState, holds: Holds) -> None:
        """Bring the queue up to what waits now. A pod without a priority has that of what runs of its job."""
        changed, queue.changed = queue.changed, set()
        for job in changed:
            ask = self.waiting.get(job)
            asks = [] if ask is None else self._asked(self.asked(ask, holds))
            queue.put(job, [self._with_claim(of) for of in asks], state)
            if any(of.priority is None for of in asks):
                queue.changed.add(job)

    def _asked(self, ask: Ask) -> list[Ask]:
        if ask.id not in self._several:
            return [ask]
        names = [(self._name(ask.id, task.name), task) for task in ask.tasks]
        return [replace(ask, id=name, tasks=[task], created_at=self._created[name]) for name, task in names]

    def _with_claim(self, ask: Ask) -> Ask:
        held = self._held.get(ask.id)
        return ask if held is None else replace(ask, nominated_node=held.node)

    def _name(self, job: str, task: str) -> str:
        return f"{job}/{task}" if job in self._several else job


_PLUGINS = "framework/plugins"
_DEFAULT = f"{_PLUGINS}/defaultpreemption/default_preemption.go"
_PREEMPTION = "framework/preemption/preemption.go"
_FILTERS = (
    ("required-node", "It requires another node.", f"{_PLUGINS}/nodeaffinity"),
    ("cordon", "The node is cordoned and it does not tolerate that.", f"{_PLUGINS}/nodeunschedulable"),
    ("taint", "It does not tolerate a taint of the node.", f"{_PLUGINS}/tainttoleration"),
    ("node-affinity", "Its node selector or required node affinity does not match.", f"{_PLUGINS}/nodeaffinity"),
    ("ports", "A port that it needs is taken on the node.", f"{_PLUGINS}/nodeports"),
    ("resources", "The node has too little free, or too many pods.", f"{_PLUGINS}/noderesources/fit.go"),
    ("spread-key", "The node has no label that a spread constraint needs.", f"{_PLUGINS}/podtopologyspread"),
    ("spread", "The pods that a spread constraint counts would be too uneven.", f"{_PLUGINS}/podtopologyspread"),
    ("pod-affinity", "No pod that its affinity needs is near the node.", f"{_PLUGINS}/interpodaffinity"),
    ("pod-anti-affinity", "A pod that it avoids is near the node.", f"{_PLUGINS}/interpodaffinity"),
    ("existing-anti-affinity", "A pod near the node avoids it.", f"{_PLUGINS}/interpodaffinity"),
)
_WAITS = (
    ("gated", "A pod with a scheduling gate is in no cycle.", f"{_PLUGINS}/schedulinggates"),
    ("never", "Its preemption policy is Never.", f"{_DEFAULT}, PodEligibleToPreemptOthers"),
    (
        "ongoing",
        "A victim of an earlier preemption still terminates on the node that it is nominated to.",
        f"{_DEFAULT}, PodEligibleToPreemptOthers",
    ),
    ("not-helpful", "No node would take it whoever left.", f"{_PREEMPTION}, findCandidates"),
    ("no-candidate", "No node has room for it without its less important pods.", f"{_PREEMPTION}, DryRunPreemption"),
    ("gang-priorities", "All pods of a gang must have its priority.", "schedule_one_podgroup.go, validatePodGroup"),
)
_CANDIDATES = (
    ("preempted", "It had to go, and could not be put back.", f"{_DEFAULT}, SelectVictimsOnNode"),
    ("reprieved", "It was taken away and put back: the pod fits with it.", f"{_DEFAULT}, SelectVictimsOnNode"),
    (
        "not-less-important",
        "Its priority is not lower than that of the pod that asks.",
        f"{_DEFAULT}, isPreemptionAllowed",
    ),
    ("another-node", "It is on a node that was not chosen.", f"{_PREEMPTION}, pickOneNodeForPreemption"),
)
_STEPS = (
    ("fits", "The node with the best score among those that fit.", "schedule_one.go, prioritizeNodes"),
    ("preempt", "The node whose victims matter least.", f"{_PREEMPTION}, pickOneNodeForPreemption"),
    ("node", "What one node would lose.", f"{_PREEMPTION}, DryRunPreemption"),
    ("looked-at", "How many nodes were looked at, from which on.", f"{_DEFAULT}, GetOffsetAndNumCandidates"),
    ("sample", "From how many starting points the sample would have chosen worse.", "Arbiter"),
    ("tie", "Nodes that the origin chooses among by chance.", f"{_PREEMPTION}, pickOneNodeForPreemption"),
    (
        "budgets-not-binding",
        "Budgets are preferred and never binding: victims violate them.",
        "framework/preemption/util.go, FilterVictimsWithPDBViolation",
    ),
    (
        "budget-order",
        "More than one budget selects a pod: the origin asks them in the order of a map, here in that of the request.",
        "framework/preemption/util.go, FilterVictimsWithPDBViolation",
    ),
    ("terminating-victim", "A victim terminates already; it is named again.", f"{_DEFAULT}, SelectVictimsOnNode"),
    ("gang", "The pods of a gang, each at its best node in turn.", "schedule_one_podgroup.go"),
    (
        "gang-node-order",
        "Equal scores go by the order of nodes, which is a map's in the origin: another order may evict others.",
        "framework/preemption/podgrouppreemption.go",
    ),
    (
        "group-pod-order",
        "A group is one victim: its pods come in the order of a map in the origin, here in that of the request; the"
        " first one's priority and the counts of spread hang on it.",
        "framework/preemption/types.go, searchCrossNodesVictimPods",
    ),
    ("pods-in-turn", "Pods of one ask are scheduled one after the other.", "Arbiter"),
)
RULES: tuple[Rule, ...] = (
    *(Rule(rule=rule, sentence=sentence, source=source)
      for rule, sentence, source in (*_FILTERS, *_WAITS, *_CANDIDATES, *_STEPS)),
    *PROPOSALS,
)  # fmt: skip


def compile_configuration(configuration: Configuration) -> CompiledConfiguration:
    """Raises InvalidInput: namespaces are flat."""
    problems = [
        Problem(pointer=pointer("configuration", "queues", i, "parent"), detail="a namespace has no parent")
        for i, queue in enumerate(configuration.queues)
        if queue.parent is not None
    ]
    if problems:
        raise InvalidInput(problems)
    settings = configuration.settings.kube_scheduler or wire.Settings()
    return CompiledConfiguration(settings, tuple(queue.name for queue in configuration.queues))


_turn = attrgetter("turn")
Outcomes = dict[str, tuple[Ask, list[Outcome]]]
"""By the name of an ask, what became of its pods."""


def plan(state: CompiledState, question: Question) -> Result:
    """Decide every ask. Raises InvalidInput for what kube-scheduler can't take."""
    options = question.options.kube_scheduler or wire.Options()
    if options.parallelism != 1:
        detail = "with more than 1 the released answer depends on timing: only 1 is decided on"
        raise InvalidInput([Problem(pointer="/options/kube_scheduler/parallelism", detail=detail)])
    chance = Chance(question.now, None if options.offset == "all" else options.offset)
    cycle = question.mode == "cycle"
    turns = _turns(state, question)
    cleared: list[dict[str, str]] = []
    world = World(state)
    if cycle and question.brief:
        outcomes = _unseen(world, turns, chance, cleared)
    else:
        outcomes = Outcomes()
        for i, turn in enumerate(turns):
            ask = turn.ask
            if i and not cycle and ask.id not in outcomes:
                world = World(state)
            outcome = _tried(world, ask, turn.pods, chance, explained=question.explain != "none")
            safe_point()
            outcomes.setdefault(ask.id, (ask, []))[1].append(outcome)
            _carry(world, ask, outcome, cleared)
    decisions = [decision(state, question, *outcomes[ask.id]) for ask in question.asks if ask.id in outcomes]
    if not cycle:
        plans = [plan_for(state, [outcomes[of.ask]]) for of in decisions]
        return each_alone(list(zip(decisions, plans, strict=True)), _notes(cleared))
    order = _order(turns) if question.ordered else None
    of_all = plan_for(state, outcomes.values())
    return Result(decisions=decisions, order=order, notes=_notes(cleared), plan=of_all)


def _notes(cleared: list[dict[str, str]]) -> dict[str, Any] | None:
    return {"nominations_cleared": cleared} if cleared else None


def _unseen(world: World, turns: Iterable[Attempt], chance: Chance, cleared: list[dict[str, str]]) -> Outcomes:
    """What becomes of those that don't wait, where nobody is told of those that do."""
    outcomes: Outcomes = {}
    for turn in turns:
        if (outcome := attempt_unseen(world, turn, chance)) is not None:
            safe_point()
            outcomes.setdefault(turn.ask.id, (turn.ask, []))[1].append(outcome)
            _carry(world, turn.ask, outcome, cleared)
    return outcomes


def _turns(state: CompiledState, question: Question) -> list[Attempt]:
    """What is tried, in a cycle in the order of the scheduling queue. What was tried of an ask before is known."""
    turns: list[Attempt] = []
    for i, ask in enumerate(question.asks):
        known = state.asked.get(ask.id)
        turns += known if known is not None and known[0].ask is ask else attempts_of(state, ask, i)
    if question.mode == "cycle":
        turns.sort(key=_turn)
    return turns


def _order(turns: Iterable[Attempt]) -> list[str]:
    """Asks as they are tried."""
    return list(dict.fromkeys([turn.ask.id for turn in turns]))


def _tried(world: World, ask: Ask, pods: list[Pod], chance: Chance, *, explained: bool) -> Outcome:
    """``explained``: with what explains it, which hangs on what those before it took."""
    outcome = attempt(world, ask, pods, chance)
    if chance.offset is None and outcome.run is not None:
        outcome = _with_sample(world, outcome)
    if explained:
        outcome.changes = list(changes(world, ask, pods, chance, outcome))
        if (run := outcome.run) is not None:
            outcome.losses = list(run.losses(islice(run.candidates, MOST_STEPS)))
    outcome.again = [pod for pod in outcome.victims if world.terminates(pod)]
    return outcome


def _with_sample(world: World, outcome: Outcome) -> Outcome:
    run, settings = outcome.run, world.state.configuration.settings
    assert run is not None
    order = outcome.statuses.helped().tolist()
    most = max(len(order) * settings.min_candidate_nodes_percentage // 100, settings.min_candidate_nodes_absolute)
    if len(order) <= most or not run.candidates:
        return outcome
    return dataclasses.replace(outcome, sample=sampled(run, order, most))


def _carry(world: World, ask: Ask, outcome: Outcome, cleared: list[dict[str, str]]) -> None:
    """What later pods of the cycle see: bound pods, nominations, and victims on their way out. A nominated pod of lower
    priority loses its claim on a node where another preempts, but not where a gang does: the origin looks for such pods
    on the node where it preempted, which is called ``cluster`` then."""
    for pod, node in outcome.placed:
        world.withdraw(ask.id, pod, node)
        if outcome.kind == "admit":
            world.add(pod, node)
            continue
        nominated: list[tuple[str, Pod]] = []
        for name, other in world.nominated.get(node, ()):
            if other.priority < pod.priority and not outcome.gang:
                world.claims_lost += 1
                cleared.append({"ask": name, "node": world.state.machines[node].node.name})
            else:
                nominated.append((name, other))
        world.nominate(node, [*nominated, (ask.id, pod)])
    world.leave(outcome.victims)


ENGINE: Engine[CompiledConfiguration, CompiledState] = Engine(
    facts=FACTS,
    rules=RULES,
    looks=True,
    configure=compile_configuration,
    load=compile_state,
    update=update,
    plan=plan,
    rounds=KubeSchedulerRounds,
    shares=shares,
    preemptibility=preemptibility,
    judge=judge,
    ranks=ranks,
    effective_settings=effective_settings,
    findings=findings,
)
"""Default preemption: filters, priorities, budgets."""
