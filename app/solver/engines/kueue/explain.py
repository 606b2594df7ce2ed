"""Why, told from the moments of a decision; and what protects work that runs. Nothing here decides."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.solver.compiled import ROOTLESS
from app.solver.engines.kueue import blockers, nodes
from app.solver.engines.kueue.blockers import smallest_changes
from app.solver.engines.kueue.candidates import SILENT, Recorder
from app.solver.engines.kueue.fair_share import Rivals, Share, share_without
from app.solver.engines.kueue.nodes import LookedAt
from app.solver.engines.kueue.nomination import CycleUsage, Fit, Nomination, Suit, Target
from app.solver.engines.kueue.overlay import Overlay, Preemptor
from app.solver.engines.kueue.state import OLDEST, CompiledState, instant
from app.solver.engines.kueue.topology.room import Misfit, Place, PodSets
from app.solver.model.base import to_datetime, units_of
from app.solver.model.decision import EXAMPLES, Explanation, Group, Verdict, Victim
from app.solver.model.state import Ask, Task
from app.solver.question import Why

_OTHER_LEVELS = {
    "LowerPriority": "a lower priority",
    "LowerOrNewerEqualPriority": "a lower priority, or the same and newer",
}
_SAYS = {
    Fit.NO_FIT: "does not fit and can't be preempted for",
    Fit.NO_CANDIDATES: "within quota, but there is nobody to preempt",
    Fit.PREEMPT: "needs preemption, its own queue's workloads among them",
    Fit.RECLAIM: "needs to reclaim from the cohort",
    Fit.FIT: "fits",
}
_OUT_OF_REACH = ("already-leaving", "outside-cohort", "uses-nothing-contested")
_NOT_REACHED = "candidate-not-reached"
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Protection:
    """``rule``: a stable id; ``numbers``: what was compared."""

    rule: str
    detail: str
    numbers: dict[str, Any]


class Judge:
    """Judges running workloads for one preemptor, at the state of the overlay when called."""

    def __init__(self, overlay: Overlay, preemptor: Preemptor, contested: frozenset[int]) -> None:
        self._overlay = overlay
        self._preemptor = preemptor
        self._contested = contested
        self._configuration = overlay.state.configuration
        self._policy = self._configuration.policy[preemptor.queue]
        self._using = overlay.state.shapes.using(contested).tolist()
        self._above = frozenset(self._configuration.tree.path(preemptor.queue))
        self._barred = overlay.barred
        self._by_queue: dict[int, Protection | None] = {}

    def protection(self, workload: int) -> Protection | None:
        """Why the workload is no candidate; None when it is one."""
        overlay, state = self._overlay, self._overlay.state
        if workload in overlay.gone:
            return Protection("already-leaving", "it stops for another ask already", {})
        if workload in self._barred:
            if workload in state.protected:
                return Protection("not-preemptible", "it is marked as not preemptible (beyond Kueue)", {})
            return Protection("own-workload", "the ask belongs to it", {})
        queue = int(state.queue[workload])
        if queue not in self._by_queue:
            self._by_queue[queue] = self.queue_protection(queue)
        if (of_queue := self._by_queue[queue]) is not None:
            return of_queue
        if not self._using[int(state.shape[workload])]:
            wanted = [overlay.fr_name(fr) for fr in sorted(self._contested)]
            return Protection("uses-nothing-contested", f"it uses none of {', '.join(wanted)}", {"contested": wanted})
        return self._by_priority(workload, queue)

    def queue_protection(self, queue: int) -> Protection | None:
        """Why nothing in ``queue`` is a candidate; None when that depends on the workload."""
        configuration, names = self._configuration, self._configuration.tree.names
        if queue == self._preemptor.queue:
            if self._policy.within_cluster_queue == "Never":
                return Protection("within-cluster-queue-never", "withinClusterQueue is Never", {})
            return None
        if (why := configuration.inactive[queue]) is not None:
            return Protection("queue-inactive", why, {})
        if configuration.root[queue] != configuration.root[self._preemptor.queue]:
            return Protection("outside-cohort", "its queue is in another cohort tree than the ask's", {})
        if self._policy.reclaim_within_cohort == "Never":
            return Protection("reclaim-within-cohort-never", "reclaimWithinCohort is Never", {})
        node = queue
        while node not in self._above:
            if not self._overlay.usage.exceeds(node, self._contested):
                what = "its queue" if node == queue else f"cohort {names[node]} above it"
                return Protection("within-nominal", f"{what} is within its quota", self._usage(node))
            node = ROOTLESS if configuration.fair_sharing else configuration.tree.parent[node]
            if node == ROOTLESS:
                break
        return None

    def _by_priority(self, workload: int, queue: int) -> Protection | None:
        """The policy on priorities. Source: Kueue's SatisfiesPreemptionPolicy."""
        own = queue == self._preemptor.queue
        policy = self._policy.within_cluster_queue if own else self._policy.reclaim_within_cohort
        state, mine = self._overlay.state, self._preemptor.priority
        theirs = int(state.priority[workload])
        if policy == "Any" or theirs < mine:
            return None
        numbers: dict[str, Any] = {"policy": policy, "priority": theirs, "ask_priority": mine}
        if policy == "LowerOrNewerEqualPriority" and theirs == mine:
            created = instant(state.workloads[workload].created_at)
            if self._preemptor.created < created:
                return None
            numbers |= {"created_at": _time(created), "ask_created_at": _time(self._preemptor.created)}
            return Protection("not-newer", "it has the ask's priority and is not newer", numbers)
        wants = _OTHER_LEVELS[policy]
        return Protection("priority", f"priority {theirs} against the ask's {mine}: only {wants} may go", numbers)

    def _usage(self, node: int) -> dict[str, Any]:
        usage = self._overlay.usage
        quotas, out = usage.quotas, dict[str, Any]()
        for fr in sorted(self._contested):
            cell = quotas.cells[node].get(fr)
            resource = quotas.frs[fr][1]
            used, quota = (0, 0) if cell is None else (usage.used[cell], quotas.subtree[cell])
            out[self._overlay.fr_name(fr)] = units_of(resource, used=used, quota=quota)
        return {"within_quota": quotas.tree.names[node], "usage": out}


def _time(micros: int) -> str | None:
    return None if micros == OLDEST else to_datetime(micros).isoformat()


def explain(why: Why) -> Recorder:
    """One that explains at the level asked for; the silent one where none is."""
    return Explainer(why) if why.on else SILENT


class _Fate(NamedTuple):
    """What became of one running workload, so far."""

    verdict: Verdict
    rule: str
    detail: str
    numbers: dict[str, Any]


class Explainer(Recorder):
    """Explains one ask's decision. What became of whom is told at the end: often it is another thing than it was a
    moment before. What is said of one workload is shown by a full explanation only: a summary counts them by rule, and
    looks at no more."""

    def __init__(self, why: Why) -> None:
        self._why = why
        self._full = why.full
        self._became: dict[int, _Fate] = {}
        self._state: CompiledState
        self._candidates: list[int] = []
        self._compared: dict[str, Any] = {}
        self._borrow: bool | None = None
        self._pod_sets: PodSets = ()
        self._tied: set[tuple[str, ...]] = set()

    def boosted(self, given: int, counts: int) -> None:
        detail = f"priority {given} counts as {counts} after waiting"
        self._why.step("waiting-boost", detail, priority=given, counts_as=counts)

    def consumed(self, local_queue: str, usage: float, *, known: bool) -> None:
        rule = "consumed" if known else "consumed-unknown"
        detail = "has consumed" if known else "has nothing said of what it consumed, which counts as"
        shown = str(usage) if math.isinf(usage) else usage
        self._why.step(rule, f"LocalQueue {local_queue} {detail} {usage:g}", local_queue=local_queue, usage=shown)

    def resumes(self, scan: Mapping[str, Mapping[str, int]]) -> None:
        detail = "flavors are looked at from where the last cycle stopped, not from the first"
        self._why.step("scan-resumes", detail, stopped_at={task: dict(of) for task, of in scan.items()})

    def flavor_refused(self, task: str, flavor: str, reason: str) -> None:
        self._why.step("flavor-refused", reason, task=task, flavor=flavor)

    def nodes_short(self, overlay: Overlay, pod_sets: PodSets, misfit: Misfit, *, empty: bool) -> None:
        self._looked_at([of for of in nodes.looked_at(overlay, pod_sets, empty=empty) if of.task == misfit.task])
        when = ", even with none of Kueue's work running" if empty else " as things are"
        self._why.step("nodes-short", f"{misfit.task}: {misfit.reason}{when}", task=misfit.task)

    def _looked_at(self, levels: Iterable[LookedAt]) -> None:
        for level in levels:
            self._why.step(
                "domains-looked-at", level.sentence, task=level.task, level=level.level, need=level.need,
                unit=level.unit, domains=level.domains, domains_in_all=level.of,
            )  # fmt: skip

    def placed(self, overlay: Overlay, pod_sets: PodSets, places: Mapping[str, Place]) -> None:
        self._looked_at(nodes.looked_at(overlay, pod_sets))
        if not self._full:
            return
        where = nodes.areas(overlay, pod_sets, places)
        for workload, of in self._became.items():
            if of.verdict == "put-back" and not nodes.frees(overlay, workload, where):
                self._became[workload] = of._replace(detail=f"{of.detail}: it frees nothing where the ask's pods go")

    def flavor_considered(self, task: str, flavor: str, suit: Suit) -> None:
        level = None if suit.fit is Fit.NO_FIT else suit.level
        detail = f"{flavor} for {task}: {_SAYS[suit.fit]}"
        self._why.step("flavor-considered", detail, task=task, flavor=flavor, suit=suit.fit.name, level=level)

    def reduced(self, tasks: Sequence[Task], counts: Sequence[int]) -> None:
        sizes = {task.name: count for task, count in zip(tasks, counts, strict=True)}
        self._why.step("partial-admission", "the full size can't be had; these counts can", counts=sizes)

    def never_preempts(self, overlay: Overlay) -> None:
        detail = "the ask's preemption policy is Never"
        self._why.step("preemption-policy-never", detail)
        self._all_protected(overlay, "preemption-policy-never", detail)

    def not_yet(self, overlay: Overlay) -> None:
        detail = "the ask has not waited as long as its queue wants before it preempts"
        self._why.step("waits-before-preempting", detail)
        self._all_protected(overlay, "waits-before-preempting", detail)

    def _all_protected(self, overlay: Overlay, rule: str, detail: str) -> None:
        self._state = overlay.state
        for workload in range(len(overlay.state.workloads)):
            self._record(workload, "protected", rule, detail)

    def search_begins(self, overlay: Overlay, preemptor: Preemptor, contested: frozenset[int]) -> None:
        """What is contested, and for every running workload what protects it, or that it is a candidate."""
        usage, queue = overlay.usage, preemptor.queue
        for fr, amount in preemptor.request:
            if fr in contested:
                cell, resource = usage.quotas.cells[queue][fr], usage.quotas.frs[fr][1]
                available = usage.available(queue, fr)
                short = amount > available
                detail = "more is requested than available" if short else "quota is available, places on nodes are not"
                self._why.step(
                    "needs-preemption" if short else "nodes-short", f"{overlay.fr_name(fr)}: {detail}",
                    **units_of(
                        resource, requested=amount, available=available, used=usage.used[cell],
                        nominal=usage.quotas.nominal[cell],
                    ),
                )  # fmt: skip
        self._pod_sets = preemptor.pod_sets
        judge = Judge(overlay, preemptor, contested)
        self._state, self._candidates, self._borrow = overlay.state, [], None
        for workload in range(len(overlay.state.workloads)):
            protection = judge.protection(workload)
            if protection is None:
                self._candidates.append(workload)
                self._not_reached(workload)
            else:
                verdict: Verdict = "out-of-reach" if protection.rule in _OUT_OF_REACH else "protected"
                self._record(workload, verdict, protection.rule, protection.detail, **protection.numbers)

    def _not_reached(self, workload: int) -> None:
        detail = "it could go, but was not needed before the ask fitted"
        self._record(workload, "not-needed", _NOT_REACHED, detail)

    def nobody_low_enough(self, preemptor: Preemptor, own: int | None, others: int | None) -> None:
        self._why.step(
            "nobody-low-enough", "no workload within reach has a priority that the policies let this ask preempt",
            ask_priority=preemptor.priority, lowest_priority_in_queue=own, lowest_priority_in_cohort=others,
        )  # fmt: skip

    def attempt_begins(self, overlay: Overlay, *, borrow: bool) -> None:
        allowing = "allowing" if borrow else "without"
        self._why.step("attempt", f"take candidates in order, {allowing} borrowing", borrowing=borrow)
        self._borrow = borrow
        for workload in self._candidates:
            if self._became[workload].rule != _NOT_REACHED:
                self._not_reached(workload)

    def would_borrow(self, overlay: Overlay, workload: int) -> None:
        detail = "it may only go for an ask that stays within nominal quota, and this attempt lets the ask borrow"
        self._record(workload, "protected", "ask-would-borrow", detail)

    def back_within(self, overlay: Overlay, workload: int) -> None:
        detail = "with those before it gone, its queue or a cohort above it is back within quota"
        self._record(workload, "protected", "queue-back-within-quota", detail)

    def round_begins(self, strategy: str, *, reclaims: bool) -> None:
        if reclaims:
            detail = "the ask's queue stays within nominal quota with it: others are taken whatever the shares"
            self._why.step("reclaim-within-nominal", detail)
        else:
            self._why.step("round", f"queues by share; candidates of others by {strategy}", strategy=strategy)

    def cohorts_tie(self, overlay: Overlay, cohorts: Sequence[int]) -> None:
        tied = sorted(overlay.state.configuration.tree.names[cohort] for cohort in cohorts)
        if (names := tuple(tied)) not in self._tied:
            self._tied.add(names)
            self._why.tied(tied)
            detail = f"{', '.join(tied)} have the same share: the origin goes into one of them by chance, here by name"
            self._why.step("cohorts-tie", detail)

    def taking(self, overlay: Overlay, workload: int, rivals: Rivals) -> None:
        if self._full:
            self._compared = _compared(overlay, workload, rivals)

    def too_low(self, overlay: Overlay, workloads: Iterable[int], rivals: Rivals, strategy: str) -> None:
        for workload in workloads:
            if not self._full:
                self._record(workload, "protected", "share-too-low", "")
                continue
            shares = _compared(overlay, workload, rivals)
            detail = f"share of the ask's side {shares['ask_share']} against {shares['share_before']} before and "
            detail += f"{shares['share_after']} after, below {shares['common_ancestor']}: fails {strategy}"
            self._record(workload, "protected", "share-too-low", detail, strategy=strategy, **shares)

    def taken(self, overlay: Overlay, preemptor: Preemptor, targets: Sequence[Target], *, fits: bool) -> None:
        usage, (workload, reason) = overlay.usage, targets[-1]
        if not self._full:
            self._record(workload, "victim", reason, "")
            return
        after = {
            overlay.fr_name(fr): units_of(
                usage.quotas.frs[fr][1], requested=amount, available=usage.available(preemptor.queue, fr)
            )
            for fr, amount in preemptor.request
        }
        numbers, self._compared = self._compared, {}
        if preemptor.pod_sets:
            numbers = {"pods_in": nodes.pods_in(overlay, workload, preemptor.pod_sets), **numbers}
        if self._borrow is not None:
            numbers = {"borrowing": self._borrow, **numbers}
        detail = f"number {len(targets)} to go" + ("; now the ask fits" if fits else "; the ask does not fit yet")
        self._record(workload, "victim", reason, detail, order=len(targets), after=after, **numbers)

    def put_back(self, overlay: Overlay, workload: int) -> None:
        shown = self._full and self._pod_sets
        pods = {"pods_in": nodes.pods_in(overlay, workload, self._pod_sets)} if shown else {}
        self._record(workload, "put-back", "still-fits", "the ask fits with it back", **pods)

    def search_failed(self, overlay: Overlay, targets: Iterable[Target]) -> None:
        detail = "the ask does not fit even with everybody gone whom this search may take"
        for workload, reason in targets:
            self._record(workload, "not-needed", "not-enough", detail, reason=reason)
        for workload in self._candidates:
            if self._became[workload].rule == _NOT_REACHED:
                self.back_within(overlay, workload)

    def trees_by_chance(self, trees: int) -> None:
        detail = (
            f"the origin goes through the {trees} cohort trees in an order left to chance; here the request's decides"
        )
        self._why.step("trees-by-chance", detail, trees=trees)

    def in_order(self, place: int, heads: int, level: int) -> None:
        self._why.step("cycle-order", f"number {place + 1} of {heads} heads", level=level)

    def again(self) -> None:
        self._why.step("targets-overlap", "some targets already stop for another head: assigned again without them")
        self._forget()

    def places_taken(self) -> None:
        detail = "earlier heads took nodes that it was to have: assigned again with its flavors"
        self._why.step("places-taken", detail)
        self._forget()

    def reserves(self) -> None:
        self._why.step("reserves", "it can't be sure to reclaim its capacity later: kept from later heads")

    def overlaps(self, cycle_usage: CycleUsage, head: Nomination, message: str) -> None:
        self._skipped(message)
        self._why.blocked(blockers.overlapping(cycle_usage, head))

    def outrun(self, cycle_usage: CycleUsage, head: Nomination, message: str) -> None:
        self._skipped(message)
        self._why.blocked(blockers.outrun(cycle_usage, head))

    def _skipped(self, message: str) -> None:
        """The search found somebody, and the answer stops nobody: whoever was taken or put back is as if untouched."""
        self._why.step("skipped", message)
        for workload, of in self._became.items():
            if of.verdict in ("victim", "put-back"):
                detail = "it could go, but the ask is skipped in this cycle"
                self._record(workload, "not-needed", "head-skipped", detail)

    def deferred(self, cycle_usage: CycleUsage, head: Nomination) -> None:
        self._forget()
        self._why.blocked(blockers.deferred(cycle_usage, head))

    def behind(self, ask: Ask, head: Ask, rest: str) -> None:
        self._why.headline(f"{ask.id} waits behind {head.id}")
        self._why.step("behind-head", rest, head=head.id)
        self._why.blocked(f"{head.id} goes first: {rest}")

    def inadmissible(self, ask: Ask, why: str) -> None:
        self._why.headline(f"{ask.id} waits: {why}")
        self._why.step("inadmissible", why)
        self._why.blocked(why)

    def fits(self, ask: Ask) -> None:
        self._forget()
        self._why.headline(f"{ask.id} fits in {ask.queue} without stopping anybody")

    def preempts(self, ask: Ask, victims: Sequence[Victim]) -> None:
        self._why.headline(_summary(ask, victims))

    def waits(self, ask: Ask, reasons: str, *, hopeless: bool) -> None:
        self._why.headline(f"{ask.id} {'can never run' if hopeless else 'waits'}: {reasons}")

    def blocked(self, overlay: Overlay, nomination: Nomination, cycle_usage: CycleUsage | None) -> None:
        rules = {workload: of.rule for workload, of in self._became.items()}
        sentence = blockers.sentence(overlay, nomination, rules, cycle_usage)
        self._why.blocked(sentence, *smallest_changes(overlay, nomination))

    def explanation(self) -> Explanation | None:
        if self._became and self._full:
            self._tell_each()
        elif self._became:
            self._tell_alike()
        return self._why.explanation()

    def _tell_each(self) -> None:
        """Everybody, with queue and priority."""
        for i, of in self._became.items():
            name, queue = self._state.workloads[i].id, self._state.configuration.tree.names[int(self._state.queue[i])]
            numbers: dict[str, Any] = {"priority": int(self._state.priority[i]), **of.numbers}
            self._why.candidate(of.verdict, of.rule, name, queue=queue, detail=of.detail, **numbers)

    def _tell_alike(self) -> None:
        workloads = self._state.workloads
        alike: dict[tuple[Verdict, str], list[int]] = {}
        for i, of in self._became.items():
            alike.setdefault((of.verdict, of.rule), []).append(i)
        self._why.others([
            Group(verdict=verdict, rule=rule, count=len(of), examples=[workloads[i].id for i in of[:EXAMPLES]])
            for (verdict, rule), of in alike.items()
        ])  # fmt: skip

    def _forget(self) -> None:
        self._candidates = []
        self._became.clear()

    def _record(self, workload: int, verdict: Verdict, rule: str, detail: str, **numbers: Any) -> None:
        """What became of one running workload; it replaces what was said of it before."""
        self._became[workload] = _Fate(verdict, rule, detail, numbers)


def _summary(ask: Ask, victims: Sequence[Victim]) -> str:
    """What is asked of whom, in one sentence."""
    queues = sorted({victim.queue for victim in victims})
    where = ", ".join(queues[:_MOST_NAMED]) + (f" and {len(queues) - _MOST_NAMED} more" * (len(queues) > _MOST_NAMED))
    return f"{ask.id} runs in {ask.queue} once {len(victims)} workload(s) of {where} stop"


def _compared(overlay: Overlay, workload: int, rivals: Rivals) -> dict[str, Any]:
    """The shares that decide about a workload, and between whom."""
    state = overlay.state
    names, queue = state.configuration.tree.names, int(state.queue[workload])
    after = share_without(state.configuration, overlay.usage, rivals.their_side, queue, state.amounts(workload))
    return {
        "common_ancestor": names[rivals.ancestor], "ask_side": names[rivals.our_side],
        "queue_side": names[rivals.their_side], "ask_share": _shown(rivals.ours),
        "share_before": _shown(rivals.theirs), "share_after": _shown(after),
    }  # fmt: skip


def _shown(of: Share) -> float | str:
    return "infinite" if math.isinf(of.weighted) else of.value
