"""What kube-scheduler says: decisions, explanations, what would let an ask in, usage, protection, settings."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from operator import attrgetter
from typing import Any

import msgspec

from app.solver.engines.kube_scheduler.attempt import Chance, Outcome, attempt
from app.solver.engines.kube_scheduler.filters import room_on_all
from app.solver.engines.kube_scheduler.pods import Pod
from app.solver.engines.kube_scheduler.victims import Candidate, DryRun
from app.solver.engines.kube_scheduler.world import Budget, CompiledConfiguration, CompiledState, World, by_namespace
from app.solver.kubernetes import PODS
from app.solver.model.base import to_datetime, units
from app.solver.model.configuration import Configuration
from app.solver.model.decision import (
    EXAMPLES,
    Change,
    Condition,
    Decision,
    Group,
    Placement,
    Plan,
    PlannedEviction,
    Refusal,
    Verdict,
    Victim,
    label,
)
from app.solver.model.problems import Finding
from app.solver.model.request import Eviction, Options
from app.solver.model.state import Ask, State
from app.solver.question import ProtectionQuestion, Question, Why, safe_point

_REASON = "PreemptionByScheduler"
MOST_STEPS = 50
"""Of so many nodes is told what is the matter, and what they would lose."""
Json = dict[str, Any]


def decision(state: CompiledState, question: Question, ask: Ask, outcomes: list[Outcome]) -> Decision:
    """The decision of one ask from what became of its pods."""
    when = to_datetime(question.now)
    # Who stops for one pod of the ask, and terminates already for the next, is named once.
    victims = list({pod.place: pod for outcome in outcomes for pod in outcome.victims}.values())
    violating = {pod.place for outcome in outcomes for pod, _ in outcome.broken}
    placed = [(pod, node, o.kind) for o in outcomes for pod, node in o.placed]
    kind = "preempt" if victims else "admit" if placed else "wait"
    nodes = dict.fromkeys(node for _, node, _ in placed)
    why = question.why()
    if why.on:
        _explain(why, state, ask, outcomes)
    return Decision(
        ask=ask.id, outcome=kind, node=state.name(next(iter(nodes))) if len(nodes) == 1 else None,
        placements={pod.name: state.name(node) for pod, node, _ in placed} or None,
        victims=[_victim(state, pod, ask, when) for pod in victims],
        violations=len(violating) if victims else None,
        conditions=list(dict.fromkeys(_condition(state, outcome, when) for outcome in outcomes)),
        starts=[pod.name for pod, _, _ in placed] if placed and len(placed) < len(ask.tasks) else None,
        explanation=why.explanation(),
    )  # fmt: skip


def plan_for(state: CompiledState, asked: Iterable[tuple[Ask, list[Outcome]]]) -> Plan:
    """What is to be carried out for some asks, from what became of the pods of each. Who stops is named once."""
    evictions: dict[int, PlannedEviction] = {}
    placements: list[Placement] = []
    for ask, outcomes in asked:
        for outcome in outcomes:
            for pod in outcome.victims:
                if pod.place not in evictions:
                    evictions[pod.place] = PlannedEviction(
                        workload=pod.workload, task=pod.name, queue=pod.namespace, node=state.name(pod.node),
                        reason=_REASON, for_ask=ask.id,
                    )  # fmt: skip
            for pod, node in outcome.placed:
                pipelined = outcome.kind == "preempt"
                placements.append(Placement(ask=ask.id, task=pod.name, node=state.name(node), pipelined=pipelined))
    return Plan(evictions=list(evictions.values()), placements=placements)


def _victim(state: CompiledState, pod: Pod, ask: Ask, when: datetime) -> Victim:
    message = f"default-scheduler: preempting to accommodate a higher priority pod ({ask.id} of {ask.queue})"
    return Victim(
        workload=pod.workload, task=pod.name, queue=pod.namespace, node=state.name(pod.node),
        reason=_REASON, message=message,
        conditions=[Condition(
            type="DisruptionTarget", status="True", reason=_REASON, message=message, last_transition_time=when,
        )],
        freed=shown(pod.requests),
    )  # fmt: skip


def _condition(state: CompiledState, outcome: Outcome, when: datetime) -> Condition:
    if outcome.kind == "wait":
        reason = "SchedulingGated" if outcome.rule == "gated" else "Unschedulable"
        return Condition(
            type="PodScheduled", status="False", reason=reason, message=outcome.reason, last_transition_time=when
        )
    where = ", ".join(dict.fromkeys(state.name(node) for _, node in outcome.placed))
    if outcome.kind == "admit":
        return Condition(
            type="PodScheduled",
            status="True",
            reason="Scheduled",
            message=f"fits on {where}",
            last_transition_time=when,
        )
    message = f"nominated to {where}, preempting {len(outcome.victims)} pods"
    return Condition(
        type="PodScheduled", status="False", reason="Unschedulable", message=message, last_transition_time=when
    )


def _explain(why: Why, state: CompiledState, ask: Ask, outcomes: list[Outcome]) -> None:
    names = [machine.node.name for machine in state.machines]
    if len(outcomes) > 1:
        why.step("pods-in-turn", f"{len(outcomes)} pods, one after the other")
    for outcome in outcomes:
        _filters(why, outcome, names)
        _choice(why, state, outcome, names)
    _candidates(why, state, ask, outcomes)
    last = outcomes[-1]
    if last.kind == "wait":
        why.headline(f"{ask.id} waits: {last.reason}")
        why.blocked(_blocker(last), *last.changes)
    elif last.kind == "admit":
        why.headline(f"{ask.id} fits on {', '.join(dict.fromkeys(names[node] for _, node in last.placed))}")
    else:
        gone = ", ".join(f"{pod.workload}/{pod.name}" for pod in last.victims[:3])
        more = f" and {len(last.victims) - 3} more" if len(last.victims) > 3 else ""
        where = ", ".join(dict.fromkeys(names[node] for _, node in last.placed))
        why.headline(f"{gone}{more} must stop so that {ask.id} can run on {where}")
        why.changed(*last.changes)


def _blocker(outcome: Outcome) -> str:
    """The reason that most nodes give, else that of the attempt."""
    reasons = outcome.statuses.reasons()
    if not reasons:
        return outcome.reason
    reason, count = reasons.most_common(1)[0]
    return f"{count} of {len(outcome.statuses)} nodes: {reason}"


def _filters(why: Why, outcome: Outcome, names: list[str]) -> None:
    for name, status in islice(zip(names, outcome.statuses, strict=False), MOST_STEPS):
        if status is not None:
            help_ = "preemption can't help there" if status.final else "preemption may help there"
            why.step(status.rule, f"{name}: {status.reason}; {help_}")


def _candidates(why: Why, state: CompiledState, ask: Ask, outcomes: list[Outcome]) -> None:
    """What became of all that runs, over all pods of the ask that preempt."""
    preempting = [outcome for outcome in outcomes if outcome.kind == "preempt"]
    if not preempting:
        return
    asks = ask.priority or 0
    gone = {pod.place: pod for outcome in preempting for pod in outcome.victims}
    spared = {pod.place: pod for outcome in preempting for pod in outcome.spared if pod.place not in gone}
    places = {node for outcome in preempting for _, node in outcome.placed}
    examined = gone.keys() | spared.keys()

    def tell(pods: Iterable[Pod], verdict: Verdict, rule: str) -> None:
        for pod in pods:
            safe_point()
            why.candidate(
                verdict, rule, pod.workload, task=pod.name, queue=pod.namespace,
                node=state.name(pod.node), priority=pod.effective_priority, asks=asks,
            )  # fmt: skip

    elsewhere = (pod for pod in state.pods if pod.node not in places and pod.place not in examined)
    if why.full:
        tell(elsewhere, "out-of-reach", "another-node")
    else:
        count = len(state.pods) - sum(len(state.machines[node].pods) for node in places)
        count -= sum(pod.node not in places for pod in (*gone.values(), *spared.values()))
        first = [label(pod.workload, pod.name) for pod in islice(elsewhere, min(count, EXAMPLES))]
        if count:
            why.others([Group(verdict="out-of-reach", rule="another-node", count=count, examples=first)])
    here = (pod for node in sorted(places) for pod in state.machines[node].pods if pod.place not in examined)
    tell(here, "protected", "not-less-important")
    tell(spared.values(), "put-back", "reprieved")
    tell(gone.values(), "victim", "preempted")


def _choice(why: Why, state: CompiledState, outcome: Outcome, names: list[str]) -> None:
    if outcome.run is not None:
        run = outcome.run
        why.step("looked-at", f"{run.looked_at} of {run.possible} nodes were looked at", nodes=run.looked_at)
        for candidate in outcome.losses:
            _node(why, candidate, names)
    if outcome.sample is not None:
        worse, starts = outcome.sample
        why.step("sample", f"from {worse} of {starts} starting points the released sample would have chosen worse",
                 worse=worse, starting_points=starts)  # fmt: skip
    if outcome.gang:
        where = ", ".join(f"{pod.name} on {names[node]}" for pod, node in outcome.placed)
        why.step("gang", where or "no pod could be placed")
        if outcome.victims:
            why.step("gang-node-order", "another order of the nodes may lead to other victims")
    if any(pod.group is not None and pod.group.whole and len(pod.group.pods) > 1 for pod in outcome.victims):
        why.step("group-pod-order", "another order of the pods of a group may lead to another node, or other victims")
    if outcome.ties:
        tied = [names[node] for node in outcome.ties]
        why.tied(tied)
        why.step("tie", f"the origin takes one of {', '.join(tied)} by chance; the first in order is taken here")
    if outcome.broken:
        budgets = ", ".join(dict.fromkeys(budget.name for _, budget in outcome.broken))
        why.step("budgets-not-binding", f"{len(outcome.broken)} victims violate {budgets}")
    if outcome.victims and _overlapping(state.budgets, outcome.victims + outcome.spared):
        why.step("budget-order", "budgets overlap; with another order of them others may be the victims")
    for pod in outcome.again:
        why.step("terminating-victim", f"{pod.workload}/{pod.name} terminates already and gets no new call")


def _node(why: Why, candidate: Candidate, names: list[str]) -> None:
    victims = ", ".join(f"{pod.workload}/{pod.name}" for pod in candidate.victims[:5])
    why.step(
        "node", f"{names[candidate.site.machine.index]} would lose {victims}", victims=len(candidate.victims),
        violations=candidate.violations, highest_priority=candidate.victims[0].priority,
    )  # fmt: skip


_OUTRANKED = ("not-helpful", "no-candidate")
"""Why a pod waits that others of at least its priority may keep out, or its size."""
_MOST_TRIED = 8
"""So many budgets."""


def changes(world: World, ask: Ask, pods: Sequence[Pod], chance: Chance, outcome: Outcome) -> Iterator[Change]:
    """Each would do alone. ``pods``: of a gang, or one."""
    if outcome.kind == "preempt":
        yield from _budgets(world, ask, pods, chance, outcome)
    elif outcome.rule in _OUTRANKED:
        yield from _priority(world, ask, pods, chance)
    if outcome.kind == "wait" and outcome.rule in (*_OUTRANKED, "never"):
        if outcome.gang:
            yield from _fewer(ask, pods, outcome)
        elif len(ask.tasks) == 1:
            yield from _less(world, ask, pods[0], chance)


def _priority(world: World, ask: Ask, pods: Sequence[Pod], chance: Chance) -> Iterator[Change]:
    """kube-scheduler: whoever is less important may go, so that only priorities just above somebody's count."""
    least = pods[0].priority
    priorities = set(map(attrgetter("effective_priority"), world.state.pods))
    ranks = sorted(priority + 1 for priority in priorities if priority >= least)

    def starts(priority: int) -> bool:
        raised = [msgspec.structs.replace(pod, priority=priority) for pod in pods]
        return attempt(world.copy(), msgspec.structs.replace(ask, priority=priority), raised, chance).kind != "wait"

    if ranks and starts(ranks[-1]):
        needed = ranks[bisect_left(ranks, True, hi=len(ranks) - 1, key=starts)]
        yield Change(
            queue=ask.queue, resource=PODS, field="priority", current=least, needed=needed,
            detail=f"with priority {needed} it could evict who is in its way",
        )  # fmt: skip


def _fewer(ask: Ask, pods: Sequence[Pod], outcome: Outcome) -> Iterator[Change]:
    """As many pods as have room; a gang's pods are placed one after the other however many are needed."""
    if outcome.placeable:
        needed = len(pods) if ask.min_available is None else ask.min_available
        yield Change(
            queue=ask.queue, resource=PODS, field="min_available", current=needed, needed=outcome.placeable,
            detail=f"{outcome.placeable} of its pods have room together",
        )  # fmt: skip


def _less(world: World, ask: Ask, pod: Pod, chance: Chance) -> Iterator[Change]:
    """Of each resource. What a node has beside others is where an answer changes: all of them, or those that nobody may
    evict."""
    running = chain(
        (other for other in world.state.pods if other.node not in world.touched),
        (other for node in world.touched for other in world.sites[node].pods),
    )
    lower = [other for other in running if other.effective_priority < pod.priority]
    for resource in sorted(pod.requests):
        asked = pod.requests[resource]
        amounts = sorted({0, *(room for room in _rooms(world, pod, lower, resource) if 0 <= room < asked)})

        def waits(amount: int, resource: str = resource) -> bool:
            smaller = msgspec.structs.replace(pod, requests=pod.requests | {resource: amount}, _shape=None)
            return attempt(world.copy(), ask, [smaller], chance).kind == "wait"

        if not asked or len(amounts) < 2 or waits(0):
            continue
        if most := amounts[bisect_left(amounts, True, lo=1, key=waits) - 1]:
            needed = units(most, resource)
            yield Change(
                queue=ask.queue, resource=resource, field="requests", current=units(asked, resource), needed=needed,
                detail=f"with {needed} {resource} it would fit, or could evict who is in its way",
            )  # fmt: skip


def _rooms(world: World, pod: Pod, lower: Sequence[Pod], resource: str) -> set[int]:
    """What is free on nodes, and without ``lower``; where pods are nominated that go before, with them too."""
    free: list[int] = room_on_all(world, resource)[0].tolist()
    emptied = list(free)
    for other in lower:
        emptied[other.node] += other.requests.get(resource, 0)
    rooms = {*free, *emptied}
    for node, of in world.nominated.items():
        held = sum(other.requests.get(resource, 0) for _, other in of if other.priority >= pod.priority)
        rooms |= {free[node] - held, emptied[node] - held}
    return rooms


def _budgets(world: World, ask: Ask, pods: Sequence[Pod], chance: Chance, outcome: Outcome) -> Iterator[Change]:
    """No pod charges a budget twice, so that one that allows as many as it selects is violated by none."""
    for budget in islice(dict.fromkeys(budget for _, budget in outcome.broken), _MOST_TRIED):
        allowed = range(budget.allowed, sum(map(budget.charged_by, world.state.pods)) + 1)
        unbroken = _keeps(world, ask, pods, chance, budget)
        needed = allowed[bisect_left(allowed, True, lo=1, hi=len(allowed) - 1, key=unbroken)]
        yield Change(
            queue=budget.namespace, resource=PODS, field="disruptions_allowed", current=budget.allowed, needed=needed,
            detail=f"with {needed} disruptions allowed {budget.name} would not be violated",
        )  # fmt: skip


def _keeps(world: World, ask: Ask, pods: Sequence[Pod], chance: Chance, budget: Budget) -> Callable[[int], bool]:
    state = world.state
    index = state.budgets.index(budget)

    def unbroken(allowed: int) -> bool:
        other = replace(budget, allowed=allowed)
        budgets = [*state.budgets[:index], other, *state.budgets[index + 1 :]]
        imagined = world.copy()
        imagined.state = replace(state, budgets=budgets, budgets_in=by_namespace(budgets))
        return all(broken is not other for _, broken in attempt(imagined, ask, list(pods), chance).broken)

    return unbroken


def _overlapping(budgets: list[Budget], pods: Iterable[Pod]) -> bool:
    return len(budgets) > 1 and any(sum(budget.selects(pod) for budget in budgets) > 1 for pod in pods if pod.labels)


def sampled(run: DryRun, order: list[int], most: int) -> tuple[int, int]:
    """With every node looked at: from how many of the starting points the released sample would have chosen one that is
    not among the best, and of how many. ``order``: all nodes that preemption might help on."""
    best, worse = set(run.best), 0
    for start in range(len(order)):
        non_violating = violating = 0
        for node in chain(islice(order, start, None), islice(order, start)):
            violations = run.candidates.get(node)
            if violations is not None and (violating if violations else non_violating) < most:
                if node in best:
                    break
                violating += violations > 0
                non_violating += violations == 0
            if non_violating and non_violating + violating >= most:
                worse += 1
                break
        else:
            worse += 1
    return worse, len(order)


def shares(state: CompiledState, asks: list[Ask], now: int, options: Options) -> Json:
    """By namespace, in whole units: what its pods request, by priority too, what of it terminates, and what is asked
    for. kube-scheduler knows no entitlement: there is no fair share. The time has no say."""
    del now, options
    queues: dict[str, Json] = {
        name: {"fair_share": {}, "usage": {}, "preempting": {}, "pending": {}, "by_priority": {}}
        for name in state.configuration.namespaces
    }
    workloads: dict[str, Json] = {}
    for pod in state.pods:
        line = queues[pod.namespace]
        _count(line["usage"], pod.requests)
        _count(line["by_priority"].setdefault(str(pod.effective_priority), {}), pod.requests)
        if pod.terminating:
            _count(line["preempting"], pod.requests)
        _count(workloads.setdefault(pod.workload, {"queue": pod.namespace, "usage": {}})["usage"], pod.requests)
    for i, ask in enumerate(asks):
        for pod in state.pods_of(ask, "asks", i):
            _count(queues[pod.namespace]["pending"], pod.requests)
    for line in queues.values():
        for key in ("usage", "preempting", "pending"):
            line[key] = shown(line[key])
        line["by_priority"] = {priority: shown(of) for priority, of in sorted(line["by_priority"].items())}
    for line in workloads.values():
        line["usage"] = shown(line["usage"])
    return {"queues": queues, "workloads": workloads}


def _count(into: dict[str, int], requests: dict[str, int]) -> None:
    for resource, amount in requests.items():
        into[resource] = into.get(resource, 0) + amount


def shown(steps: dict[str, int]) -> dict[str, int | float]:
    """In whole units, by name: the order that a request names resources in never shows."""
    return {name: units(amount, name) for name, amount in sorted(steps.items())}


def preemptibility(state: CompiledState, question: ProtectionQuestion) -> Json:
    """By workload: whether its pods may be preempted, and by whom: kube-scheduler protects nothing but by priority."""
    asking = None if question.ask is None else state.pods_of(question.ask, "ask")[0].priority
    lines: dict[str, Json] = {}
    refused: set[tuple[str, str]] = set()
    for pod in state.pods:
        line = lines.setdefault(
            pod.workload,
            {"preemptible": False, "reason": "not-less-important", "tasks": {}, "priorities": {}, "budgets": {}},
        )
        line["priorities"][pod.name] = pod.effective_priority
        if names := [budget.name for budget in state.budgets if budget.selects(pod)]:
            line["budgets"][pod.name] = names
        if asking is None or pod.effective_priority < asking:
            line["tasks"][pod.name] = "preemptible"
            line |= {"preemptible": True, "reason": "lower-priority"}
        else:
            line["tasks"][pod.name] = "non_preemptible"
            refused.add((pod.workload, pod.name))
    answer: Json = {"workloads": lines}
    if question.evict:
        answer["evict_allowed"] = not any(
            (name == evicted.workload and evicted.task in (None, task))
            for name, task in refused
            for evicted in question.evict
        )
    return answer


def judge(state: CompiledState, now: int, ask: Ask, proposals: list[list[Eviction]]) -> list[list[Refusal]]:
    """See ``Engine.judge``: whoever is of lower priority may go; budgets are preferred, not binding."""
    del now
    asking = state.pods_of(ask, "asks", 0)[0].priority
    pods: dict[str, list[Pod]] = {}
    for pod in state.pods:
        pods.setdefault(pod.workload, []).append(pod)
    return [
        [
            Refusal(workload=eviction.workload, task=eviction.task, rule="not-less-important", detail="")
            for eviction in evictions
            if any(
                pod.effective_priority >= asking
                for pod in pods.get(eviction.workload, ())
                if eviction.task in (None, pod.name)
            )
        ]
        for evictions in proposals
    ]


def effective_settings(configuration: CompiledConfiguration, state: State | None) -> Json:
    """Settings with what holds where nothing is said."""
    del state
    settings = configuration.settings
    return {
        "settings": {
            "release": settings.release, "workload_aware": settings.workload_aware,
            "min_candidate_nodes_percentage": settings.min_candidate_nodes_percentage,
            "min_candidate_nodes_absolute": settings.min_candidate_nodes_absolute,
        },
        "queues": {name: {} for name in configuration.namespaces},
    }  # fmt: skip


def findings(configuration: Configuration) -> list[Finding]:
    """Quotas and weights of namespaces, which kube-scheduler does not read."""
    return [
        Finding(
            rule="no-quota", severity="warning", pointer=f"/queues/{i}/{field}",
            detail="kube-scheduler knows no quotas of namespaces: this is not looked at",
        )
        for i, queue in enumerate(configuration.queues)
        for field in ("quota", "resource_groups")
        if getattr(queue, field)
    ]  # fmt: skip
