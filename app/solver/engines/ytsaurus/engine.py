"""YTsaurus' scheduler: from a question to heartbeats, from what they did to decisions, the rules that answers name, and
rounds: a fair share update, then a heartbeat of every node in the order of names.

Starvation, since when an element is below its fair share, and volumes of integral guarantees are carried from update to
update; what heartbeats leave behind on nodes is carried to the next ones. A preempted allocation is none of its
operation's any more while it goes: it counts as something else that occupies its node.

Sources are files below yt/yt/server/scheduler/strategy of the public repository; "page" is its page on preemption.
"""

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace

from app.solver.engine import Engine
from app.solver.engines.ytsaurus import FACTS, heartbeat
from app.solver.engines.ytsaurus.ahead import Ahead, Plain
from app.solver.engines.ytsaurus.answer import Answered, Waiting, after_shares, answer, tried_preemption
from app.solver.engines.ytsaurus.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.ytsaurus.crowd import Crowd, Foreseen
from app.solver.engines.ytsaurus.explain import findings, under
from app.solver.engines.ytsaurus.fair_shares import Updated, fair_share_update
from app.solver.engines.ytsaurus.heartbeat import quiet_nodes
from app.solver.engines.ytsaurus.operations import QUIET, Ints, Standing
from app.solver.engines.ytsaurus.preemptibility import effective_settings, preemptibility, shares
from app.solver.engines.ytsaurus.preparation import NOBODY, Overlay, Started, Stopped, prepare
from app.solver.engines.ytsaurus.settings import DIFFERENCES, Difference, RuleSet
from app.solver.engines.ytsaurus.state import CompiledState, compile_state
from app.solver.engines.ytsaurus.update import update
from app.solver.model import ytsaurus as wire
from app.solver.model.base import micros, to_datetime
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Plan, PlannedEviction, Result, each_alone
from app.solver.model.problems import InvalidInput, Problem, Rule
from app.solver.model.request import RunOptions
from app.solver.model.state import Ask, Node, QueueState, State, Task, Workload
from app.solver.question import Question, safe_point
from app.solver.rounds import Ahead as AnyAhead
from app.solver.rounds import Holds, Leaving, Outcome, PlacedRounds, Turn, Unit

_POLICY = "policy/scheduling_policy_detail.cpp"
_SPLIT = "page; policy/operation_shared_state.cpp"
_ELEMENT = "pool_tree_element.cpp"
_HEARTBEAT = "page; policy/scheduling_policy_detail.cpp"
_ARBITER = "Arbiter"


def _rules(source: str, *pairs: tuple[str, str]) -> tuple[Rule, ...]:
    return tuple(Rule(rule=rule, sentence=sentence, source=source) for rule, sentence in pairs)


_STAGES = _rules(
    _HEARTBEAT,
    ("regular", "The stage that starts what fits the free resources of the node, the least satisfied operation first."),
    ("preemptive_normal", "The stage that starts one allocation of a starving operation on what is preemptible."),
    (
        "preemptive_aggressive",
        "The stage that starts one allocation of an aggressively starving operation, on what is aggressively "
        "preemptible too.",
    ),
)
_EVICTED = _rules(
    _POLICY,
    ("preemption", "Evicted by the preemptive stage, next in order while the node's allocations exceed it."),
    ("aggressive_preemption", "Evicted by the aggressive stage, next in order while the node's allocations exceed it."),
    (
        "resource_limits_violated",
        "Its operation or a pool above exceeds its resource_limits: it goes for nobody's ask.",
    ),
    ("goes-for-another", "It stops to start an allocation of another ask."),
    ("overcommitted", "It stops as the allocations of the node use more than it has, with no start on top."),
)
_SPARED = _rules(
    _POLICY,
    ("node-fits", "It could go, and those before it in the order were enough."),
    ("another-started", "It could go, and the one allocation that the stage starts was another ask's."),
    ("not-enough", "It could go, and with all that could there was no room for the ask."),
    ("stopped-before", "Another stage had stopped it already."),
    ("takes-no-part", "The stage does not serve the operation of the ask."),
)
_GROUPS = _rules(
    _SPLIT,
    ("non_preemptible", "Up to this allocation its operation uses no more than its protected part of the fair share."),
    (
        "aggressively_preemptible",
        "Up to this allocation its operation is within its fair share: only the aggressive stage may take it.",
    ),
)
_PROTECTED = _rules(
    _POLICY,
    ("graceful", "Its operation has preemption_mode graceful: its allocations are only asked to stop."),
    ("starving", "Its operation starves itself, and allow_preemption_from_starving_operations is off."),
)
_SWITCHED_OFF = _rules(
    _ELEMENT,
    ("normal-preemption-off", "A pool above sets allow_normal_preemption to false."),
    ("aggressive-preemption-off", "Its pool, or its being a gang, forbids aggressive preemption."),
)
_DIFFERENCES = _rules(
    "page",
    ("allocation-on-bound", "Whether the allocation that crosses a bound is in the group above or below it."),
    ("stage-order", "Which of the two preemptive stages comes first."),
    ("stage-members", "Whether the preemptive stage serves aggressively starving operations too."),
    ("own-allocations", "Whether an operation may evict an allocation of its own to start another."),
)
_WAITING = _rules(
    _POLICY,
    ("Suspended", "The operation is suspended."),
    ("GracefulAndSatisfied", "A graceful operation that has its fair share starts nothing more."),
    ("ResourceLimitsReached", "One more allocation would exceed the resource_limits of the operation or a pool above."),
    ("TooLittleSpare", "The node has less than min_spare_allocation_resources left."),
    ("NotStarving", "There are no free resources for it, and nobody stops for an operation that does not starve."),
    ("PreemptiveSchedulingBackoff", "There are no free resources for it, and preemption was tried too recently."),
    ("AnotherTookThePreemption", "A stage had room for it by preemption, and started another ask's allocation."),
    ("NotEnoughPreemptible", "There is no room for it even without all that its operation may preempt."),
)
_ASKED = _rules(
    _ARBITER,
    ("NothingAsked", "The ask wants no allocation."),
    ("NoFeasibleNode", "No node that it may use is large enough for one of its allocations."),
    ("NeverWithinLimits", "One of its allocations alone exceeds the resource_limits of the operation or a pool above."),
    ("NodeNotAllowed", "The node of this heartbeat is not one that it may use."),
)
_STEPS = _rules(
    _ARBITER,
    ("fair-share", "Where the ask's operation stands before the heartbeats: shares, satisfaction, priority."),
    ("rules", "The rule set, and its choice in every point in which the two sets differ."),
    ("differences-not-tried", "The other rule set was not tried, as that means deciding again on very many nodes."),
    ("earlier-stages", "Stages before those shown are only counted."),
    ("steps-dropped", "Steps past a limit are counted only; the full explanation has them."),
)

RULES: tuple[Rule, ...] = (
    *_STAGES, *_EVICTED, *_SPARED, *_GROUPS, *_PROTECTED, *_SWITCHED_OFF, *_DIFFERENCES, *_WAITING, *_ASKED, *_STEPS,
)  # fmt: skip


def heartbeats(overlay: Overlay, nodes: Ints, now: int) -> Ints:
    """Process heartbeats in order until nothing is pending any more; the nodes that were heard."""
    waits = bool(len(overlay.left)) and len(nodes) > 1
    skips = len(nodes) > 1 and overlay.log is None
    quiet = quiet_nodes(overlay, now) if skips else np.zeros(len(overlay.node_usage), bool)
    exceeds = bool(overlay.prepared.situation.pool_limits_tolerance.any())
    passed = quiet[nodes]
    heard = 0
    while heard < len(nodes):
        safe_point()
        if passed[heard]:
            asked = bool(overlay.left.any()) or not waits
            end = (
                heard + 1 if not asked else len(nodes) if passed[heard:].all() else heard + int(passed[heard:].argmin())
            )
            heartbeat.pass_over(overlay, nodes[heard:end], now)
            heard = end
            if not asked:
                break
            continue
        before = len(overlay.started)
        heartbeat.process(overlay, int(nodes[heard]), now)
        heard += 1
        if waits and not overlay.left.any():
            break
        if skips and exceeds and len(overlay.started) > before and overlay.started[-1].stage != "regular":
            quiet &= quiet_nodes(overlay, now)
            passed = quiet[nodes]
    return nodes[:heard]


def differences(
    cluster: CompiledState, asks: Sequence[Ask], nodes: Ints, question: Question, overlay: Overlay
) -> list[list[Difference]]:
    """For each ask the differences between the rule sets that change what becomes of it, found by deciding again."""
    settings = cluster.config.settings
    mine = _outcomes(overlay, len(asks))

    def others(rules: RuleSet) -> list[tuple[list[Started], list[Stopped]]]:
        twin = Overlay(prepare(under(cluster, rules), asks))
        heartbeats(twin, nodes, question.now)
        return _outcomes(twin, len(asks))

    if others(settings.rules.other) == mine:
        return [[] for _ in asks]
    alone = [(difference, others(difference.only(settings.rules))) for difference in DIFFERENCES]
    return [[difference for difference, other in alone if other[i] != mine[i]] for i in range(len(asks))]


def _outcomes(overlay: Overlay, asks: int) -> list[tuple[list[Started], list[Stopped]]]:
    """What becomes of each ask, to compare."""
    wants = overlay.prepared.situation.wants.ask
    out: list[tuple[list[Started], list[Stopped]]] = [([], []) for _ in range(asks)]
    for allocation in overlay.started:
        out[int(wants[allocation.want])][0].append(allocation)
    for allocation in overlay.stopped:
        if allocation.want != NOBODY:
            out[int(wants[allocation.want])][1].append(allocation)
    return out


MOST_WORK = 100_000_000
"""Asks times elements of a state that mode independent takes on: some two minutes."""
MOST_NODES_COMPARED = 500
"""With more heartbeats than this an explanation doesn't say which rule difference decided: it takes deciding again."""


def plan(cluster: CompiledState, question: Question) -> Result:
    """Answer a decision question. Raises InvalidInput."""
    nodes = _nodes(cluster, question)
    alone = question.mode == "independent" and question.asks
    if alone:
        _refuse_endless_work(cluster, len(question.asks))
    groups = [[ask] for ask in question.asks] if alone else [question.asks]
    runs = [_run(cluster, asks, nodes, question) for asks in groups]
    if alone:
        return each_alone(
            [(run.decisions[0], Plan(evictions=run.evictions, placements=run.placements)) for run in runs]
        )
    (run,) = runs
    cycle = question.mode == "cycle"
    return Result(
        decisions=run.decisions,
        order=run.order if cycle else None,
        plan=Plan(evictions=run.evictions, placements=run.placements),
        notes=run.notes if cycle else None,
    )


def _refuse_endless_work(cluster: CompiledState, asks: int) -> None:
    """Fair shares anew for every ask: on a large tree that is for a few hundred of them, not for all that wait."""
    size = len(cluster.operations) + len(cluster.config.tree) + len(cluster.allocations) + len(cluster.node_index)
    if asks > 1 and asks * size > MOST_WORK:
        detail = f"{asks} asks are too many to decide one by one on {size} elements: use mode cycle, or fewer at once"
        raise InvalidInput([Problem(pointer="/asks", detail=detail)])


def _run(cluster: CompiledState, asks: Sequence[Ask], nodes: Ints, question: Question) -> Answered:
    safe_point()
    overlay = Overlay(prepare(cluster, asks))
    if question.explain != "none":
        overlay.log = []
    tried = tried_preemption(overlay, nodes, question.now)
    heard = heartbeats(overlay, nodes, question.now)
    deciding: list[list[Difference]] | None = None
    if overlay.log is not None and len(nodes) <= MOST_NODES_COMPARED:
        deciding = differences(cluster, asks, nodes, question, overlay)
    waiting = Waiting(overlay, asks, heard, tried)
    return answer(overlay, asks, waiting, deciding, question)


def _nodes(cluster: CompiledState, question: Question) -> Ints:
    options = question.options.ytsaurus
    name = None if options is None else options.heartbeat_node
    if name is None:
        return np.arange(len(cluster.node_index))
    if name not in cluster.node_index:
        raise InvalidInput([Problem(pointer="/options/ytsaurus/heartbeat_node", detail=f"no node {name!r}")])
    return np.array([cluster.node_index[name]])


def waited(cluster: CompiledState, ask: Ask, now: int) -> Ask:
    """Below its fair share ever since it was created, where it is so at ``now``: a decision goes by the starvation that
    the last update left."""
    block = ask.ytsaurus or wire.Workload()
    below = replace(ask, ytsaurus=replace(block, below_fair_share_since=ask.created_at))
    standing = fair_share_update(cluster, [below], now, None).operations.get(ask.id)
    return ask if standing is None else replace(ask, ytsaurus=standing.carried_by(block))


_NOTHING = wire.Node()


def _order(of: Plain | Foreseen, question: Question) -> list[str]:
    """Asks as they start, and then those of whom nothing does."""
    started = dict.fromkeys(ask.id for ask, _, _ in of.starts)
    return [*started, *(ask.id for ask in question.asks if ask.id not in started)]


class YtsaurusRounds(PlacedRounds[CompiledConfiguration, CompiledState]):
    """``_standing``: starvation of operations that wait, by id; ``_last``: the last update;
    ``_tried``: the version at which a node last looked for somebody to preempt, by its name; ``_wakes``: when time
    alone could let somebody act; ``_stirred``: of whom another ask may wait than in the last round that was told;
    ``_satisfied``: whether all demand was due in the last update; ``_unseen``: whether nobody looks at more than what
    rounds decide."""

    unit: ClassVar[Unit] = "task"
    occupies: ClassVar[bool] = True

    _nodes: Sequence[Node]
    _node_index: dict[str, int]
    _starves: bool
    """Those of the last update, and whether anybody starved then."""

    def __init__(self, configured: CompiledConfiguration, configuration: Configuration, options: RunOptions) -> None:
        super().__init__(configured, configuration, options)
        self._standing: dict[str, Standing] = {}
        self._last: int | None = None
        self._tried: dict[str, int] = {}
        self._wakes: list[int] = []
        self._satisfied = False
        self._ahead: Ahead | None = None
        self._unseen = False
        self._stirred: dict[str, None] = {}

    def arrive(self, ask: Ask) -> None:
        super().arrive(ask)
        self._stirred[ask.id] = None

    def leave(self, job: str) -> None:
        super().leave(job)
        self._standing.pop(job, None)
        self._stirred[job] = None

    def begin(self, turn: Turn, started: dict[str, list[Task]]) -> None:
        super().begin(turn, started)
        self._stirred.update(dict.fromkeys(started))

    def wakes_at(self) -> int | None:
        return min(self._wakes) if self._wakes else None

    def asked(self, ask: Ask, holds: Holds) -> Ask:
        if holds(ask.id):
            return replace(ask, workload=ask.id)
        standing = self._standing.get(ask.id, QUIET)
        return ask if standing == QUIET else replace(ask, ytsaurus=standing.carried_by(ask.ytsaurus))

    def before(self, loaded: CompiledState, state: State, now: int) -> Turn | None:
        """The fair share update, with everything that waits as demand."""
        running, loaded.recent.rough = loaded.operation_index, self._unseen
        asks = [self.asked(ask, running.__contains__) for _, ask in sorted(self.waiting.items())]
        updated = fair_share_update(loaded, asks, now, self._last)
        self._satisfied = updated.satisfied
        self._nodes, self._node_index = state.nodes, loaded.node_index
        moved = [(state.workloads[running[name]], standing) for name, standing in updated.moved.items()]
        turn = Turn(
            workloads=[
                replace(workload, ytsaurus=standing.carried_by(workload.ytsaurus)) for workload, standing in moved
            ],
            queues=_pools(state, updated),
        )
        differs = bool(turn.workloads or turn.queues)
        self._stand(updated, updated.operations, now, differs=differs)
        return turn if differs else None

    def _stand(self, updated: Updated | Foreseen, standings: dict[str, Standing], now: int, *, differs: bool) -> None:
        """As an update at ``now`` left everybody. ``differs``: the state is another one for it."""
        self._last, self._starves = now, updated.starves
        self._wakes = [] if updated.changes_at is None else [updated.changes_at]
        self.version += differs or (standings is not self._standing and standings != self._standing)
        self._standing = standings

    def ahead(self, loaded: CompiledState) -> Ahead | None:
        """Where all demand is due, and where it is not."""
        self._unseen = True
        before = self._ahead
        if self._satisfied or not (isinstance(before, Crowd) and before.goes_on(loaded)):
            self._ahead = Ahead.of(loaded) if self._satisfied else Crowd.of(loaded)
        return self._ahead

    def foreseen(self, ahead: AnyAhead[CompiledState], now: int) -> Outcome | None:
        """A round in which everything that waits starts, or that kinds of operations tell."""
        if not isinstance(ahead, Ahead):
            return None
        if isinstance(ahead, Crowd):
            return self._crowded(ahead, now)
        self._stirred.clear()
        asks = [ask for _, ask in sorted(self.waiting.items())]
        plain = ahead.everybody_starts(asks, self._standing, now)
        if plain is None:
            return None
        self._last, self._standing, self._wakes = now, plain.standings, plain.wakes
        return Outcome(partial(_order, plain), lambda _: self._carried_out(ahead, plain, now))

    def _carried_out(
        self, ahead: Ahead, plain: Plain | Foreseen, now: int, evicted: Sequence[PlannedEviction] = ()
    ) -> Turn:
        ahead.heard(plain.heard, now)
        turn, when = Turn(evicted=[*evicted]), to_datetime(now)
        started: dict[str, list[Task]] = {}
        for ask, task, node in plain.starts:
            started.setdefault(ask.id, []).append(
                replace(task, node=ahead.names[node], started_at=when, state="running")
            )
        self.begin(turn, started)
        self.mark_seen(acted=bool(plain.starts or evicted))
        if isinstance(plain, Plain):
            self._wakes = []  # nobody waits any longer
        return turn

    def _crowded(self, ahead: Crowd, now: int) -> Outcome | None:
        foreseen = ahead.foreseen(self.waiting, self._stirred, self._standing, now)
        if foreseen is None:
            return None
        self._stand(foreseen, foreseen.standings, now, differs=foreseen.differs)

        def carry_out(leaving: Leaving) -> Turn:
            version = self.version
            turn = self._carried_out(ahead, foreseen, now, [of for of in foreseen.evictions if not leaving(of)])
            tried = ahead.tried(foreseen.heard)
            for looked in dict.fromkeys(tried) if self._starves or now in tried else ():
                if looked == now or self._starves:
                    names = [name for name, last in zip(ahead.names, tried, strict=False) if last == looked]
                    self._looked(names, looked, now, version)
            return turn

        return Outcome(partial(_order, foreseen), carry_out, foreseen.evictions)

    def answered(self, question: Question, result: Result, leaving: Leaving) -> Turn:
        version = self.version
        turn = super().answered(question, result, leaving)
        notes: dict[str, Any] = (result.notes or {}).get("nodes", {})
        named: dict[int, tuple[dict[str, Any], list[str]]] = {}
        for note, names in groupby(notes, notes.__getitem__):  # most nodes leave the same behind
            named.setdefault(id(note), (note, []))[1].extend(names)
        for note, names in named.values():
            after = wire.Node(**note)
            if after.overcommit_since is not None:
                self._wakes.append(micros(after.overcommit_since) + self.configured.settings.overcommit_duration + 1)
            self._left(names, after, turn)
            if self._ahead is not None:
                self._ahead.preempted(names, after)
            if after.last_preemptive_scheduling_at is not None:
                self._looked(names, micros(after.last_preemptive_scheduling_at), question.now, version)
        return turn

    def _looked(self, names: list[str], last: int, now: int, version: int) -> None:
        """On these nodes preemption was tried ``last``, and if that is now, at ``version``: it may help again after the
        backoff where anything has changed since."""
        if last == now:
            self._tried.update(dict.fromkeys(names, version))
        if self._starves and any(self._tried.get(name) != self.version for name in names):
            self._wakes.append(last + self.configured.settings.backoff + 1)

    def _left(self, names: Sequence[str], after: wire.Node, turn: Turn) -> None:
        """Heartbeats left ``after`` behind on these nodes."""
        nodes, index = self._nodes, self._node_index
        bare = None if after == _NOTHING else after
        for name in names:
            node = nodes[index[name]]
            had = node.ytsaurus
            if had is not bare and (had or _NOTHING) != after:
                turn.nodes.append(replace(node, ytsaurus=after))

    def evicting(self, workload: Workload, task: str | None) -> Workload:
        return replace(
            workload, tasks=[running for running in workload.tasks if task is not None and running.name != task]
        )


def _pools(state: State, updated: Updated) -> dict[str, QueueState]:
    """The pools that carry something else than before."""
    carrying: dict[str, QueueState] = {}
    for name, standing in updated.pools.items():
        had = state.queues.get(name, QueueState()).ytsaurus
        volume, ratio = updated.volumes.get(name, (None, None))
        block = wire.PoolState(
            starvation=standing.starvation, below_fair_share_since=standing.below_since, accumulated_volume=volume,
            last_share_ratio=ratio,
        )  # fmt: skip
        if block != (had or wire.PoolState(starvation="non_starving")):
            carrying[name] = QueueState(ytsaurus=block)
    return carrying


ENGINE: Engine[CompiledConfiguration, CompiledState] = Engine(
    facts=FACTS,
    rules=RULES,
    configure=compile_configuration,
    load=compile_state,
    update=update,
    plan=plan,
    rounds=YtsaurusRounds,
    shares=shares,
    after_shares=after_shares,
    waited=waited,
    preemptibility=preemptibility,
    effective_settings=effective_settings,
    findings=findings,
)
"""Pools with strong guarantees and weights, starving operations, preemption at a node's heartbeat."""
