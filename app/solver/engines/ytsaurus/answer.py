"""What heartbeats came to, as an answer says it; and what of an answer the next request's state must say again.

Arbiter keeps nothing between requests, so whoever asks keeps YTsaurus' state over a series of them (``after_shares``,
``after_heartbeats``). Documents are JSON as sent and received; nothing is changed in place.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from app.solver.engines.ytsaurus.explain import Explainer, warnings
from app.solver.engines.ytsaurus.operations import NEVER, Ints
from app.solver.engines.ytsaurus.preparation import NOBODY, Overlay, Stopped
from app.solver.engines.ytsaurus.settings import Difference
from app.solver.engines.ytsaurus.waiting import Waiting
from app.solver.model.base import seconds, to_datetime, units
from app.solver.model.decision import Condition, Decision, Explanation, Placement, PlannedEviction, Victim
from app.solver.model.state import Ask
from app.solver.question import Question

Json = dict[str, Any]


class Answered(NamedTuple):
    """What one series of heartbeats gave."""

    decisions: list[Decision]
    evictions: list[PlannedEviction]
    placements: list[Placement]
    order: list[str]
    notes: dict[str, Any]


def answer(
    overlay: Overlay,
    asks: Sequence[Ask],
    waiting: Waiting,
    differences: Sequence[Sequence[Difference]] | None,
    question: Question,
) -> Answered:
    """``differences``: by ask, those between the rule sets that decided; None: unknown."""
    return Answered(
        decisions=_decisions(overlay, asks, waiting, differences, question),
        evictions=_evictions(overlay, asks),
        placements=_placements(overlay, asks),
        order=_order(overlay, asks),
        notes=_notes(overlay, waiting.heard),
    )


def _decisions(
    overlay: Overlay,
    asks: Sequence[Ask],
    waiting: Waiting,
    differences: Sequence[Sequence[Difference]] | None,
    question: Question,
) -> list[Decision]:
    """One decision an ask, in the order of the asks."""
    situation = overlay.prepared.situation
    started = _started(overlay, asks)
    victims: list[list[Victim]] = [[] for _ in asks]
    for stopped in overlay.stopped:
        if stopped.want != NOBODY:
            ask = int(situation.wants.ask[stopped.want])
            victims[ask].append(_victim(overlay, stopped, asks[ask].id, question.now))
    out: list[Decision] = []
    conditions: dict[tuple[str, str], Condition] = {}
    explainer = None if overlay.log is None else Explainer(overlay, asks, question)
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


def _started(overlay: Overlay, asks: Sequence[Ask]) -> list[list[tuple[str, str]]]:
    """By ask: task and node of every allocation that started, in the order in which they did."""
    wants, nodes = overlay.prepared.situation.wants, overlay.prepared.situation.cluster.state.nodes
    started: list[list[tuple[str, str]]] = [[] for _ in asks]
    for start in overlay.started:
        ask = int(wants.ask[start.want])
        started[ask].append((asks[ask].tasks[int(wants.task[start.want])].name, nodes[start.node].name))
    return started


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


def _victim(overlay: Overlay, stopped: Stopped, ask: str, now: int) -> Victim:
    situation = overlay.prepared.situation
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
    return Condition(type=kind, status=status, reason=reason, message=message, last_transition_time=to_datetime(now))


def _evictions(overlay: Overlay, asks: Sequence[Ask]) -> list[PlannedEviction]:
    situation = overlay.prepared.situation
    cluster = situation.cluster
    out: list[PlannedEviction] = []
    for stopped in overlay.stopped:
        workload = cluster.state.workloads[int(cluster.allocations.operation[stopped.allocation])]
        task = cluster.task_of(stopped.allocation)
        out.append(
            PlannedEviction(
                workload=workload.id, task=task.name, queue=workload.queue, node=task.node, reason=stopped.reason,
                for_ask=None if stopped.want == NOBODY else asks[int(situation.wants.ask[stopped.want])].id,
            )
        )  # fmt: skip
    return out


def _placements(overlay: Overlay, asks: Sequence[Ask]) -> list[Placement]:
    wants = overlay.prepared.situation.wants
    nodes = overlay.prepared.situation.cluster.state.nodes
    return [
        Placement(
            ask=asks[int(wants.ask[start.want])].id,
            task=asks[int(wants.ask[start.want])].tasks[int(wants.task[start.want])].name,
            node=nodes[start.node].name, pipelined=False, stage=start.stage,
        )
        for start in overlay.started
    ]  # fmt: skip


def _order(overlay: Overlay, asks: Sequence[Ask]) -> list[str]:
    """Asks in the order in which the scheduler first took them; those that started nothing come last."""
    wants = overlay.prepared.situation.wants
    first = dict.fromkeys(int(wants.ask[start.want]) for start in overlay.started)
    return [asks[i].id for i in (*first, *(i for i in range(len(asks)) if i not in first))]


def _notes(overlay: Overlay, heard: Ints) -> dict[str, Any]:
    """What the next heartbeats need to know of these: to be sent back as ``node.ytsaurus``."""
    nodes = overlay.prepared.situation.cluster.state.nodes
    rows: list[int] = heard.tolist()
    left: list[tuple[int, int]] = list(
        zip(overlay.last_preemptive[heard].tolist(), overlay.overcommit_since[heard].tolist(), strict=True)
    )
    notes: dict[tuple[int, int], Json] = {  # most nodes leave the same behind
        (last, since): {"last_preemptive_scheduling_at": _instant(last), "overcommit_since": _instant(since)}
        for last, since in dict.fromkeys(left)
    }
    carried = dict(zip([nodes[row].name for row in rows], map(notes.__getitem__, left), strict=True))
    warned = warnings(overlay.prepared.situation.cluster)
    return {"nodes": carried} | ({"warnings": warned} if warned else {})


def _instant(micros: int) -> datetime | None:
    return None if micros == NEVER else to_datetime(micros)


_CARRIED = ("starvation", "below_fair_share_since")
_VOLUME = ("accumulated_volume", "last_share_ratio")


def after_shares(state: Json, shares: Json) -> Json:
    """``state`` for the next request, given the answer of ``POST /v1/shares`` to this one: starvation, since when an
    element is below its fair share, and the volumes of integral guarantees."""
    operations: dict[str, Json] = shares.get("workloads") or {}
    pools: dict[str, Json] = shares.get("queues") or {}
    queues: dict[str, Json] = state.get("queues") or {}
    return state | {
        "workloads": [_with(workload, operations.get(workload["id"], {})) for workload in state.get("workloads", [])],
        "queues": queues | {name: _with(queues.get(name, {}), element) for name, element in pools.items()},
    }


def after_heartbeats(state: Json, answer: Json) -> Json:
    """``state`` for the next request, given the answer of ``POST /v1/decisions`` in mode cycle to this one: a node's
    last preemptive scheduling and its overcommit, from a decision's notes.

    Evictions and placements are the caller's to carry out and report; this keeps what only the scheduler knows."""
    said: Json = answer.get("notes") or {}
    notes: dict[str, Json] = said.get("nodes") or {}
    return state | {"nodes": [_noted(node, notes.get(node["name"])) for node in state.get("nodes", [])]}


def _with(element: Json, said: Json) -> Json:
    """An element with its starvation replaced: what is null now must not linger."""
    if not said:
        return element
    old: Json = element.get("ytsaurus") or {}
    block = {key: value for key, value in old.items() if key not in _CARRIED}
    integral: Json = said.get("integral_guarantees") or {}
    block |= {key: integral[key] for key in _VOLUME if key in integral}
    return element | {"ytsaurus": block | {key: said[key] for key in _CARRIED if said.get(key) is not None}}


def _noted(node: Json, notes: Json | None) -> Json:
    if notes is None:
        return node
    return node | {"ytsaurus": {key: value for key, value in notes.items() if value is not None}}
