"""What a cycle decided, ask by ask; what every queue is entitled to, requests and holds; settings as they take effect,
and findings: what an administrator should know before a configuration decides anything.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from msgspec.structs import replace

from app.solver.compiled import ROOTLESS
from app.solver.engines.kai.actions import Cycle
from app.solver.engines.kai.configuration import (
    NODE_POOL,
    CompiledConfiguration,
    MinRuntime,
    compile_configuration,
    settings_problems,
)
from app.solver.engines.kai.explain import Never, Outcomes, blocker, explain, never
from app.solver.engines.kai.fair_share import Amounts, divide, dominant_share
from app.solver.engines.kai.jobs import (
    ALLOCATED,
    CPU,
    GPU,
    KAI_UNLIMITED,
    MEMORY,
    PIPELINED,
    QUEUE_RESOURCES,
    Share,
    is_gpu,
    unsupported_gpu,
)
from app.solver.engines.kai.overlay import NO_ASK, Eviction
from app.solver.engines.kai.placing import overfilled
from app.solver.engines.kai.rule_sets import RELEASES, RULE_SETS
from app.solver.engines.kai.state import CompiledState, with_asks
from app.solver.model.base import parse_quantity, scale_of, seconds, to_datetime, units
from app.solver.model.configuration import Configuration, Queue, quotas
from app.solver.model.decision import (
    Alternative,
    Chance,
    Condition,
    Decision,
    Outcome,
    Placement,
    Plan,
    PlannedEviction,
    Result,
    Victim,
)
from app.solver.model.kai import Settings
from app.solver.model.problems import Finding, InvalidInput, pointer
from app.solver.model.request import Options
from app.solver.model.state import Ask, State
from app.solver.question import Question

_MESSAGES = {
    "reclaim": "{pod} is reclaimed: its queue {queue} holds more than its share, and {ask} of {for_queue} needs room",
    "preempt": "{pod} is preempted by {ask}, which has a higher priority in the same queue {queue}",
    "consolidation": "{pod} moves so that {ask} fits",
}


@dataclass(slots=True)
class Draw:
    """An outcome of a cycle, as `Cycle.outcome` tells it: the seed that came to it first, what it does, whether that
    overfills a node, and how many draws came to it."""

    outcome: Hashable
    seed: int
    plan: Plan
    overfills: bool
    times: int = 0


def drawn(cycle: Cycle, outcome: Hashable, seed: int) -> Draw:
    """What a cycle came to."""
    return Draw(outcome, seed, _plan(cycle, Outcomes(cycle)), overfilled(cycle.overlay))


def answer(cycle: Cycle, question: Question) -> Result:
    """Decisions by ask, the order in which jobs had their turn, and the plan. A round that nobody watches is told by
    its plan alone."""
    overlay, outcomes = cycle.overlay, Outcomes(cycle)
    asked = () if question.brief else range(len(overlay.asks))
    return Result(
        decisions=[decision_of(cycle, outcomes, a, question) for a in asked],
        order=[overlay.asks[overlay.jobs.ask[job]].id for job in cycle.taken] if question.ordered else None,
        plan=_plan(cycle, outcomes),
    )


def with_chance(result: Result, draws: Sequence[Draw], number: int) -> Result:
    """The answer, which is the first of the draws; its plan names what the others came to. ``number``: of all draws."""
    others = [Alternative(share=draw.times / number, plan=draw.plan) for draw in draws[1:]]
    share = draws[0].times / number if number else None
    return replace(result, plan=replace(result.plan, chance=Chance(draws=number, share=share, others=others)))


def decision_of(cycle: Cycle, outcomes: Outcomes, a: int, question: Question) -> Decision:
    """The answer for ask number ``a`` of the cycle."""
    overlay = cycle.overlay
    ask, job = overlay.asks[a], overlay.jobs.of_ask[a]
    now = to_datetime(question.now)
    placed, lost = outcomes.placed[a], outcomes.lost[a]
    victims = [victim_of(cycle, e, outcomes.holder(e.ask), now) for e in outcomes.victims[a]]
    why = None if placed or lost else never(cycle, job)
    outcome = _outcome(cycle, placed, why, evicts=bool(victims))
    condition = _condition(cycle, outcomes, a, why, now)
    names = overlay.node_names
    starts = any(overlay.status[t] == ALLOCATED for t in placed)  # a later action may move what allocate started
    decision = Decision(
        ask=ask.id,
        outcome=outcome,
        node=names[overlay.node[placed[0]]] if len({overlay.node[t] for t in placed}) == 1 else None,
        placements={overlay.jobs.task_name[t]: names[overlay.node[t]] for t in placed} or None,
        victims=victims,
        conditions=[condition],
        shortages=why.shortages or None if why else None,
        starts=[ask.workload or ask.id] if job in cycle.starts and starts else None,
    )
    if question.explain == "none":
        return decision
    return replace(decision, explanation=explain(cycle, outcomes, a, question, decision))


def _plan(cycle: Cycle, outcomes: Outcomes) -> Plan:
    return Plan(evictions=planned(cycle, outcomes), placements=placements(cycle))


def planned(cycle: Cycle, outcomes: Outcomes) -> list[PlannedEviction]:
    """The evictions as the plan shows them."""
    overlay, jobs = cycle.overlay, cycle.overlay.jobs
    out: list[PlannedEviction] = []
    for e in outcomes.evictions:
        job = jobs.task_job[e.task]
        runs = e.task < overlay.running_tasks
        out.append(
            PlannedEviction(
                workload=jobs.id[job], task=jobs.task_name[e.task], queue=overlay.queue_name(jobs.queue[job]),
                node=overlay.node_names[jobs.task_node[e.task] if runs else e.node], reason=e.action,
                for_ask=None if e.ask == NO_ASK else overlay.asks[outcomes.holder(e.ask)].id,
                just_placed=None if runs else True,
            )
        )  # fmt: skip
    return out


def placements(cycle: Cycle) -> list[Placement]:
    """Where pods go, in order: those of asks, and victims that move."""
    overlay, jobs = cycle.overlay, cycle.overlay.jobs
    out: list[Placement] = []
    for t in overlay.placed:
        if overlay.status[t] in (ALLOCATED, PIPELINED):
            job = jobs.task_job[t]
            ask = overlay.ask_of_task(t)
            out.append(
                Placement(
                    ask=None if ask is None else ask.id, workload=jobs.id[job] if ask is None else None,
                    task=jobs.task_name[t], node=overlay.node_names[overlay.node[t]],
                    pipelined=overlay.status[t] == PIPELINED,
                )
            )  # fmt: skip
    return out


def victim_of(cycle: Cycle, eviction: Eviction, holder: int, now: datetime) -> Victim:
    """One eviction with what it frees and why. ``holder``: the ask that has the room in the end."""
    overlay, jobs = cycle.overlay, cycle.overlay.jobs
    t = eviction.task
    job = jobs.task_job[t]
    queue = overlay.queue_name(jobs.queue[job])
    asking = overlay.asks[eviction.ask]
    message = _MESSAGES[eviction.action].format(
        pod=f"{jobs.id[job]}/{jobs.task_name[t]}", queue=queue, ask=asking.id, for_queue=asking.queue
    )
    if holder != eviction.ask:
        message += f"; {overlay.asks[holder].id} has that room now"
    if overlay.status[t] == PIPELINED:
        message += f"; it runs on at {overlay.node_names[overlay.node[t]]}"
    return Victim(
        workload=jobs.id[job],
        task=jobs.task_name[t],
        queue=queue,
        node=overlay.node_names[jobs.task_node[t]],
        reason=eviction.action,
        message=message,
        conditions=[_condition_of("DisruptionTarget", "True", eviction.action.capitalize(), message, now)],
        freed={
            name: units(parse_quantity(value, scale_of(name)), name)
            for name, value in jobs.task_wire[t].requests.items()
        },
    )


def _outcome(cycle: Cycle, placed: list[int], why: Never | None, *, evicts: bool) -> Outcome:
    """Reserved places that nobody has to be evicted for wait for releases that are under way already."""
    if not placed:
        return "infeasible" if why is not None else "wait"
    if evicts:
        return "preempt"
    return "admit" if any(cycle.overlay.status[t] == ALLOCATED for t in placed) else "wait"


def _condition(cycle: Cycle, outcomes: Outcomes, a: int, why: Never | None, now: datetime) -> Condition:
    overlay, placed, lost = cycle.overlay, outcomes.placed[a], outcomes.lost[a]
    pods = overlay.pods_of(a)
    starting = sum(overlay.status[t] == ALLOCATED for t in placed)
    later = len(placed) - starting
    if starting:
        waits = f", {later} more once what is on {'its' if later == 1 else 'their'} place is gone" if later else ""
        message = f"{starting} of {len(pods)} pods start now{waits}"
        return _condition_of("PodScheduled", "True", "Allocated", message, now)
    if placed:
        message = f"{later} of {len(pods)} pods have a place that is still being released"
        return _condition_of("PodScheduled", "False", "Pipelined", message, now)
    if lost is not None:
        message = f"{lost.action}: {overlay.asks[lost.ask].id} took the place that it was given"
        return _condition_of("PodScheduled", "False", "PlaceTaken", message, now)
    if why is not None:
        return _condition_of("PodScheduled", "False", why.reason, why.message, now)
    reason, message = blocker(cycle, overlay.jobs.of_ask[a])
    return _condition_of("PodScheduled", "False", reason, message, now)


def _condition_of(kind: str, status: Literal["True", "False"], reason: str, message: str, now: datetime) -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=message, last_transition_time=now)


def shares(state: CompiledState, asks: list[Ask], now: int, options: Options) -> dict[str, Any]:
    """The body of ``POST /v1/shares``, in whole units; an entitlement without bound is ``"unlimited"``. KAI counts
    pending pods as requests, so that the asks change the shares; the time has no say."""
    del now, options
    jobs, _ = with_asks(state, asks)
    division = divide(state, jobs)
    configuration = state.configuration
    names = answer_names(configuration, state)

    def shown(values: Amounts | Share, units: Share) -> dict[str, int | float | str]:
        return {name: in_units(values[r], units[r]) for r, name in enumerate(names)}

    steps: Share = (1000, 1, 1000)
    amounts: Share = (1000, 1, 1)
    return {
        "queues": {
            name: {
                "fair_share": shown(division.fair[q], amounts),
                "allocatable_share": shown(division.allocatable[q], amounts),
                "deserved": shown(configuration.deserved[q], steps),
                "limit": shown(configuration.limit[q], steps),
                "request": shown(division.request[q], steps),
                "usage": shown(division.allocated[q], steps),
                "usage_non_preemptible": shown(division.non_preemptible[q], steps),
                "share": dominant_share(division, q),
            }
            for q, name in enumerate(configuration.tree.names)
        }
    }


def answer_names(configuration: CompiledConfiguration, state: CompiledState | None) -> tuple[str, str, str]:
    """How answers name the three resources: GPUs by the one name that the documents use, else ``gpu``."""
    used = {placed.resource for queue in configuration.queues for placed in quotas(queue)}
    used |= {name for node in (state.nodes if state else ()) for name in node.capacity}
    gpus = {name for name in used if name == QUEUE_RESOURCES[GPU] or name.endswith("/gpu")}
    return "cpu", "memory", gpus.pop() if len(gpus) == 1 else QUEUE_RESOURCES[GPU]


def in_units(value: float, step: int) -> int | float | str:
    """An amount of ``step`` to a unit, as answers have it: whole ones as integers."""
    if value == KAI_UNLIMITED:
        return "unlimited"
    return value / step if value % step else int(value // step)


def effective_settings(configuration: CompiledConfiguration, state: State | None) -> dict[str, Any]:
    """Durations in seconds, quantities in whole units. ``reclaim_min_runtime`` is what protects a queue against its
    own siblings; with method ``lca`` another queue meets the value of the branch that it reclaims from."""
    del state  # nothing that runs changes a setting
    policy, names = configuration.policy, answer_names(configuration, None)
    return {
        "settings": {
            "rules": policy.rules.name,
            "release": policy.release.release,
            "default_reclaim_min_runtime": seconds(policy.default_reclaim),
            "default_preempt_min_runtime": seconds(policy.default_preempt),
            "reclaim_resolve_method": policy.method,
            "actions": list(policy.actions),
            "staleness_grace_period": seconds(policy.staleness_grace),
            "k_value": policy.k_value,
            "use_scheduling_signatures": policy.use_scheduling_signatures,
            "max_consolidation_preemptees": policy.max_consolidation_preemptees,
            "allow_consolidating_reclaim": policy.allow_consolidating_reclaim,
        },
        "queues": {name: _queue(configuration, q, names) for q, name in enumerate(configuration.tree.names)},
    }


def _queue(configuration: CompiledConfiguration, queue: int, names: tuple[str, str, str]) -> dict[str, Any]:
    reclaim = configuration.min_runtimes.reclaim_at(queue)
    preempt = configuration.min_runtimes.for_preempt(queue)
    return {
        "reclaim_min_runtime": seconds(reclaim.micros),
        "reclaim_min_runtime_set_by": _set_by(configuration, reclaim),
        "preempt_min_runtime": seconds(preempt.micros),
        "preempt_min_runtime_set_by": _set_by(configuration, preempt),
        "priority": configuration.priority[queue],
        "deserved": _amounts(configuration.deserved[queue], names),
        "limit": _amounts(configuration.limit[queue], names),
        "over_quota_weight": dict(zip(names, configuration.weight[queue], strict=True)),
    }


def _set_by(configuration: CompiledConfiguration, minimum: MinRuntime) -> str | None:
    """The queue that sets the value; None for the node pool's default."""
    return None if minimum.set_by == NODE_POOL else configuration.tree.names[minimum.set_by]


def _amounts(values: Share, names: tuple[str, str, str]) -> dict[str, int | float | str]:
    return {name: in_units(value, step) for name, value, step in zip(names, values, (1000, 1, 1000), strict=True)}


_NAMES = QUEUE_RESOURCES


def findings(configuration: Configuration) -> list[Finding]:
    """Remarks in document order; pointers are relative to the configuration document."""
    silent = [*_silent_defaults(configuration), *_unread(configuration)]
    try:
        compiled = compile_configuration(configuration)
    except InvalidInput:
        return silent  # the problems themselves are findings already, and there is no tree to look at
    return [
        *silent,
        *_quotas(configuration, compiled),
        *_minimum_runtimes(configuration, compiled),
        *_actions(compiled),
    ]


def _silent_defaults(configuration: Configuration) -> Iterator[Finding]:
    """Values that released KAI replaces without a word."""
    settings = configuration.settings.kai or Settings()
    if not RULE_SETS[settings.rules].refuses_settings:
        for problem in settings_problems(settings):
            yield _warning(
                "kai-setting-replaced", problem.pointer.removeprefix("/configuration"),
                f"{problem.detail}; KAI uses its default instead",
            )  # fmt: skip


def _unread(configuration: Configuration) -> Iterator[Finding]:
    """What the document says and KAI has no notion of."""
    settings = configuration.settings.kai or Settings()
    if settings.search_budgets is not None:
        detail = "no search ends so here: how long the released one takes is not known"
        if not RELEASES[settings.release].budgets_time:
            detail = f"KAI {settings.release} has no such budgets"
        yield _info("kai-search-budgets", pointer("settings", "kai", "search_budgets"), detail)
    if configuration.flavors:
        yield _warning("kai-unread", pointer("flavors"), "KAI has no flavors")
    for i, queue in enumerate(configuration.queues):
        for _, resource, quota, path in quotas(queue, ("queues", i)):
            if resource not in ("cpu", "memory") and not is_gpu(resource):
                why = unsupported_gpu(resource) or "KAI divides cpu, memory and GPUs only"
                yield _warning("kai-unread", pointer(*path), why)
            for field in ("borrowing_limit", "lending_limit"):
                if getattr(quota, field) is not None:
                    yield _warning("kai-unread", pointer(*path, field), f"KAI has no {field.replace('_', ' ')}")


def _quotas(configuration: Configuration, compiled: CompiledConfiguration) -> Iterator[Finding]:
    tree = compiled.tree
    for q, name in enumerate(tree.names):
        for r in (CPU, MEMORY, GPU):
            where = _quota_pointer(configuration.queues[q], q, r)
            deserved, limit = compiled.deserved[q][r], compiled.limit[q][r]
            if limit != KAI_UNLIMITED and (deserved == KAI_UNLIMITED or deserved > limit):
                detail = f"{name!r} deserves more {_NAMES[r]} than its limit lets it have"
                yield _warning("kai-deserved-over-limit", where, detail)
            children = [compiled.deserved[c][r] for c in tree.children[q]]
            if children and deserved != KAI_UNLIMITED and KAI_UNLIMITED not in children and sum(children) > deserved:
                detail = f"the children of {name!r} deserve more {_NAMES[r]} together than it does"
                yield _info("kai-children-over-deserved", where, detail)


def _quota_pointer(queue: Queue, q: int, r: int) -> str:
    for placed in quotas(queue, ("queues", q)):
        if placed.resource == _NAMES[r] or (r == GPU and is_gpu(placed.resource)):
            return pointer(*placed.where)
    return pointer("queues", q)


def _minimum_runtimes(configuration: Configuration, compiled: CompiledConfiguration) -> Iterator[Finding]:
    tree, policy = compiled.tree, compiled.policy
    for q, queue in enumerate(configuration.queues):
        if queue.kai is None or queue.kai.reclaim_min_runtime is None or policy.method != "lca":
            continue
        if tree.parent[q] == ROOTLESS and len(tree.roots) == 1:
            if tree.children[q] and all(_overrides(configuration, c) for c in tree.children[q]):
                detail = "every child overrides it, and no other tree can reclaim from this one"
                yield _info("kai-min-runtime-unused", pointer("queues", q, "kai", "reclaim_min_runtime"), detail)
        elif len(tree.children[tree.parent[q]] if tree.parent[q] != ROOTLESS else tree.roots) == 1:
            detail = f"{queue.name!r} has no sibling, so with method 'lca' it protects only what its children inherit"
            yield _info("kai-min-runtime-unused", pointer("queues", q, "kai", "reclaim_min_runtime"), detail)


def _overrides(configuration: Configuration, queue: int) -> bool:
    block = configuration.queues[queue].kai
    return block is not None and block.reclaim_min_runtime is not None


def _actions(compiled: CompiledConfiguration) -> Iterator[Finding]:
    actions = compiled.policy.actions
    if len(set(actions)) < len(actions):
        yield _info(
            "kai-action-repeated", pointer("settings", "kai", "actions"), "an action runs more than once a cycle"
        )
    if not actions:
        yield _warning("kai-no-actions", pointer("settings", "kai", "actions"), "no action: every ask waits")


def _warning(rule: str, where: str, detail: str) -> Finding:
    return Finding(rule=rule, severity="warning", pointer=where, detail=detail)


def _info(rule: str, where: str, detail: str) -> Finding:
    return Finding(rule=rule, severity="info", pointer=where, detail=detail)
