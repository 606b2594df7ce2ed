"""YuniKorn as an engine: from a question to decisions, the order of one cycle, rounds, and the rules that answers name.

Files are those of yunikorn-core's ``pkg/scheduler/objects``; "Preemption Design" is the page of that name in YuniKorn's
documentation, whose laws are numbered in its order.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from msgspec.structs import replace

from app.solver.engine import Engine
from app.solver.engines.yunikorn import FACTS, report
from app.solver.engines.yunikorn.ahead import Ahead, Waiting
from app.solver.engines.yunikorn.ask import Context, apply, decide
from app.solver.engines.yunikorn.candidates import SILENT, Outcome, Silent
from app.solver.engines.yunikorn.configuration import DIFFERENCES, CompiledConfiguration, compile_configuration
from app.solver.engines.yunikorn.explain import Comparisons, recorder
from app.solver.engines.yunikorn.overlay import Asked, Overlay, Request, asked_of, check_asks, in_turn, turn_of
from app.solver.engines.yunikorn.preemptibility import enforce, judge, preemptibility
from app.solver.engines.yunikorn.report import effective_settings, findings, shares
from app.solver.engines.yunikorn.seats import PlainCycle, Seats
from app.solver.engines.yunikorn.state import CompiledState, compile_state
from app.solver.engines.yunikorn.update import update
from app.solver.model import yunikorn as wire
from app.solver.model.base import to_datetime
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Decision, Placement, Plan, PlannedEviction, Result, each_alone, plan_of
from app.solver.model.problems import PROPOSALS, Rule
from app.solver.model.request import Options, RunOptions
from app.solver.model.state import Ask, Node, Reservation, TaskState
from app.solver.question import Question, safe_point
from app.solver.rounds import Ahead as AnyAhead
from app.solver.rounds import Holds, Leaving, PlacedRounds, Start, Turn, Unit
from app.solver.rounds import Outcome as Round

_NO_OPTIONS = Options()


class YuniKornRounds(PlacedRounds[CompiledConfiguration, CompiledState]):
    """See the module. An ask is called as its job, or ``job/task`` where the job has several tasks. ``_asks``: what is
    asked, by job and name; ``_waiting``: the same by name, in the order of jobs and names; None: to be put in order
    again; ``_of``: the job that an ask of a job that is alive is for; ``_held``: all reservations, ``_held_there``:
    those that the state has, None: not known; ``_wakes``: when time alone lets anybody try again, ``_stale``: unless
    anybody has left since; ``_seats``: the same as plain cycles look at it, save ``_new``. ``_plain``: the last was."""

    unit: ClassVar[Unit] = "task"
    infeasible: ClassVar[bool] = False
    on_its_way: TaskState = "preempted"

    def __init__(self, configured: CompiledConfiguration, configuration: Configuration, options: RunOptions) -> None:
        super().__init__(configured, configuration, options)
        self._asks: dict[str, dict[str, Waiting]] = {}
        self._waiting: dict[str, Waiting] | None = None
        self._names: dict[str, dict[str, str]] = {}
        self._of: dict[str, str] = {}
        self._held: list[Reservation] = []
        self._held_there: list[Reservation] | None = None
        self._wakes: int | None = None
        self._stale = self._plain = False
        self._seats: Seats | None = None
        self._new: dict[str, Waiting] = {}

    def arrive(self, ask: Ask) -> None:
        super().arrive(ask)
        names = self._names.setdefault(ask.id, {})
        alone, mine = not names and len(ask.tasks) == 1, self._asks.setdefault(ask.id, {})
        for task in ask.tasks:  # of what ran at the start, each comes for the first time when it is evicted
            if task.name not in names:
                names[task.name] = ask.id if alone else f"{ask.id}/{task.name}"
                self._of[names[task.name]] = ask.id
            name = names[task.name]
            if name not in mine:
                own = replace(ask, id=name, workload=None, tasks=[task])
                mine[name] = Waiting(ask.id, own, self._delay(ask.queue))
                self._new[name] = mine[name]
                self._waiting = None

    def _delay(self, queue: str) -> int:
        """Of a queue, in microseconds."""
        return -(-self.configured.settings[self.configured.tree.index[queue]].preemption_delay // 1000)

    def leave(self, job: str) -> None:
        super().leave(job)
        for waiting in self._asks.pop(job, {}).values():
            self._settled(waiting)
        for name in self._names.pop(job, {}).values():
            self._of.pop(name, None)

    def job_of(self, ask: str) -> str:
        return self._of[ask]

    def changed(self, configured: CompiledConfiguration, configuration: Configuration, nodes: Sequence[Node]) -> None:
        super().changed(configured, configuration, nodes)
        self._stand_up()
        names = {node.name for node in nodes}
        self._held, self._held_there = [held for held in self._held if held.node in names], None
        for waiting in self._in_order().values():
            waiting.sent = {}
            if waiting.ask.queue in configured.tree.index:
                waiting.delayed(waiting.ask, self._delay(waiting.ask.queue))

    def wakes_at(self) -> int | None:
        if self._stale:
            self._stale = False
            retries = [self._retry(waiting) for of in self._asks.values() for waiting in of.values()]
            self._wakes = min((retry for retry in retries if retry is not None), default=None)
        return self._wakes

    def _retry(self, waiting: Waiting) -> int | None:
        return self._seats.retry(waiting, self._seen) if self._plain and self._seats is not None else waiting.retry

    def ahead(self, loaded: CompiledState) -> Ahead | None:
        return Ahead(loaded) if loaded.narrow and not loaded.configuration.limits.some else None

    def foreseen(self, ahead: AnyAhead[CompiledState], now: int) -> Round | None:
        if not isinstance(ahead, Ahead) or self._held_there is None:
            return None
        seats = self._sitting(ahead, self._held_there, now)
        if (cycle := seats.cycle(now)) is None:
            return None
        evictions = _evictions(ahead.tasks(), cycle) if cycle.evicting else []
        carry_out = partial(self._carried_out, seats, cycle, now, evictions)
        return Round(lambda of: sorted([ask.id for ask in of.asks], key=seats.turn), carry_out, evictions)

    def in_vain(self, ahead: AnyAhead[CompiledState], now: int) -> bool:
        held = self._held_there  # not what changes before the state does
        if not self.waiting or not isinstance(ahead, Ahead) or held is None or self._held != held:
            return False
        seats = self._sitting(ahead, held, now)
        if (cycle := seats.in_vain(now)) is not None:
            self._seen_all(seats, cycle, now, acted=False)
        return cycle is not None

    def _sitting(self, ahead: Ahead, held: list[Reservation], now: int) -> Seats:
        """All that waits, as of ``now``. ``held``: the reservations that the state has."""
        ahead.reserve(held)
        if self._seats is None or self._seats.ahead is not ahead:
            self._stand_up()
            self._seats = Seats(ahead)
            self._new = {name: waiting for of in self._asks.values() for name, waiting in of.items()}
        if self._new:
            self._seats.add_all(self._new.values(), now)
            self._new = {}
        return self._seats

    def _carried_out(
        self, seats: Seats, cycle: PlainCycle, now: int, evictions: list[PlannedEviction], leaving: Leaving
    ) -> Turn:
        when, names = to_datetime(now), seats.ahead.overlay.state.node_names
        seats.start(cycle.starts)
        turn = Turn(evicted=[eviction for eviction in evictions if not leaving(eviction)])
        for waiting, node in cycle.starts:
            self._place(turn, waiting.ask.id, names[node], when)
        for waiting, outcome in cycle.evicting:
            assert outcome.node is not None
            block = waiting.ask.yunikorn or wire.Ask()
            block = replace(block, last_preemption_check_at=when, triggered_preemption=True)
            waiting.told(replace(waiting.ask, yunikorn=block))
            self._hold(names[outcome.node], waiting)
        self._seen_all(seats, cycle, now, acted=bool(turn.started or cycle.evicting))
        return self._started(turn)

    def _seen_all(self, seats: Seats, cycle: PlainCycle, now: int, *, acted: bool) -> None:
        """The cycle has seen all that there was to see, and is over."""
        begun, self._plain = self.version, True
        self.mark_seen(acted=acted)
        self._wakes, self._stale = seats.carried_out(cycle, now, begun, self.version), False

    def _stand_up(self) -> None:
        """What waits has no seats."""
        for of in self._asks.values():
            for waiting in of.values():
                waiting.retry, waiting.line = self._retry(waiting), None
        self._seats, self._plain = None, False

    def _in_order(self) -> dict[str, Waiting]:
        if self._waiting is None:
            self._waiting = {name: of for _, mine in sorted(self._asks.items()) for name, of in sorted(mine.items())}
        return self._waiting

    def question(self, now: int, holds: Holds) -> Question:
        asks, running = list[Ask](), {job: holds(job) for job in self._asks}
        for waiting in self._in_order().values():
            runs = running[waiting.job]
            sent = waiting.sent.get(runs)
            if sent is None or sent[0] != waiting.look.last:
                of = waiting.asked()
                ask = replace(of, workload=waiting.job) if runs else self._of_application(of, waiting.job)
                sent = waiting.sent[runs] = waiting.look.last, ask
            asks.append(sent[1])
        return Question(now, asks, "cycle", _NO_OPTIONS)

    def _of_application(self, ask: Ask, job: str) -> Ask:
        """Where applications are counted, tasks of a job that does not run yet say whose they are."""
        if not self.configured.limits.some or ask.id == job:
            return ask
        return replace(ask, yunikorn=replace(ask.yunikorn or wire.Ask(), application=job))

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        self._plain, seats = False, self._seats
        begun, held, waiting = self.version, list(self._held), self._in_order()
        notes = result.notes or {}
        for reservation in notes.get("cancelled_reservations", ()):
            there = reservation["node"], reservation["ask"]
            self._held = [held for held in self._held if (held.node, held.ask.id) != there]
        turn = Turn(evicted=[eviction for eviction in result.plan.evictions if not leaving(eviction)])
        decisions = {decision.ask: decision for decision in result.decisions}
        blocks: dict[str, dict[str, Any]] = notes.get("asks", {})
        left: list[tuple[Waiting, int | None]] = []
        for name in result.order or ():
            decision = decisions.get(name)
            if decision is not None and decision.outcome == "admit":
                self._place(turn, name, decision.node, to_datetime(question.now))
                continue
            of = waiting[name]
            left.append((of, of.look.last))
            if name in blocks:
                self._carry(of, blocks[name])
            if decision is not None and decision.node is not None:
                self._hold(decision.node, of)
        self.mark_seen(acted=bool(turn.started or turn.evicted) or self._held != held)
        if seats is not None:
            seats.pass_time(question.now)
        for of, last in left:
            of.wait(question.now, last, begun, self.version)
            if seats is not None and of.look.last != last:
                seats.looked(of, question.now)
        self._wakes, self._stale = min((of.retry for of, _ in left if of.retry is not None), default=None), False
        return self._started(turn)

    def _started(self, turn: Turn) -> Turn:
        """With the reservations that there are now. Who starts waits no longer."""
        for start in turn.started:
            self.begun(start.job, start.tasks)
        if self._held != self._held_there:
            self._held_there = turn.reservations = list(self._held)
        return turn

    def _place(self, turn: Turn, name: str, node: str | None, when: datetime) -> None:
        """One task runs from then on; those of a job one after the other start at once."""
        job = self._of[name]
        waiting = self._asks[job].pop(name)
        self._settled(waiting)
        (task,) = waiting.ask.tasks
        if not self._asks[job]:
            del self._asks[job]
        task = replace(task, node=node, started_at=when, state="running")
        if turn.started and turn.started[-1].job == job:
            turn.started[-1].tasks.append(task)
        else:
            turn.started.append(Start(job, [task]))

    def _carry(self, waiting: Waiting, block: dict[str, Any]) -> None:
        """What this cycle did for an ask that goes on waiting, for it and for a reservation of its own."""
        checked, triggered = block.get("last_preemption_check_at"), block.get("triggered_preemption", False)
        before = waiting.ask.yunikorn or wire.Ask()
        if (before.last_preemption_check_at, before.triggered_preemption) != (checked, triggered):
            carried = replace(before, last_preemption_check_at=checked, triggered_preemption=triggered)
            waiting.told(replace(waiting.ask, yunikorn=carried))

    def _hold(self, node: str, waiting: Waiting) -> None:
        """The ask has triggered preemption, and never does so again: it holds one node at most."""
        self._held.append(Reservation(node=node, ask=waiting.ask))

    def _settled(self, waiting: Waiting) -> None:
        """An ask is one no longer: it holds no node, and waits for no time."""
        if self._held:
            self._held = [held for held in self._held if held.ask.id != waiting.ask.id]
        self._new.pop(waiting.ask.id, None)
        if self._seats is not None:
            self._seats.drop(waiting)
        self._waiting = None
        self._stale = True


_DESIGN = "Preemption Design"
_VICTIMS = "queue.go, findEligiblePreemptionVictims"
_TRY = "preemption.go, TryPreemption"
_PRECONDITIONS = "preemption.go, CheckPreconditions"
_REQUIRED = "required_node_preemptor.go"

_CANDIDATES = (
    ("asking-queue", "A task of the asking queue itself, where preemption does not look.", f"{_DESIGN}, law 3"),
    ("outside-the-fence", "Its queue is not below the fence of the asking queue.", f"{_DESIGN}, law 7"),
    ("priority-fence", "A priority fence above its queue has a higher offset than the ask's priority.", _VICTIMS),
    ("preemption-disabled", "Its queue has preemption.policy disabled.", _VICTIMS),
    (
        "no-claim",
        "No queue of the ask's path below the fork of both is under its guarantee in what the ask needs.",
        f"{_DESIGN}, law 4",
    ),
    ("within-guarantee", "Its queue is not over its guarantee.", f"{_DESIGN}, law 5"),
    ("bound-to-its-node", "It requires its node, as a DaemonSet pod does, and can run nowhere else.", _VICTIMS),
    ("already-leaving", "It is being preempted, or has been released, already.", _VICTIMS),
    ("on-no-node", "It runs on no node, so that no node gains room without it.", _VICTIMS),
    ("no-common-resource", "It names no resource that the ask names.", _VICTIMS),
    ("higher-priority", "Its priority is higher than the ask's, as seen from its queue.", f"{_DESIGN}, law 6"),
    ("same-application", "It belongs to the ask's own application.", f"{_DESIGN}, law 3"),
    ("law-2", "Without it a queue would be below its guarantee.", f"{_DESIGN}, law 2"),
    ("on-another-node", "It is not on the node that the ask requires.", _REQUIRED),
    ("node-held", "Its node is held for another ask.", "preemption.go, initWorkingState"),
    (
        "node-closed",
        "Its node is unschedulable, too small for the ask, or none that passes its predicates.",
        "preemption.go, initWorkingState",
    ),
    ("makes-room", "It goes, and makes room for the ask.", _TRY),
    ("fits-without", "It was taken and put back, because the ask fits without it.", _DESIGN),
    ("makes-no-room", "It may go, but all that may go on its node does not make room for the ask.", _TRY),
    ("not-reached", "It may go, but the search ended before it was needed.", _TRY),
    (
        "part-waits",
        "It would have gone for one task of the ask, and stays because another task can't be placed.",
        "Arbiter",
    ),
    ("may-be-preempted", "Nothing protects it.", _VICTIMS),
    ("opted-out", "It has opted out of preemption and goes as a last resort.", f"{_DESIGN}, law 1"),
    (
        "originator",
        "It is the originator of its application and goes after its other tasks.",
        "preemption.go, sortVictimsForPreemption",
    ),
    ("nothing-runs", "The application has no running task.", "Arbiter"),
)
_STEPS = (
    ("fence", "How far up the tree victims are looked for.", "queue.go, findPreemptionFenceRoot"),
    (
        "guarantee-left",
        "What is left of the guarantee on the ask's side.",
        "preemption.go, GetRemainingGuaranteedResource",
    ),
    ("task", "What became of one task of an ask that has several.", "Arbiter"),
    ("node", "A node that can make room, and who would go there.", "preemption.go, calculateVictimsByNode"),
    ("node-out", "A node that was searched in vain.", "preemption.go, calculateVictimsByNode"),
)
_FAILURES = (
    ("too-many-applications", "As many applications run as its queue, user or group may have.", "queue.go, canRunApp"),
    ("user-limit", "Its user or group may have no more of its queue.", "ugm/manager.go, Headroom"),
    ("preemption-off", "Preemption is off in the partition (preemption.enabled).", "partition.go"),
    ("never-preempts", "The ask's own policy is Never.", _PRECONDITIONS),
    ("already-triggered", "The ask has triggered preemption before.", _PRECONDITIONS),
    ("too-young", "The ask is younger than the preemption.delay of its queue.", _PRECONDITIONS),
    ("checked-lately", "The last preemption check of the ask was less than 15 s ago.", _PRECONDITIONS),
    ("attempts-exhausted", "The queue has had its preemption attempts of this cycle.", "application.go, tryPreemption"),
    ("queue-guarantees", "The ask's side is not under its guarantee.", f"{_DESIGN}, law 4"),
    ("no-candidates", "Nobody inside the fence may be preempted for the ask.", _VICTIMS),
    ("no-node", "No node can make room for the ask.", _TRY),
    ("nodes-held", "Every node that could make room is held for another ask.", "preemption.go, initWorkingState"),
    ("no-victims", "No victim would help the ask.", _TRY),
    ("shortfall", "What the victims free is short of the ask.", _TRY),
    ("resources-releasing", "What the ask needs is being released already.", "Arbiter"),
    ("required-node", "Nothing that may go makes room on the node that the ask requires.", _REQUIRED),
    (
        "required-node-barred",
        "Predicates keep the ask from the node that it requires, or a limit of what it wants 0 of is exceeded.",
        "application.go, tryNode",
    ),
    ("required-node-released", "Preemption on the required node was triggered before.", _REQUIRED),
)  # fmt: skip


def _rules() -> Iterator[Rule]:
    for rule, sentence, source in (*_CANDIDATES, *_STEPS, *_FAILURES):
        yield Rule(rule=rule, sentence=sentence, source=source)
    for difference in DIFFERENCES:
        sentence = f"The rule sets part. Documented: {difference.documented}; released: {difference.shipped}."
        yield Rule(rule=difference.rule, sentence=sentence, source=f"{_DESIGN}; {difference.source}")


RULES: tuple[Rule, ...] = (*_rules(), *PROPOSALS)


def plan(state: CompiledState, question: Question) -> Result:
    """Decide every ask, or bring a queue under its limit. Raises InvalidInput for what YuniKorn can't take."""
    options = question.options.yunikorn
    if options is not None and options.enforce_quota is not None:
        return enforce(state, question, options.enforce_quota)
    context = Context(question.now, options is None or options.node_choice == "scored")
    cycle = question.mode == "cycle"
    if cycle and question.brief:
        return _round(state, in_turn(state, question.asks), question, context)
    check_asks(state, question.asks)
    overlay = Overlay(state)
    asked = [asked_of(state, ask) for ask in question.asks]
    if cycle:
        asked.sort(key=turn_of)
    asks = [of.ask for of in asked]
    decisions: dict[str, Decision] = {}
    placements: dict[str, list[Placement]] = {}
    notes: dict[str, Any] = {}
    cancelled: list[dict[str, str]] = []
    comparisons = Comparisons()
    for turn, (_, ask, requests, *_) in enumerate(asked):
        if turn and not cycle:
            overlay = Overlay(state)
        record = recorder(question.why())
        overlay, outcomes = _units(overlay, requests, context, record, comparisons)
        decisions[ask.id] = report.answer(overlay, ask, outcomes, question.now, record)
        waits = decisions[ask.id].outcome == "wait"
        placements[ask.id] = [] if waits else report.placements(overlay, ask, outcomes)
        notes[ask.id] = report.carried(outcomes[-1][0], outcomes[-1][1], question.now)
        cancelled += [
            reservation for _, outcome in outcomes for reservation in report.cancelled(overlay, outcome.cancelled)
        ]
    notes_of_all: dict[str, Any] = {"asks": notes, "cancelled_reservations": cancelled}
    if not cycle:
        plans = [_plan([decisions[ask.id]], placements[ask.id]) for ask in asks]
        return each_alone([(decisions[ask.id], own) for ask, own in zip(asks, plans, strict=True)], notes_of_all)
    return Result(
        decisions=[decisions[ask.id] for ask in question.asks],
        order=[ask.id for ask in asks],
        plan=_plan([decisions[ask.id] for ask in asks], [place for ask in asks for place in placements[ask.id]]),
        notes=notes_of_all,
    )


def _round(state: CompiledState, asked: list[Asked], question: Question, context: Context) -> Result:
    """A cycle that nobody watches: of asks that go on waiting as they did nothing is said."""
    overlay = Overlay(state)
    decisions: dict[str, Decision] = {}
    placements: list[Placement] = []
    notes: dict[str, Any] = {}
    cancelled: list[dict[str, str]] = []
    comparisons, now = Comparisons(), question.now
    for _, ask, requests, _ in asked:
        overlay, outcomes = _units(overlay, requests, context, SILENT, comparisons)
        request, last = outcomes[-1]
        if last.kind != "wait":
            decisions[ask.id] = report.answer(overlay, ask, outcomes, now, SILENT)
            placements += report.placements(overlay, ask, outcomes)
        if report.tried(last):
            notes[ask.id] = report.carried(request, last, now)
        for _, outcome in outcomes:
            cancelled += report.cancelled(overlay, outcome.cancelled)
    decided = [decisions[ask.id] for ask in question.asks if ask.id in decisions]
    return Result(
        decisions=decided, order=[of.ask.id for of in asked], plan=_plan(decided, placements),
        notes={"asks": notes, "cancelled_reservations": cancelled},
    )  # fmt: skip


def _evictions(state: CompiledState, cycle: PlainCycle) -> list[PlannedEviction]:
    """In the order of asks."""
    return [
        PlannedEviction(
            workload=state.label(task)[0], task=state.label(task)[1], queue=state.queue_name(task),
            node=state.tasks[task].node, reason=report.EVICTED, for_ask=waiting.ask.id,
        )
        for waiting, outcome in sorted(cycle.evicting, key=lambda evicting: (evicting[0].job, evicting[0].ask.id))
        for task in outcome.victims
    ]  # fmt: skip


def _plan(decided: list[Decision], placements: list[Placement]) -> Plan:
    return Plan(evictions=plan_of(decided).evictions, placements=placements)


def _units(
    overlay: Overlay, requests: list[Request], context: Context, record: Silent, comparisons: Comparisons
) -> tuple[Overlay, list[tuple[Request, Outcome]]]:
    """The allocation asks of one ask, each seeing what the ones before took; all of them, or nobody is evicted."""
    trial = overlay if len(requests) == 1 else overlay.copy()
    outcomes: list[tuple[Request, Outcome]] = []
    for request in requests:
        safe_point()
        outcome = decide(trial, request, context, record)
        record.decided(trial, request, outcome)
        if record.on:
            comparisons.compare(trial, request, context, outcome, record)
        outcomes.append((request, outcome))
        if len(requests) > 1 or outcome.kind != "wait" or outcome.cancelled or outcome.holds:
            comparisons.forget()
        if outcome.kind == "wait" and len(requests) > 1:
            return overlay, outcomes[-1:]
        apply(trial, request, outcome)
    return trial, outcomes


ENGINE: Engine[CompiledConfiguration, CompiledState] = Engine(
    facts=FACTS,
    rules=RULES,
    configure=compile_configuration,
    load=compile_state,
    looks=True,
    update=update,
    plan=plan,
    rounds=YuniKornRounds,
    shares=shares,
    preemptibility=preemptibility,
    judge=judge,
    effective_settings=effective_settings,
    findings=findings,
)
"""Guaranteed queues, fences and nodes."""
