"""Why: what each stage looked at, what protected the rest, and which difference between the rule sets decided."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.solver.engine import Question
from app.solver.engines.ytsaurus.board import Board, StageRecord
from app.solver.engines.ytsaurus.guarantees import to_shares
from app.solver.engines.ytsaurus.rules import DIFFERENCES, Difference, RuleSet
from app.solver.engines.ytsaurus.split import GROUPS, PREEMPTIBLE
from app.solver.engines.ytsaurus.state import Cluster
from app.solver.engines.ytsaurus.waiting import Reason
from app.solver.model.quantity import units
from app.solver.model.state import Ask
from app.solver.model.trace import Explanation
from app.solver.trace import Why

_PRIORITIES = ("none", "normal", "aggressive")
_MOST_CANDIDATE_NODES = 8
"""Nodes whose allocations are listed one by one for an ask that waits."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an ask's explanation is told besides the board: who it is and what became of it."""

    position: int
    ask: Ask
    reason: Reason | None
    differences: Sequence[Difference]


def explanation(board: Board, told: Told, question: Question) -> Explanation | None:
    """The record of one ask; None when nobody asked for it."""
    why = question.why()
    if not why.on:
        return None
    situation = board.prepared.situation
    rows = np.flatnonzero(situation.wants.ask == told.position)
    own = {int(row) for row in rows}
    _standing(board, why, int(situation.wants.operation[rows[0]]) if len(rows) else None)
    records = [r for r in board.log or () if own & set(r.started)]
    if told.reason is not None:
        records = list(board.log or ())
    for record in records:
        _stage(board, why, record, own)
    for record in records[:_MOST_CANDIDATE_NODES]:
        _candidates(board, why, record)
    rules = situation.config.settings.rules
    why.step("rules", f"{rules.name} rules", **{d.rule: getattr(d, rules.name) for d in DIFFERENCES})
    for difference in told.differences:
        other = "shipped" if rules.name == "documented" else "documented"
        why.step(difference.rule, f"under {other} rules, {getattr(difference, other)}, and the outcome is another")
    if told.reason is not None:
        why.headline(f"{told.ask.id} waits: {told.reason.message}" if told.reason.outcome == "wait" else
                     f"{told.ask.id} can never run: {told.reason.message}")  # fmt: skip
        why.blocked(told.reason.code, *told.reason.changes)
    else:
        why.headline(_headline(board, told.ask, own))
    return why.explanation()


def _headline(board: Board, ask: Ask, own: set[int]) -> str:
    nodes = board.prepared.situation.cluster.state.nodes
    started = [one for one in board.started if one.want in own]
    victims = sum(one.want in own for one in board.stopped)
    where = ", ".join(dict.fromkeys(nodes[one.node].name for one in started[:5]))
    stage = started[-1].stage.replace("_", " ")
    cost = f"{victims} allocation{'s' * (victims != 1)} must stop" if victims else "nobody has to stop"
    return f"{ask.id}: {len(started)} allocation{'s' * (len(started) != 1)} on {where} ({stage}); {cost}"


def _standing(board: Board, why: Why, operation: int | None) -> None:
    """Where the ask's operation stands: share, satisfaction, priority."""
    if operation is None:
        return
    prepared = board.prepared
    situation, shares = prepared.situation, prepared.shares
    names = situation.resources
    why.step(
        "fair-share",
        f"operation {situation.operations.ids[operation]} of pool "
        f"{situation.config.tree.names[int(situation.operation_parent[operation])]}",
        fair_share=dict(zip(names, shares.fair[operation].tolist(), strict=True)),
        usage_share=dict(zip(names, shares.usage[operation].tolist(), strict=True)),
        demand_share=dict(zip(names, shares.demand[operation].tolist(), strict=True)),
        satisfaction=float(prepared.satisfaction[operation]),
        preemption_priority=_PRIORITIES[int(prepared.priority[operation])],
    )


def _stage(board: Board, why: Why, record: StageRecord, own: set[int]) -> None:
    situation = board.prepared.situation
    node = situation.cluster.state.nodes[record.node].name
    names = situation.resources
    usage = situation.cluster.allocations.usage
    discount = np.sum(usage[record.order], axis=0) if record.order else np.zeros(len(names), np.int64)
    started = len(record.started)
    mine = sum(want in own for want in record.started)
    detail = f"{node}: {started} started" + (f", {mine} of this ask" if mine else "")
    numbers: dict[str, object] = {"node": node, "free": _amounts(names, record.free), "started": started}
    if record.stage != "regular":
        numbers |= {
            "operations": record.participants,
            "preemptible_allocations": len(record.order),
            "preemptible": _amounts(names, discount),
            "stopped": len(record.stopped),
        }
    why.step(record.stage, detail, **numbers)


def _candidates(board: Board, why: Why, record: StageRecord) -> None:
    """What became of every allocation on the node in one preemptive stage."""
    if record.stage == "regular":
        return
    cluster = board.prepared.situation.cluster
    place = {row: i for i, row in enumerate(record.order)}
    for row, group in zip(record.rows.tolist(), record.group.tolist(), strict=True):
        workload = cluster.state.workloads[int(cluster.allocations.operation[row])]
        task = cluster.task_of(row)
        verdict, rule, detail = _verdict(board, record, row, group)
        why.candidate(
            verdict, rule, workload.id, task=task.name, queue=workload.queue, node=task.node, detail=detail,
            group=GROUPS[group], place=place.get(row),
            share=float(to_shares(cluster.allocations.usage[row].astype(float), cluster.total).max(initial=0.0)),
        )  # fmt: skip


def _verdict(board: Board, record: StageRecord, row: int, group: int) -> tuple[str, str, str]:
    if row in record.stopped:
        return "taken", record.stopped[row], "next in order"
    if row in record.order:
        return "spared", "node-fits", "those before it were enough"
    prepared = board.prepared
    operation = int(prepared.situation.cluster.allocations.operation[row])
    operations = prepared.situation.operations
    if any(one.allocation == row for one in board.stopped) and not operations.graceful[operation]:
        return "gone", "stopped-before", "stopped by another stage or heartbeat"
    if operations.graceful[operation]:
        return "protected", "graceful", "graceful operations are only asked to stop"
    if not prepared.takeable[operation]:
        return "protected", "starving", "its operation is starving itself"
    if record.least == PREEMPTIBLE and not prepared.normally_takeable[operation]:
        return "protected", "normal-preemption-off", "a pool above sets allow_normal_preemption to false"
    if group >= record.least and not prepared.gentle[operation]:
        return "protected", "aggressive-preemption-off", "aggressive preemption is not allowed for its operation"
    return "protected", GROUPS[group], f"the stage takes {GROUPS[record.least]} ones"


def _amounts(names: Sequence[str], steps: np.ndarray) -> dict[str, int | float]:
    return {name: units(int(value), name) for name, value in zip(names, steps.tolist(), strict=True)}


def under(cluster: Cluster, rules: RuleSet) -> Cluster:
    """The same state under other rules."""
    settings = replace(cluster.config.settings, rules=rules)
    return replace(cluster, config=replace(cluster.config, settings=settings))
