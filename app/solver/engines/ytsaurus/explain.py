"""Why asks came to what they did: what each stage looked at, what protected the rest; remarks on configurations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import structs

from app.solver.engines.ytsaurus.configuration import (
    CompiledConfiguration,
    compile_configuration,
    nested_promises,
    without_donor,
)
from app.solver.engines.ytsaurus.guarantees import to_shares
from app.solver.engines.ytsaurus.heartbeat import participants
from app.solver.engines.ytsaurus.operations import Ints
from app.solver.engines.ytsaurus.preparation import GROUPS, PREEMPTIBLE, Overlay, StageRecord
from app.solver.engines.ytsaurus.settings import DIFFERENCES, Difference, RuleSet
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.model.base import units
from app.solver.model.configuration import Configuration, quotas
from app.solver.model.decision import Change, Explanation, Outcome, Shortage, Verdict
from app.solver.model.problems import Finding, InvalidInput, pointer
from app.solver.model.state import Ask
from app.solver.model.ytsaurus import Settings
from app.solver.question import Question, Why


@dataclass(frozen=True, slots=True)
class Reason:
    """Why nothing started. ``limit``: the element whose limit stands in the way."""

    outcome: Outcome
    code: str
    message: str
    shortages: list[Shortage] | None = None
    changes: tuple[Change, ...] = ()


def findings(configuration: Configuration) -> list[Finding]:
    """Remarks in document order; pointers are relative to the configuration document."""
    unread = list(_unread(configuration))
    try:
        config = compile_configuration(configuration)
    except InvalidInput:
        return unread  # the problems themselves are findings already, and there is no tree to look at
    return [*unread, *_pools(configuration, config)]


def warnings(cluster: CompiledState) -> list[dict[str, Any]]:
    """Guarantees in resources of which the state's nodes have nothing: such a guarantee is a share of nothing."""
    out: list[dict[str, Any]] = []
    for i, guaranteed in enumerate(cluster.config.guaranteed):
        for resource, amount in guaranteed.items():
            if amount and cluster.total[cluster.index.index[resource]] <= 0:
                out.append(
                    {
                        "rule": "ytsaurus-guarantee-without-nodes",
                        "pointer": pointer("configuration", *cluster.config.places[i][resource], "guaranteed"),
                        "detail": f"no node has any {resource}, so this guarantee comes to nothing",
                    }
                )
    return out


def _unread(configuration: Configuration) -> Iterator[Finding]:
    """What the document says and YTsaurus, or one heartbeat of it, has no use for."""
    settings = configuration.settings.ytsaurus or Settings()
    if settings.use_precommit_for_preemption:
        place = pointer("settings", "ytsaurus", "use_precommit_for_preemption")
        yield _info("ytsaurus-unread", place, "it keeps concurrent heartbeats apart; here they come one after another")
    if settings.enable_fair_share_truncation_in_fifo_pool:
        place = pointer("settings", "ytsaurus", "enable_fair_share_truncation_in_fifo_pool")
        yield _info("ytsaurus-unread", place, "whether a FIFO pool cuts gangs is for each pool to say")
    if configuration.flavors:
        yield _warning("ytsaurus-unread", pointer("flavors"), "YTsaurus has no flavors")
    for i, queue in enumerate(configuration.queues):
        for given in quotas(queue, ("queues", i)):
            for field in ("borrowing_limit", "lending_limit", "weight"):
                if getattr(given.quota, field) is not None:
                    place = pointer(*given.where, field)
                    yield _warning(
                        "ytsaurus-unread", place, f"YTsaurus has no {field.replace('_', ' ')} of one resource"
                    )


def _pools(configuration: Configuration, config: CompiledConfiguration) -> Iterator[Finding]:
    settings = config.settings
    if settings.timeout > settings.aggressive_timeout:
        place = pointer("settings", "ytsaurus", "fair_share_starvation_timeout")
        detail = f"longer than fair_share_aggressive_starvation_timeout ({settings.aggressive_timeout / 1e6:g} s)"
        yield _warning("ytsaurus-timeout-order", place, detail)
    orphans, nested = without_donor(config), nested_promises(config)
    for i, name in enumerate(config.tree.names):
        inherited, own = config.inherited[i], config.pools[i]
        for resource, amount in config.guaranteed[i].items():
            limit = config.limits[i].get(resource)
            if limit is not None and amount > limit:
                place = pointer(*config.places[i][resource], "guaranteed")
                detail = f"the limit of {units(limit, resource)} {resource} cuts this guarantee"
                yield _warning("ytsaurus-guarantee-over-limit", place, detail)
        if config.guaranteed[i] and not config.guaranteed[i].get(settings.main_resource):
            place = pointer("queues", i, "quota" if configuration.queues[i].quota else "resource_groups")
            detail = f"without a guarantee of {settings.main_resource} nothing is inferred for resources left out"
            yield _info("ytsaurus-no-main-guarantee", place, detail)
        if own.mode == "fifo" and config.is_inner(i):
            place = pointer("queues", i, "ytsaurus", "mode")
            yield _warning("ytsaurus-fifo-inner-pool", place, "YTsaurus allows FIFO mode only without child pools")
        yield from _share_flags(config, i, orphan=i in orphans, nested=i in nested)
        overrides = own.timeout is not None or own.enable_aggressive_starvation is not None
        if overrides and inherited.enable_aggressive_starvation and inherited.timeout > settings.aggressive_timeout:
            place = pointer("queues", i, "ytsaurus")
            detail = (
                f"{name!r} starves after {inherited.timeout / 1e6:g} s, but aggressively after "
                f"{settings.aggressive_timeout / 1e6:g} s already"
            )
            yield _warning("ytsaurus-timeout-order", place, detail)


def _share_flags(config: CompiledConfiguration, i: int, *, orphan: bool, nested: bool) -> Iterator[Finding]:
    """Flags of fair share that come to nothing. ``orphan``: its priority has no donor; ``nested``: a pool above asks
    for promised shares too."""
    tree, own = config.settings.shares, config.pools[i].shares
    block = ("queues", i, "ytsaurus")
    if own.reorder_fifo and not (tree.gang_steps and tree.reorder_fifo and own.gang_steps):
        place = pointer(*block, "enable_fifo_children_reordering_for_guarantee_utilization")
        detail = "without the tree's flag of this name and step functions for gangs, nothing is reordered"
        yield _info("ytsaurus-unread", place, detail)
    if orphan:
        place = pointer(*block, "enable_priority_strong_guarantee_adjustment")
        yield _warning("ytsaurus-priority-without-donor", place, "no pool above donates: the priority does not count")
    if nested:
        place = pointer(*block, "compute_promised_guarantee_fair_share")
        yield _warning("ytsaurus-nested-promised-guarantee", place, "a pool above says so too, and that one counts")
    integral = own.integral
    if integral.kind != "none" and not any(integral.flow.values()):
        place = pointer(*block, "integral_guarantees")
        yield _warning("ytsaurus-no-resource-flow", place, "without a resource_flow the volume is never refilled")
    if integral.kind == "burst" and not any(integral.burst.values()):
        place = pointer(*block, "integral_guarantees")
        yield _warning("ytsaurus-no-burst-guarantee", place, "without burst_guarantee_resources nothing is ever given")


def _warning(rule: str, place: str, detail: str) -> Finding:
    return Finding(rule=rule, severity="warning", pointer=place, detail=detail)


def _info(rule: str, place: str, detail: str) -> Finding:
    return Finding(rule=rule, severity="info", pointer=place, detail=detail)


Found = tuple[Verdict, str, str]
"""Verdict, rule, and the rule in a few words."""


@dataclass(frozen=True, slots=True)
class View:
    """Who looks at a stage: ``operation`` of the ask, whether it takes part, and whether it started something there."""

    operation: int
    takes_part: bool
    started: bool


def view(overlay: Overlay, record: StageRecord, operation: int, wants: range) -> View:
    """The view of an ask whose rows of wants are ``wants``."""
    takes_part = record.stage != "regular" and bool(participants(overlay, record.stage)[operation])
    return View(operation, takes_part, any(want in wants for want in record.started))


def verdict(overlay: Overlay, record: StageRecord, place: int, seen_by: View) -> Found:
    """The verdict on the allocation at ``place`` of the record's rows: what became of it in one preemptive stage in the
    end, as one ask sees it."""
    row = int(record.rows[place])
    if row in record.stopped:
        return _of_stopped(overlay, record, row, seen_by)
    if not record.running[place]:
        return "out-of-reach", "stopped-before", "stopped by another stage"
    spared = _protected(overlay, record, place, seen_by.operation)
    if spared is not None:
        return "protected", *spared
    if not seen_by.takes_part:
        return "out-of-reach", "takes-no-part", "the stage does not serve the operation of this ask"
    if seen_by.started:
        return "not-needed", "node-fits", "those before it were enough"
    if record.started:
        return "not-needed", "another-started", "the stage starts one allocation, and that was another ask's"
    return "not-needed", "not-enough", "with all that could go there was no room either"


def _of_stopped(overlay: Overlay, record: StageRecord, row: int, seen_by: View) -> Found:
    reason = record.stopped[row]
    if reason == "resource_limits_violated":
        operation = int(overlay.prepared.situation.cluster.allocations.operation[row])
        who = overlay.prepared.situation.operations.ids[operation]
        return "out-of-reach", reason, f"{who} or a pool above exceeded its limits: it goes for nobody's ask"
    if seen_by.started:
        return "victim", reason, "next in order"
    if record.started:
        return "out-of-reach", "goes-for-another", "stopped to start an allocation of another ask"
    return "out-of-reach", "overcommitted", "stopped as the allocations on the node used more than it has"


def _protected(overlay: Overlay, record: StageRecord, place: int, taker: int) -> tuple[str, str] | None:
    """Rule and detail of what protects an allocation from this stage; None: nothing does."""
    prepared = overlay.prepared
    row, group = int(record.rows[place]), int(record.group[place])
    operation = int(prepared.situation.cluster.allocations.operation[row])
    if prepared.situation.operations.graceful[operation]:
        return "graceful", "graceful operations are only asked to stop"
    if not prepared.takeable[operation]:
        return "starving", "its operation is starving itself"
    if record.least == PREEMPTIBLE and not prepared.normally_takeable[operation]:
        return "normal-preemption-off", "a pool above sets allow_normal_preemption to false"
    if group < record.least:
        return GROUPS[group], f"the stage takes {GROUPS[record.least]} ones"
    if group != PREEMPTIBLE and not prepared.gentle[operation]:
        return "aggressive-preemption-off", "aggressive preemption is not allowed for its operation"
    if operation == taker and not prepared.situation.config.settings.rules.own_allocations_make_room:
        return "own-allocations", "an operation makes no room for itself"
    return None


_PRIORITIES = ("none", "normal", "aggressive")
_MOST_RECORDS = 48
"""Stages that one ask's explanation shows; of more the last ones, and how many came before."""
MOST_CANDIDATE_STAGES = 8
"""Stages whose allocations are listed one by one for one ask."""
MOST_LISTED_WAITING = 200
"""With more asks than this those that wait get no list of allocations: it would be the same for each."""


class Explainer:
    """Explanations of the asks of one overlay, whose log holds what every stage looked at."""

    def __init__(self, overlay: Overlay, asks: Sequence[Ask], question: Question) -> None:
        wants = overlay.prepared.situation.wants
        self._overlay, self._asks, self._question = overlay, asks, question
        self._log = overlay.log or []
        self._first = np.searchsorted(wants.ask, np.arange(len(asks) + 1))
        self._steps: dict[int, tuple[str, dict[str, Any]]] = {}
        self._known: dict[tuple[int, View], list[dict[str, Any]]] = {}
        self._of_want: dict[int, list[int]] = {}
        for number, record in enumerate(self._log):
            for want in dict.fromkeys(record.started):
                self._of_want.setdefault(want, []).append(number)

    def explanation(
        self, ask: int, reason: Reason | None, differences: Sequence[Difference] | None
    ) -> Explanation | None:
        """The record of ``ask`` (its position). ``reason``: why it waits; None: something of it started.
        ``differences``: between the rule sets, those that decided; None: not looked for."""
        why = self._question.why()
        own = range(int(self._first[ask]), int(self._first[ask + 1]))
        if own:
            self._standing(why, int(self._overlay.prepared.situation.wants.operation[own[0]]))
        numbers = list(range(len(self._log))) if reason else sorted({n for w in own for n in self._of_want.get(w, ())})
        shown = numbers[-_MOST_RECORDS:]
        if len(shown) < len(numbers):
            why.step("earlier-stages", f"{len(numbers) - len(shown)} stages before these are left out")
        for number in shown:
            rule, (detail, values) = self._log[number].stage, self._step(number)
            mine = sum(want in own for want in self._log[number].started)
            why.step(rule, detail + (f", {mine} of this ask" if mine else ""), **values)
        if reason is None or len(self._asks) <= MOST_LISTED_WAITING:
            self._list(why, numbers, own)
        self._rules(why, differences)
        identity = self._asks[ask].id
        if reason is None:
            why.headline(self._headline(identity, own))
        else:
            why.headline(f"{identity} {'waits' if reason.outcome == 'wait' else 'can never run'}: {reason.message}")
            why.blocked(reason.code, *reason.changes)
        return why.explanation()

    def _rules(self, why: Why, differences: Sequence[Difference] | None) -> None:
        rules = self._overlay.prepared.situation.config.settings.rules
        why.step("rules", f"{rules.name} rules", **{d.rule: d.of(rules) for d in DIFFERENCES})
        other = rules.other
        if differences is None:
            why.step("differences-not-tried", f"{other.name} rules were not tried on so many nodes")
        for difference in differences or ():
            why.step(difference.rule, f"under {other.name} rules, {difference.of(other)}, and the outcome is another")

    def _headline(self, identity: str, own: range) -> str:
        nodes = self._overlay.prepared.situation.cluster.state.nodes
        started = [allocation for allocation in self._overlay.started if allocation.want in own]
        victims = sum(allocation.want in own for allocation in self._overlay.stopped)
        names = list(dict.fromkeys(nodes[allocation.node].name for allocation in started))
        where = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        stage = started[-1].stage.replace("_", " ")
        cost = f"{_counted(victims)} must stop" if victims else "nobody has to stop"
        return f"{identity}: {_counted(len(started))} on {where} ({stage}); {cost}"

    def _standing(self, why: Why, operation: int) -> None:
        """Where the ask's operation stands: share, satisfaction, priority."""
        prepared = self._overlay.prepared
        situation, shares = prepared.situation, prepared.shares
        names = situation.resources
        pool = situation.config.tree.names[int(situation.operation_parent[operation])]
        why.step(
            "fair-share",
            f"operation {situation.operations.ids[operation]} of pool {pool}",
            fair_share=dict(zip(names, shares.fair[operation].tolist(), strict=True)),
            usage_share=dict(zip(names, shares.usage[operation].tolist(), strict=True)),
            demand_share=dict(zip(names, shares.demand[operation].tolist(), strict=True)),
            satisfaction=float(prepared.satisfaction[operation]),
            preemption_priority=_PRIORITIES[int(prepared.priority[operation])],
        )

    def _step(self, number: int) -> tuple[str, dict[str, Any]]:
        """Text and numbers of one stage, the same for every ask."""
        if number not in self._steps:
            record, situation = self._log[number], self._overlay.prepared.situation
            node, names = situation.cluster.state.nodes[record.node].name, situation.resources
            values: dict[str, Any] = {"node": node, "free": _amounts(names, record.free)}
            values["started"] = len(record.started)
            if record.stage != "regular":
                taken: Ints = np.add.reduce(situation.cluster.allocations.usage[record.order], axis=0)
                values |= {
                    "operations": record.participants,
                    "preemptible_allocations": len(record.order),
                    "preemptible": _amounts(names, taken),
                    "stopped": len(record.stopped),
                }
            self._steps[number] = f"{node}: {len(record.started)} started", values
        return self._steps[number]

    def _list(self, why: Why, numbers: Sequence[int], own: range) -> None:
        """Record what became of allocations: of the last stages all of them, of those before the ask's victims."""
        preemptive = [number for number in numbers if self._log[number].stage != "regular"]
        if not preemptive or not own:
            return
        operation = int(self._overlay.prepared.situation.wants.operation[own[0]])
        seen = {number: view(self._overlay, self._log[number], operation, own) for number in preemptive}
        taking_part = [number for number in preemptive if seen[number].takes_part]
        listed = (taking_part or preemptive)[-MOST_CANDIDATE_STAGES:]
        for number in preemptive:
            if number in listed or seen[number].started:
                for candidate in self._candidates(number, seen[number]):
                    if number in listed or candidate["verdict"] == "victim":
                        why.candidate(**candidate)

    def _candidates(self, number: int, seen_by: View) -> list[dict[str, Any]]:
        """What became of every allocation on the node in one preemptive stage; asks that see it alike share a list."""
        key = (number, seen_by)
        if key not in self._known:
            record = self._log[number]
            turn = {row: i for i, row in enumerate(record.order)}
            self._known[key] = [
                self._candidate(record, place, turn.get(row), seen_by) for place, row in enumerate(record.rows.tolist())
            ]
        return self._known[key]

    def _candidate(self, record: StageRecord, place: int, turn: int | None, seen_by: View) -> dict[str, Any]:
        cluster = self._overlay.prepared.situation.cluster
        row = int(record.rows[place])
        workload = cluster.state.workloads[int(cluster.allocations.operation[row])]
        task = cluster.task_of(row)
        judgement, rule, detail = verdict(self._overlay, record, place, seen_by)
        share = to_shares(cluster.allocations.usage[row].astype(float), cluster.total).max()
        return {
            "verdict": judgement, "rule": rule, "workload": workload.id, "task": task.name, "queue": workload.queue,
            "node": task.node, "detail": detail, "group": GROUPS[int(record.group[place])], "place": turn,
            "share": float(share),
        }  # fmt: skip


def _counted(allocations: int) -> str:
    return f"{allocations} allocation{'s' * (allocations != 1)}"


def _amounts(names: Sequence[str], steps: np.ndarray) -> dict[str, int | float]:
    return {name: units(int(value), name) for name, value in zip(names, steps.tolist(), strict=True)}


def under(cluster: CompiledState, rules: RuleSet) -> CompiledState:
    """The same state under other rules."""
    settings = replace(cluster.config.settings, rules=rules)
    return structs.replace(cluster, config=replace(cluster.config, settings=settings))
