"""The bodies of YTsaurus' ``POST /v1/shares``, ``POST /v1/preemptibility`` and ``POST /v1/effective-settings``."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from app.solver.engines.ytsaurus.configuration import (
    CompiledConfiguration,
    Inherited,
    operation_threshold,
    operation_timeout,
    operation_tolerance,
    promised_tops,
    without_donor,
)
from app.solver.engines.ytsaurus.explain import warnings
from app.solver.engines.ytsaurus.fair_shares import (
    FairShares,
    Starvation,
    blocked,
    due_shares,
    fair_shares,
    local_satisfaction,
    operation_below,
    operation_starvation,
    pool_below,
    pool_starvation,
)
from app.solver.engines.ytsaurus.guarantees import Update, to_shares
from app.solver.engines.ytsaurus.operations import (
    NEVER,
    STARVATION,
    Flags,
    Floats,
    Ints,
    Levels,
    any_of,
    by_level,
    most,
    pool_satisfaction,
    pool_sums,
    running_sums,
)
from app.solver.engines.ytsaurus.polyline import sums_of
from app.solver.engines.ytsaurus.preparation import (
    AGGRESSIVE,
    AGGRESSIVELY_PREEMPTIBLE,
    GROUPS,
    PREEMPTIBLE,
    aggressive_allowed,
    bounds,
    groups,
    levels,
    normally_takeable,
    priorities,
)
from app.solver.engines.ytsaurus.reading import Steps, Where
from app.solver.engines.ytsaurus.settings import OperationSettings, operation_settings
from app.solver.engines.ytsaurus.situation import Situation, situate
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.model.base import micros, seconds, to_datetime, units
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.request import Eviction, Options
from app.solver.model.state import Ask, State
from app.solver.question import ProtectionQuestion

Elements = dict[str, dict[str, Any]]


def amounts(situation: Situation, steps: Floats) -> list[dict[str, float]]:
    """Rows of steps as answers show them: whole units by resource."""
    names, rows = situation.resources, (steps / np.array(situation.cluster.index.scales)).tolist()
    # There are 100,000 of them in a large answer; not comparing lengths takes a quarter off.
    return [dict(zip(names, row)) for row in rows]  # noqa: B905


def estimated_guarantees(situation: Situation, strong: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Shares of operations and of pools (the root last), given guarantees and weights of pools.

    What each could count on if everybody wanted all: its guarantee, and by weight what its pool has left
    (``ComputeEstimatedGuaranteeShare``, ``fair_share_update.cpp``); output only."""
    root, parent, above = situation.root, situation.parent, situation.operation_parent
    own = situation.operations.weight
    weights = np.bincount(np.concatenate((parent[:root], above)), np.concatenate((weight[:root], own)), root + 1)
    out = np.zeros_like(strong)
    out[root] = strong[root]
    left = strong.copy()
    for level in by_level(situation.depth):
        rows = level[np.argsort(parent[level], kind="stable")]
        bounds = np.append(np.flatnonzero(np.diff(parent[rows], prepend=-1)), len(rows))
        before = running_sums(strong[rows], bounds)
        given = np.clip(out[parent[rows]] - before, 0.0, strong[rows])
        left = out - sums_of(given, parent[rows], root + 1)
        out[rows] = given + left[parent[rows]] * (weight[rows] / weights[parent[rows]])[:, None]
    left = out - sums_of_children(situation, strong, out)
    return left[above] * (own / weights[above])[:, None], out


def sums_of_children(situation: Situation, strong: Floats, estimated: Floats) -> Floats:
    """By pool, how much of its estimate its pools' guarantees take."""
    rows = np.arange(situation.root)
    guaranteed = sums_of(strong[rows], situation.parent[rows], situation.root + 1)
    return np.minimum(guaranteed, estimated)


def add_details(situation: Situation, shares: FairShares, queues: Elements, workloads: Elements) -> None:
    """Write them into the elements, which are those of the situation in its order."""
    root, total = situation.root, situation.cluster.total
    estimated, pool_estimated = estimated_guarantees(situation, shares.pool_strong, shares.pool_weight)
    nothing = dict.fromkeys(situation.resources, 0.0)
    for operation, guaranteed in zip(workloads.values(), amounts(situation, estimated * total), strict=True):
        operation["fair_share_parts"] = {"strong": nothing, "integral": nothing, "weight": operation["fair_share"]}
        operation["estimated_guarantee"] = guaranteed
    _pool_parts(situation, shares, queues)
    for pool, weight, guaranteed in zip(
        queues.values(), shares.pool_weight.tolist(), amounts(situation, pool_estimated * total), strict=False
    ):
        pool |= {
            "weight": weight,
            "fair_share_from_guarantee": pool["fair_share_parts"]["strong"],
            "estimated_guarantee": guaranteed,
        }
    if shares.promised is not None:
        own, pools = shares.promised
        for elements, promised in ((workloads, own), (queues, pools[:root])):
            for element, row in zip(elements.values(), amounts(situation, promised * total), strict=True):
                element["promised_guarantee_fair_share"] = row
    _fifo(situation, shares, workloads)
    _volumes(situation, shares, queues)


def _pool_parts(situation: Situation, shares: FairShares, queues: Elements) -> None:
    root, total = situation.root, situation.cluster.total
    fair, strong, integral = shares.pool_fair[:root], shares.pool_strong[:root], shares.pool_integral[:root]
    from_strong = np.minimum(fair, strong)
    from_integral = np.minimum(fair - from_strong, integral)
    parts = (strong, integral, from_strong, from_integral, fair - from_strong - from_integral)
    rows = zip(queues.values(), *(amounts(situation, part * total) for part in parts), strict=True)
    for pool, guaranteed, proposed, first, second, rest in rows:
        pool |= {
            "strong_guarantee": guaranteed,
            "proposed_integral": proposed,
            "fair_share_parts": {"strong": first, "integral": second, "weight": rest},
        }


def _fifo(situation: Situation, shares: FairShares, workloads: Elements) -> None:
    """Places of operations in FIFO pools; where a pool serves them in another order, that too."""
    above = situation.operation_parent
    other = np.zeros(situation.root + 1, bool)
    other[above[shares.place != shares.served]] = True
    for i in np.flatnonzero(shares.fifo[above]).tolist():
        operation = workloads[situation.operations.ids[i]]
        operation["fifo_index"] = int(shares.place[i])
        if other[above[i]]:
            operation["effective_fifo_index"] = int(shares.served[i])


def _volumes(situation: Situation, shares: FairShares, queues: Elements) -> None:
    for i, (pool, own) in enumerate(zip(queues.values(), situation.config.pools, strict=True)):
        if own.shares.integral.kind != "none":
            pool["integral_guarantees"] = {
                "accumulated_volume": shares.volumes.amounts(i),
                "last_share_ratio": float(shares.ratios[i]),
                "resource_flow_ratio": float(shares.flow[i]),
                "burst_ratio": float(shares.burst[i]),
            }


_STATUS = ("normal", "below_fair_share")


class _Figures(NamedTuple):
    """What is known of all pools, or of all operations."""

    fair: Floats
    usage: Ints
    usage_share: Floats
    wanted: Floats
    satisfaction: Floats
    starvation: Starvation


def shares(cluster: CompiledState, asks: Sequence[Ask], now: int, options: Options) -> dict[str, Any]:
    """What every pool and operation is due, and why; what it uses; how it starves as of ``now``.

    Raises InvalidInput."""
    situation = situate(cluster, asks)
    before = None if options.ytsaurus is None else options.ytsaurus.last_update_at
    last = None if before is None else micros(before)
    shares = fair_shares(situation, Update(now, last))
    own = local_satisfaction(shares.usage, shares.fair, blocked(shares.fair, shares.demand))
    local = local_satisfaction(shares.pool_usage, shares.pool_fair, blocked(shares.pool_fair, shares.pool_demand))
    rows = np.flatnonzero(~situation.operations.suspended)
    pools = pool_satisfaction(local, own[rows], situation.operation_parent[rows], situation.parent, situation.depth)
    root = situation.root
    operations = operation_starvation(situation, operation_below(situation, shares), now)
    starving = pool_starvation(situation, pool_below(situation, shares), now)
    wanted = pool_sums(situation.wanted, situation.operation_parent, situation.parent, situation.depth)
    of_pools = _Figures(
        shares.pool_fair[:root], situation.pool_usage[:root], shares.pool_usage[:root], wanted[:root], pools[:root],
        starving,
    )  # fmt: skip
    of_operations = _Figures(shares.fair, situation.usage, shares.usage, situation.wanted, own, operations)
    queues = _rows(situation, situation.config.tree.names, of_pools)
    workloads = _rows(situation, situation.operations.ids, of_operations)
    add_details(situation, shares, queues, workloads)
    return {
        "queues": queues,
        "workloads": workloads,
        "total": amounts(situation, situation.cluster.total[None, :])[0],
        "fair_share": amounts(situation, shares.pool_fair[root:] * situation.cluster.total)[0],
        "alerts": shares.alerts,
        "warnings": warnings(situation.cluster),
    }


def _rows(situation: Situation, names: list[str], figures: _Figures) -> dict[str, dict[str, Any]]:
    total, starvation = situation.cluster.total, figures.starvation
    usage, usage_share = figures.usage, figures.usage_share
    columns = situation.resources
    demand = usage.astype(float) + figures.wanted
    nothing = ~any_of(usage > 0)
    dominant = np.argmax(np.where(nothing[:, None], to_shares(demand, total), usage_share), axis=1).tolist()
    since = [None if value == NEVER else to_datetime(value) for value in starvation.since.tolist()]
    rows = zip(
        names, amounts(situation, figures.fair * total), amounts(situation, usage.astype(float)),
        amounts(situation, demand), dominant, most(figures.fair).tolist(),
        most(usage_share).tolist(), figures.satisfaction.tolist(), starvation.below.tolist(),
        starvation.level.tolist(), since, strict=True,
    )  # fmt: skip
    return {
        name: {
            "fair_share": due,
            "usage": used,
            "demand": asked,
            "dominant_resource": columns[resource],
            "dominant_fair_share": fair_part,
            "dominant_usage_share": usage_part,
            "satisfaction": satisfied,
            "status": _STATUS[below],
            "starvation": STARVATION[level],
            "below_fair_share_since": when,
        }
        for name, due, used, asked, resource, fair_part, usage_part, satisfied, below, level, when in rows
    }


def preemptibility(cluster: CompiledState, question: ProtectionQuestion) -> dict[str, Any]:
    """What protects whom: groups by allocation, and why an operation's allocations can't be taken. Raises InvalidInput.

    ``evict_allowed``: whether every allocation of ``evict`` could be a victim: of the ask's own stage where an ask is
    given, else of some stage."""
    asks = [*question.asks, *([question.ask] if question.ask is not None and question.ask not in question.asks else [])]
    situation = situate(cluster, asks)
    shares = due_shares(situation)
    group = groups(situation, bounds(situation, shares), np.arange(len(cluster.allocations)))
    level = levels(group, aggressive_allowed(situation)[cluster.allocations.operation])
    workloads = _workloads(situation, group, level)
    out: dict[str, Any] = {"workloads": workloads}
    if question.evict:
        out["evict_allowed"] = all(_allowed(workloads, e, _least(situation, question)) for e in question.evict)
    return out


def _workloads(situation: Situation, group: Levels, level: Levels) -> dict[str, Any]:
    allocations, state = situation.cluster.allocations, situation.cluster.state
    group_names, level_names = np.array(GROUPS)[group].tolist(), np.array(GROUPS)[level].tolist()
    reasons = _reasons(situation)
    gentle: Flags = aggressive_allowed(situation)
    out: dict[str, Any] = {}
    for i, workload in enumerate(state.workloads):
        rows = range(int(allocations.of[i]), int(allocations.of[i + 1]))
        tasks: dict[str, dict[str, str]] = {
            workload.tasks[int(allocations.task[row])].name: {
                "preemptibility": str(group_names[row]),
                "level": str(level_names[row]),
            }
            for row in rows
        }
        most = max((int(level[row]) for row in rows), default=0)
        reason = reasons[i] or _group_reason(most, bool(gentle[i]))
        out[workload.id] = {"preemptible": reasons[i] == "" and most > 0, "reason": reason, "tasks": tasks}
    return out


def _group_reason(most: int, aggressive: bool) -> str:
    if most == PREEMPTIBLE:
        return "uses more than its fair share times preemption_satisfaction_threshold"
    if most == AGGRESSIVELY_PREEMPTIBLE:
        return "uses more than its fair share times aggressive_preemption_satisfaction_threshold"
    return "within its protected share" + ("" if aggressive else "; aggressive preemption is not allowed here")


def _reasons(situation: Situation) -> list[str]:
    """What spares an operation as a whole; empty where nothing does."""
    settings = situation.config.settings
    operations = situation.operations
    normally = normally_takeable(situation)
    out: list[str] = []
    for i in range(len(operations)):
        if operations.graceful[i]:
            out.append("preemption_mode is graceful: its allocations are only asked to stop")
        elif operations.starvation[i] > 0 and not settings.allow_from_starving:
            out.append("starving itself, and allow_preemption_from_starving_operations is off")
        elif not normally[i] and not aggressive_allowed(situation)[i]:
            out.append("a pool above allows neither normal nor aggressive preemption")
        else:
            out.append("")
    return out


def _least(situation: Situation, question: ProtectionQuestion) -> int:
    """The lowest level that the ask's operation can take."""
    if question.ask is None:
        return AGGRESSIVELY_PREEMPTIBLE
    name = question.ask.workload or question.ask.id
    row = situation.operations.ids.index(name)
    return AGGRESSIVELY_PREEMPTIBLE if priorities(situation)[row] == AGGRESSIVE else PREEMPTIBLE


def _allowed(workloads: dict[str, Any], eviction: Eviction, least: int) -> bool:
    of = workloads.get(eviction.workload)
    if of is None or not of["preemptible"]:
        return False
    names = [eviction.task] if eviction.task is not None else list(of["tasks"])
    return all(name in of["tasks"] and GROUPS.index(of["tasks"][name]["level"]) >= least for name in names)


def effective_settings(config: CompiledConfiguration, state: State | None) -> dict[str, Any]:
    """Durations in seconds, amounts in whole units. Raises InvalidInput for bad options of an operation."""
    settings, promised, orphans = config.settings, set(promised_tops(config)), without_donor(config)
    queues = {
        name: _common(pool) | {
            "allow_normal_preemption": pool.allow_normal,
            "mode": config.pools[i].mode,
            "preemption_satisfaction_threshold": settings.threshold,
            "aggressive_preemption_satisfaction_threshold": settings.aggressive_threshold,
            "fair_share_aggressive_starvation_timeout": seconds(settings.aggressive_timeout),
        } | _shares(config, i, promised=i in promised, orphan=i in orphans)
        for i, (name, pool) in enumerate(zip(config.tree.names, config.inherited, strict=True))
    }  # fmt: skip
    out: dict[str, Any] = {"settings": {"rules": settings.rules.name, "release": settings.release}, "queues": queues}
    return out if state is None else out | {"workloads": _operations(config, state)}


def _shares(config: CompiledConfiguration, i: int, *, promised: bool, orphan: bool) -> dict[str, Any]:
    """What of the flags of fair share counts for pool ``i``; ``integral_guarantees`` where it has some. ``orphan``:
    whether its priority would have no donor."""
    tree, own = config.settings.shares, config.pools[i].shares
    gang_steps = tree.gang_steps and own.gang_steps
    out = {
        "enable_step_function_for_gang_operations": gang_steps,
        "enable_fifo_children_reordering_for_guarantee_utilization": (
            gang_steps and tree.reorder_fifo and own.reorder_fifo
        ),
        "enable_fair_share_truncation_in_fifo_pool": own.truncate_fifo,
        "compute_promised_guarantee_fair_share": promised,
        "enable_priority_strong_guarantee_adjustment": own.priority and not orphan,
        "enable_priority_strong_guarantee_adjustment_donorship": own.donor,
    }
    integral = own.integral
    if integral.kind == "none":
        return out
    limit, distribute = integral.multiplier_limit, integral.distribute
    return out | {
        "integral_guarantees": {
            "guarantee_type": integral.kind,
            "resource_flow": _amounts(integral.flow),
            "burst_guarantee_resources": _amounts(integral.burst),
            "relaxed_share_multiplier_limit": tree.multiplier_limit if limit is None else limit,
            "can_accept_free_volume": integral.accept,
            "should_distribute_free_volume_among_children": (
                tree.distribute_volume if distribute is None else distribute
            ),
            "smooth_period": seconds(tree.smooth_period),
            "pool_capacity_saturation_period": seconds(tree.saturation_period),
        }
    }


def _operations(config: CompiledConfiguration, state: State) -> dict[str, Any]:
    problems: list[Problem] = []
    out: dict[str, Any] = {}
    for i, workload in enumerate(state.workloads):
        pool = config.inherited[config.tree.index[workload.queue]]
        options = workload.ytsaurus
        where: Where = ("state", "workloads", i, "ytsaurus")
        own = OperationSettings() if options is None else operation_settings(options, where, problems)
        gang = options is not None and options.is_gang and not config.settings.allow_gang
        out[workload.id] = _common(pool) | {
            "allow_aggressive_preemption": pool.allow_aggressive and not gang,
            "fair_share_starvation_timeout": seconds(operation_timeout(pool, own)),
            "fair_share_starvation_tolerance": operation_tolerance(pool, own),
            "non_preemptible_resource_usage_threshold": _amounts(operation_threshold(pool, own)),
            "allocation_preemption_timeout": _seconds(own.preemption_timeout, config.settings.preemption_timeout),
            "allocation_graceful_preemption_timeout": _seconds(own.graceful_timeout, config.settings.graceful_timeout),
            "preemption_mode": "normal" if options is None else options.preemption_mode,
        }
    if problems:
        raise InvalidInput(problems)
    return out


def _common(pool: Inherited) -> dict[str, Any]:
    return {
        "allow_aggressive_preemption": pool.allow_aggressive,
        "enable_aggressive_starvation": pool.enable_aggressive_starvation,
        "fair_share_starvation_timeout": seconds(pool.timeout),
        "fair_share_starvation_tolerance": pool.tolerance,
        "non_preemptible_resource_usage_threshold": _amounts(pool.non_preemptible),
    }


def _amounts(steps: Steps) -> dict[str, int | float]:
    return {name: units(value, name) for name, value in steps.items()}


def _seconds(own: int | None, default: int) -> int | float:
    return seconds(default if own is None else own)
