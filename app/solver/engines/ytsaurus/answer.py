"""What heartbeats came to, as an answer says it; why an ask that started nothing waits; and what of fair shares the
next request's state must say again.

Arbiter keeps nothing between requests, so whoever asks keeps YTsaurus' state over a series of them (``after_shares``).
Documents are JSON as sent and received; nothing is changed in place.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import numpy as np

from app.solver.engines.ytsaurus.explain import Explainer, Reason, warnings
from app.solver.engines.ytsaurus.heartbeat import backoffs_over, participants
from app.solver.engines.ytsaurus.operations import NEVER, UNLIMITED_STEPS, Flags, Ints, all_of, any_of, by_level
from app.solver.engines.ytsaurus.preparation import NOBODY, Overlay, Stopped
from app.solver.engines.ytsaurus.settings import Difference
from app.solver.model.base import seconds, to_datetime, units
from app.solver.model.decision import (
    Change,
    Condition,
    Decision,
    Explanation,
    Placement,
    PlannedEviction,
    Shortage,
    Victim,
)
from app.solver.model.state import Ask
from app.solver.question import Question

Json = dict[str, Any]


_MESSAGES = {
    "NothingAsked": "the ask wants no allocation",
    "NoFeasibleNode": "no node that it may use is large enough for one of its allocations",
    "NeverWithinLimits": "one of its allocations alone exceeds the resource_limits of {limit}",
    "Suspended": "the operation is suspended",
    "GracefulAndSatisfied": "a graceful operation that has its fair share starts nothing more",
    "ResourceLimitsReached": "one more allocation would exceed the resource_limits of {limit}",
    "NodeNotAllowed": "the node of this heartbeat is not one that it may use",
    "TooLittleSpare": "the node of this heartbeat has less than min_spare_allocation_resources left",
    "NotStarving": "{nodes} no free resources for it, and as its operation is not starving nobody has to stop",
    "PreemptiveSchedulingBackoff": "{nodes} no free resources for it, and preemption was tried there too recently",
    "AnotherTookThePreemption": "{nodes} no free resources for it, and a heartbeat preempts for one allocation at most",
    "NotEnoughPreemptible": "{nodes} no room for it even without all allocations that it may preempt",
}
_CODES = tuple(_MESSAGES)
_NEVER = frozenset({"NothingAsked", "NoFeasibleNode", "NeverWithinLimits"})
_SHORT = frozenset({"NotStarving", "PreemptiveSchedulingBackoff", "AnotherTookThePreemption", "NotEnoughPreemptible"})


class Waiting:
    """Why asks that started nothing wait, or can never run: worked out for all at once, after the heartbeats.

    ``heard``: the nodes whose heartbeats were processed; ``tried``: where preemption was open."""

    def __init__(self, overlay: Overlay, asks: Sequence[Ask], heard: Ints, tried: Flags) -> None:
        self._overlay = overlay
        self.heard = heard
        self._first = np.searchsorted(overlay.prepared.situation.wants.ask, np.arange(len(asks) + 1))
        self._only = int(heard[0]) if len(heard) == 1 else None
        self._asks, self._tried = len(asks), tried
        self._codes: Ints | None = None
        self._known: dict[tuple[str, int], Reason] = {}

    def reason(self, ask: int) -> Reason:
        """Why ``ask`` (its position) started nothing. Asks of one shape that wait alike share one object."""
        if self._codes is None:  # nobody asks where everything has started
            tried = bool(self._tried[self.heard].any())
            self._codes = self._all_codes(self._asks, tried)
        code, want = _CODES[int(self._codes[ask])], int(self._first[ask])
        if code in ("NeverWithinLimits", "ResourceLimitsReached"):
            return self._at_limit(code, want)
        wants = self._overlay.prepared.shape_of
        key = (code, int(wants[want]) if want < len(wants) else -1)
        if key not in self._known:
            self._known[key] = self._named(code, want)
        return self._known[key]

    def _all_codes(self, asks: int, tried: bool) -> Ints:
        """By ask the index of its code: the first that applies, from never to not now."""
        prepared = self._overlay.prepared
        situation, wants = prepared.situation, prepared.situation.wants
        overlay = self._overlay
        nowhere = ~_fits_some_node(overlay)
        never = nowhere | ~_within(overlay, np.zeros_like(overlay.usage), np.zeros_like(overlay.pool_usage))
        not_now = nowhere | ~_within(overlay, overlay.usage, overlay.pool_usage)
        asked = np.zeros(asks, bool)
        asked[wants.ask[wants.count > 0]] = True
        operation = np.zeros(asks, np.int64)
        operation[wants.ask] = wants.operation
        priority = prepared.priority[operation] > 0
        applies = {
            "NothingAsked": ~asked,
            "NoFeasibleNode": _every(nowhere, wants.ask, asks),
            "NeverWithinLimits": _every(never, wants.ask, asks),
            "Suspended": situation.operations.suspended[operation],
            "GracefulAndSatisfied": ~prepared.active[operation],
            "ResourceLimitsReached": _every(not_now, wants.ask, asks),
            "NodeNotAllowed": _every(~self._may_use(), wants.ask, asks),
            "TooLittleSpare": ~priority & ~_every(self._lacks(), wants.ask, asks),
            "NotStarving": ~priority,
            "PreemptiveSchedulingBackoff": np.full(asks, not tried),
            "AnotherTookThePreemption": ~_every(~self._had_room(), wants.ask, asks),
            "NotEnoughPreemptible": np.ones(asks, bool),
        }
        return np.argmax(np.stack([applies[code] for code in _CODES]), axis=0)

    def _may_use(self) -> Flags:
        """By want: whether it may use the node of the only heartbeat (of several: always)."""
        prepared = self._overlay.prepared
        if self._only is None:
            return np.ones(len(prepared.shape_of), bool)
        out = prepared.feasible.anywhere.copy()
        allowed = prepared.feasible.on.get(self._only)
        if allowed is not None:
            out[allowed] = True
        return out & prepared.situation.cluster.schedulable[self._only]

    def _had_room(self) -> Flags:
        """By want: whether a preemptive stage that started another one had room for it too."""
        prepared = self._overlay.prepared
        wants, feasible = prepared.situation.wants, prepared.feasible
        out = np.zeros(len(prepared.shape_of), bool)
        for name in prepared.situation.config.settings.rules.stages:
            rooms = [room for room in self._overlay.rooms if room.stage == name]
            if not rooms:
                continue
            sizes = np.unique(np.array([room.resources for room in rooms]), axis=0)
            some = np.array([bool(all_of(shape <= sizes).any()) for shape in prepared.shapes], bool)
            fits = some[prepared.shape_of] & feasible.anywhere
            for room in rooms:
                if room.node in feasible.on:
                    rows = feasible.on[room.node]
                    fits[rows] |= all_of(wants.need[rows] <= room.resources)
            out |= fits & participants(self._overlay, name)[wants.operation]
        return out

    def _lacks(self) -> Flags:
        """By want: whether the node of the only heartbeat has too little free for it (of several: always)."""
        prepared = self._overlay.prepared
        if self._only is None:
            return np.ones(len(prepared.shape_of), bool)
        return any_of(prepared.shapes > np.maximum(self._overlay.free(self._only), 0))[prepared.shape_of]

    def _named(self, code: str, want: int) -> Reason:
        nodes = "the nodes have" if self._only is None else f"{self._node_name(self._only)} has"
        outcome = "infeasible" if code in _NEVER else "wait"
        message = _MESSAGES[code].format(nodes=nodes)
        return Reason(outcome, code, message, self._shortages(want) if code in _SHORT else None)

    def _node_name(self, node: int) -> str:
        return self._overlay.prepared.situation.cluster.state.nodes[node].name

    def _at_limit(self, code: str, want: int) -> Reason:
        """Names whose limit it is, by how much it is short, and which limit would let the ask in."""
        situation = self._overlay.prepared.situation
        operation = int(situation.wants.operation[want])
        need = situation.wants.need[want]
        names = situation.config.tree.names
        pool = int(situation.operation_parent[operation])
        beyond = self._over(need, self._overlay.usage[operation], situation.operations.limits[operation], None)
        label = f"operation {situation.operations.ids[operation]}"
        while not beyond[0] and pool != situation.root:
            beyond = self._over(need, self._overlay.pool_usage[pool], situation.pool_limits[pool], names[pool])
            label = f"pool {names[pool]}"
            pool = int(situation.parent[pool])
        outcome = "infeasible" if code in _NEVER else "wait"
        return Reason(outcome, code, _MESSAGES[code].format(limit=label), beyond[0] or None, tuple(beyond[1]))

    def _over(self, need: Ints, used: Ints, limit: Ints, queue: str | None) -> tuple[list[Shortage], list[Change]]:
        names = self._overlay.prepared.situation.resources
        shortages: list[Shortage] = []
        changes: list[Change] = []
        for r in np.flatnonzero(used + need > limit).tolist():
            name, free = names[r], max(int(limit[r] - used[r]), 0)
            shortages.append(_shortage(name, int(need[r]), free, queue=queue))
            if queue is not None:
                total = int(used[r] + need[r])
                changes.append(
                    Change(
                        queue=queue, resource=name, field="limit", current=units(int(limit[r]), name),
                        needed=units(total, name), detail=f"{queue} would then have room for one more allocation",
                    )
                )  # fmt: skip
        return shortages, changes

    def _shortages(self, want: int) -> list[Shortage] | None:
        """What the node of the only heartbeat lacks."""
        if self._only is None:
            return None
        situation = self._overlay.prepared.situation
        need = situation.wants.need[want]
        free = np.maximum(self._overlay.free(self._only), 0)
        return [
            _shortage(situation.resources[r], int(need[r]), int(free[r]), node=self._node_name(self._only))
            for r in np.flatnonzero(need > free).tolist()
        ] or None


def _every(flags: Flags, ask: Ints, asks: int) -> Flags:
    """By ask: whether all its wants are flagged; an ask without any is."""
    out = np.ones(asks, bool)
    out[ask[~flags]] = False
    return out


def _shortage(name: str, need: int, free: int, *, queue: str | None = None, node: str | None = None) -> Shortage:
    return Shortage(
        resource=name, queue=queue, node=node, requested=units(need, name), available=units(free, name),
        short=units(max(need - free, 0), name),
    )  # fmt: skip


def tried_preemption(overlay: Overlay, nodes: Ints, now: int) -> Flags:
    """By node: whether preemption may be tried there now. To be asked before the heartbeats."""
    out = np.zeros(len(overlay.node_usage), bool)
    out[nodes] = backoffs_over(overlay.last_preemptive[nodes], overlay.prepared.situation.config.settings.backoff, now)
    return out


def _fits_some_node(overlay: Overlay) -> Flags:
    """By want: whether a node that it may use is large enough, were it empty."""
    prepared = overlay.prepared
    cluster = prepared.situation.cluster
    key = (cluster.node_limits, cluster.schedulable)
    sizes = cluster.recent.get("sizes", key)
    if sizes is None:
        sizes = np.unique(cluster.node_limits[cluster.schedulable], axis=0)
        cluster.recent.put("sizes", key, sizes)
    some = np.array([bool(all_of(shape <= sizes).any()) for shape in prepared.shapes], bool)
    out = some[prepared.shape_of] if len(some) else np.zeros(0, bool)
    out &= prepared.feasible.anywhere
    for node, rows in prepared.feasible.on.items():
        if cluster.schedulable[node]:
            out[rows] |= all_of(prepared.situation.wants.need[rows] <= cluster.node_limits[node])
    return out


def _within(overlay: Overlay, usage: Ints, pool_usage: Ints) -> Flags:
    """By want: whether the limits of its operation and of all pools above allow one more allocation."""
    situation = overlay.prepared.situation
    room = np.minimum(situation.pool_limits, UNLIMITED_STEPS) - pool_usage
    for rows in by_level(situation.depth)[1:]:
        room[rows] = np.minimum(room[rows], room[situation.parent[rows]])
    operation = situation.wants.operation
    left = np.minimum(
        situation.operations.limits[operation] - usage[operation], room[situation.operations.pool[operation]]
    )
    return all_of(situation.wants.need <= left)


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
    """One decision an ask, in the order of the asks; of a brief question only for those that start something."""
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
        if question.brief and not started[i]:
            continue  # it goes on waiting
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


def _with(element: Json, said: Json) -> Json:
    """An element with its starvation replaced: what is null now must not linger."""
    if not said:
        return element
    old: Json = element.get("ytsaurus") or {}
    block = {key: value for key, value in old.items() if key not in _CARRIED}
    integral: Json = said.get("integral_guarantees") or {}
    block |= {key: integral[key] for key in _VOLUME if key in integral}
    return element | {"ytsaurus": block | {key: said[key] for key in _CARRIED if said.get(key) is not None}}
