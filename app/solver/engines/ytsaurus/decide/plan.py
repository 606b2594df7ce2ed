"""From a question to heartbeats, and from what they did to decisions and a plan.

``cycle``: one fair share update with all asks pending, then heartbeats that see one another's work.
``independent``: each ask as if it were the only pending work, with heartbeats of its own.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import numpy as np

from app.solver.engine import Question
from app.solver.engines.ytsaurus.compile.operations import NEVER
from app.solver.engines.ytsaurus.compile.rule_sets import DIFFERENCES, RULE_SETS, Difference, RuleSet
from app.solver.engines.ytsaurus.compile.state import Cluster
from app.solver.engines.ytsaurus.decide import heartbeat
from app.solver.engines.ytsaurus.decide.overlay import NOBODY, Board, Started, Stopped
from app.solver.engines.ytsaurus.decide.prepare import prepare
from app.solver.engines.ytsaurus.decide.quiet import quiet_nodes
from app.solver.engines.ytsaurus.report.explain import Explainer, under
from app.solver.engines.ytsaurus.report.findings import warnings
from app.solver.engines.ytsaurus.report.waiting import Waiting, tried_preemption
from app.solver.model.decision import Condition, Decision, Placement, Plan, PlannedEviction, Result, Victim
from app.solver.model.duration import seconds
from app.solver.model.instant import at
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.quantity import units
from app.solver.model.state import Ask
from app.solver.model.trace import Explanation
from app.solver.stopping import safe_point

_MOST_WORK = 100_000_000
"""Asks times elements of a state that mode independent takes on: some two minutes."""
_MOST_NODES_COMPARED = 500
"""With more heartbeats than this an explanation doesn't say which rule difference decided: it takes deciding again."""


def decide(cluster: Cluster, question: Question) -> Result:
    """Answer a decision question. Raises InvalidInput."""
    nodes = _nodes(cluster, question)
    alone = question.mode == "independent" and question.asks
    if alone:
        _refuse_endless_work(cluster, len(question.asks))
    groups = [[ask] for ask in question.asks] if alone else [question.asks]
    runs = [_run(cluster, asks, nodes, question) for asks in groups]
    cycle = question.mode == "cycle"
    return Result(
        decisions=[decision for run in runs for decision in run.decisions],
        order=runs[0].order if cycle else None,
        plan=Plan(
            evictions=_once(eviction for run in runs for eviction in run.evictions),
            placements=[placement for run in runs for placement in run.placements],
        ),
        notes=runs[0].notes if cycle else None,
    )


def _refuse_endless_work(cluster: Cluster, asks: int) -> None:
    """Fair shares anew for every ask: on a large tree that is for a few hundred of them, not for all that wait."""
    size = len(cluster.operations) + len(cluster.config.tree) + len(cluster.allocations) + len(cluster.node_index)
    if asks > 1 and asks * size > _MOST_WORK:
        detail = f"{asks} asks are too many to decide one by one on {size} elements: use mode cycle, or fewer at once"
        raise InvalidInput([Problem(pointer="/asks", detail=detail)])


class _Run(NamedTuple):
    """What one series of heartbeats gave."""

    decisions: list[Decision]
    evictions: list[PlannedEviction]
    placements: list[Placement]
    order: list[str]
    notes: dict[str, Any]


def _run(cluster: Cluster, asks: Sequence[Ask], nodes: Sequence[int], question: Question) -> _Run:
    safe_point()
    board = Board(prepare(cluster, asks))
    if question.explain != "none":
        board.log = []
    tried = tried_preemption(board, nodes, question.now)
    heard = _heartbeats(board, nodes, question.now)
    differences: list[list[Difference]] | None = None
    if board.log is not None and len(nodes) <= _MOST_NODES_COMPARED:
        differences = _differences(cluster, asks, nodes, question, board)
    waiting = Waiting(board, asks, heard, tried)
    return _Run(
        decisions=_decisions(board, asks, waiting, differences, question),
        evictions=_evictions(board, asks),
        placements=_placements(board, asks),
        order=_order(board, asks),
        notes=_notes(board, heard),
    )


def _differences(
    cluster: Cluster, asks: Sequence[Ask], nodes: Sequence[int], question: Question, board: Board
) -> list[list[Difference]]:
    """For each ask the differences between the rule sets that change what becomes of it, found by deciding again."""
    settings = cluster.config.settings
    mine = _outcomes(board, len(asks))

    def others(rules: RuleSet) -> list[tuple[list[Started], list[Stopped]]]:
        twin = Board(prepare(under(cluster, rules), asks))
        _heartbeats(twin, nodes, question.now)
        return _outcomes(twin, len(asks))

    if others(RULE_SETS["shipped" if settings.rules.name == "documented" else "documented"]) == mine:
        return [[] for _ in asks]
    alone = [(difference, others(difference.only(settings.rules))) for difference in DIFFERENCES]
    return [[difference for difference, other in alone if other[i] != mine[i]] for i in range(len(asks))]


def _outcomes(board: Board, asks: int) -> list[tuple[list[Started], list[Stopped]]]:
    """What becomes of each ask, to compare."""
    wants = board.prepared.situation.wants.ask
    out: list[tuple[list[Started], list[Stopped]]] = [([], []) for _ in range(asks)]
    for one in board.started:
        out[int(wants[one.want])][0].append(one)
    for one in board.stopped:
        if one.want != NOBODY:
            out[int(wants[one.want])][1].append(one)
    return out


def _nodes(cluster: Cluster, question: Question) -> list[int]:
    options = question.options.ytsaurus
    name = None if options is None else options.heartbeat_node
    if name is None:
        return list(range(len(cluster.node_index)))
    if name not in cluster.node_index:
        raise InvalidInput([Problem(pointer="/options/ytsaurus/heartbeat_node", detail=f"no node {name!r}")])
    return [cluster.node_index[name]]


def _heartbeats(board: Board, nodes: Sequence[int], now: int) -> list[int]:
    """Process heartbeats in order until nothing is pending any more; the nodes that were heard."""
    waits = bool(len(board.left))
    heard: list[int] = []
    skips = len(nodes) > 1 and board.log is None
    quiet = quiet_nodes(board, now) if skips else np.zeros(len(board.node_usage), bool)
    exceeds = bool(board.prepared.situation.pool_limits_tolerance.any())
    for node in nodes:
        safe_point()
        heard.append(node)
        before = len(board.started)
        if quiet[node]:
            heartbeat.pass_over(board, node, now)
        else:
            heartbeat.process(board, node, now)
        if waits and len(nodes) > 1 and not board.left.any():
            break
        if skips and exceeds and len(board.started) > before and board.started[-1].stage != "regular":
            quiet &= quiet_nodes(board, now)
    return heard


def _decisions(
    board: Board,
    asks: Sequence[Ask],
    waiting: Waiting,
    differences: Sequence[Sequence[Difference]] | None,
    question: Question,
) -> list[Decision]:
    """One decision an ask, in the order of the asks."""
    situation = board.prepared.situation
    started: list[list[tuple[str, str]]] = [[] for _ in asks]
    victims: list[list[Victim]] = [[] for _ in asks]
    names = list(situation.cluster.node_index)
    for one in board.started:
        ask = int(situation.wants.ask[one.want])
        started[ask].append((asks[ask].tasks[int(situation.wants.task[one.want])].name, names[one.node]))
    for one in board.stopped:
        if one.want != NOBODY:
            ask = int(situation.wants.ask[one.want])
            victims[ask].append(_victim(board, one, asks[ask].id, question.now))
    out: list[Decision] = []
    conditions: dict[tuple[str, str], Condition] = {}
    explainer = None if board.log is None else Explainer(board, asks, question)
    for i, ask in enumerate(asks):
        reason = None if started[i] else waiting.reason(i)
        why = (
            None
            if explainer is None
            else explainer.explanation(i, reason, None if differences is None else differences[i])
        )
        if reason is None:
            out.append(_placed(ask, started[i], victims[i], why))
        else:
            condition = conditions.get((reason.code, reason.message))
            if condition is None:
                condition = _condition("Scheduled", "False", reason.code, reason.message, question.now)
                conditions[(reason.code, reason.message)] = condition
            out.append(
                Decision(
                    ask=ask.id, outcome=reason.outcome, victims=[], conditions=[condition],
                    shortages=reason.shortages, explanation=why,
                )
            )  # fmt: skip
    return out


def _placed(ask: Ask, started: list[tuple[str, str]], victims: list[Victim], why: Explanation | None) -> Decision:
    """The decision for an ask of which something started; ``counts`` where fewer than asked did."""
    counts: dict[str, int] = {}
    placements: dict[str, str] = {}
    for task, node in started:
        counts[task] = counts.get(task, 0) + 1
        placements.setdefault(task, node)
    fewer = any(counts.get(task.name, 0) < task.count for task in ask.tasks)
    return Decision(
        ask=ask.id, outcome="preempt" if victims else "admit", node=started[0][1], placements=placements,
        counts=counts if fewer else None, victims=victims, conditions=[], explanation=why,
    )  # fmt: skip


def _victim(board: Board, stopped: Stopped, ask: str, now: int) -> Victim:
    situation = board.prepared.situation
    cluster = situation.cluster
    workload = cluster.state.workloads[int(cluster.allocations.operation[stopped.allocation])]
    task = cluster.task_of(stopped.allocation)
    names = cluster.index.names
    usage = cluster.allocations.usage[stopped.allocation].tolist()
    message = f"preempted on node {task.node} to start an allocation of {ask}"
    return Victim(
        workload=workload.id, task=task.name, queue=workload.queue, node=task.node, reason=stopped.reason,
        message=message, freed={name: units(value, name) for name, value in zip(names, usage, strict=True) if value},
        conditions=[_condition("Preempted", "True", stopped.reason, message, now)],
        timeout_seconds=seconds(stopped.timeout),
    )  # fmt: skip


def _condition(kind: str, status: Literal["True", "False"], reason: str, message: str, now: int) -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=message, last_transition_time=at(now))


def _evictions(board: Board, asks: Sequence[Ask]) -> list[PlannedEviction]:
    situation = board.prepared.situation
    cluster = situation.cluster
    out: list[PlannedEviction] = []
    for stopped in board.stopped:
        workload = cluster.state.workloads[int(cluster.allocations.operation[stopped.allocation])]
        task = cluster.task_of(stopped.allocation)
        out.append(
            PlannedEviction(
                workload=workload.id, task=task.name, queue=workload.queue, node=task.node, reason=stopped.reason,
                for_ask=None if stopped.want == NOBODY else asks[int(situation.wants.ask[stopped.want])].id,
            )
        )  # fmt: skip
    return out


def _once(evictions: Iterable[PlannedEviction]) -> list[PlannedEviction]:
    seen: dict[tuple[str, str | None], PlannedEviction] = {}
    for eviction in evictions:
        seen.setdefault((eviction.workload, eviction.task), eviction)
    return list(seen.values())


def _placements(board: Board, asks: Sequence[Ask]) -> list[Placement]:
    wants = board.prepared.situation.wants
    names = list(board.prepared.situation.cluster.node_index)
    return [
        Placement(
            ask=asks[int(wants.ask[one.want])].id,
            task=asks[int(wants.ask[one.want])].tasks[int(wants.task[one.want])].name,
            node=names[one.node], pipelined=False, stage=one.stage,
        )
        for one in board.started
    ]  # fmt: skip


def _order(board: Board, asks: Sequence[Ask]) -> list[str]:
    """Asks in the order in which the scheduler first took them; those that started nothing come last."""
    wants = board.prepared.situation.wants
    first = dict.fromkeys(int(wants.ask[one.want]) for one in board.started)
    return [asks[i].id for i in (*first, *(i for i in range(len(asks)) if i not in first))]


def _notes(board: Board, heard: Sequence[int]) -> dict[str, Any]:
    """What the next heartbeats need to know of these: to be sent back as ``node.ytsaurus``."""
    nodes = board.prepared.situation.cluster.state.nodes
    carried = {
        nodes[node].name: {
            "last_preemptive_scheduling_at": _instant(int(board.last_preemptive[node])),
            "overcommit_since": _instant(int(board.overcommit_since[node])),
        }
        for node in heard
    }
    found = warnings(board.prepared.situation.cluster)
    return {"nodes": carried} | ({"warnings": found} if found else {})


def _instant(micros: int) -> datetime | None:
    return None if micros == NEVER else at(micros)
