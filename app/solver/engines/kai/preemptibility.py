"""What minimum runtimes protect from an ask and which evictions they let through; what another scheduler would evict,
judged by the same rules.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.solver.engines.kai.configuration import (
    NODE_POOL,
    MinRuntime,
    keeps_gang,
    may_evict,
    protected,
    protected_until,
)
from app.solver.engines.kai.jobs import ALLOCATED, RELEASING, RUNNING, STUCK, Jobs
from app.solver.engines.kai.rule_sets import RuleSet
from app.solver.engines.kai.state import CompiledState, with_asks
from app.solver.model.base import seconds, to_datetime
from app.solver.model.decision import Refusal
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.request import Eviction
from app.solver.model.state import Ask
from app.solver.question import ProtectionQuestion

_NODE_POOL_NAME = "node pool"
_LATEST = 253_402_300_799_999_999  # the last microsecond of year 9999, where RFC 3339 ends


@dataclass(frozen=True, slots=True)
class Protection:
    """How one workload stands. ``running``: pods that count as running; ``pods``: in any state."""

    minimum: MinRuntime
    action: str
    started_at: int | None
    protected: bool
    elastic: bool
    pods: int
    running: int
    min_available: int

    @property
    def passes_filter(self) -> bool:
        """Whether the workload may be a victim at all."""
        return may_evict(protected=self.protected, elastic=self.elastic)

    def allows(self, evicted: int) -> bool:
        """Whether evicting ``evicted`` of its pods together passes."""
        if not self.protected:
            return True
        return self.elastic and keeps_gang(running=self.running, evicted=evicted, min_available=self.min_available)


def counted_states(rules: RuleSet) -> tuple[int, ...]:
    """States of pods that keep a gang alive: released KAI counts those that are already being terminated."""
    return (RUNNING, ALLOCATED, RELEASING, STUCK) if rules.counts_listed else (RUNNING, ALLOCATED)


def preemptibility(state: CompiledState, question: ProtectionQuestion) -> dict[str, Any]:
    """The body of the answer. Raises InvalidInput for evictions of what is not there."""
    rules = state.configuration.policy.rules
    jobs, _ = with_asks(state, _all_asks(question))
    protections = [protection_of(state, jobs, j, question, rules) for j in range(len(state.jobs.id))]
    evicted = _evicted(jobs, question.evict, len(protections), rules)
    names = state.configuration.tree.names
    return {
        "workloads": {jobs.id[j]: _shown(p, names, rules) for j, p in enumerate(protections)},
        "evict_allowed": all(protections[j].allows(count) for j, count in evicted.items()),
    }


def _all_asks(question: ProtectionQuestion) -> list[Ask]:
    """Pending pods make a workload elastic too, so every ask counts; the one that asks may be listed or not."""
    if question.ask is None or any(ask.id == question.ask.id for ask in question.asks):
        return question.asks
    return [*question.asks, question.ask]


def protection_of(state: CompiledState, jobs: Jobs, j: int, question: ProtectionQuestion, rules: RuleSet) -> Protection:
    """How job ``j`` stands against who asks."""
    victim = jobs.queue[j]
    asking = None if question.ask is None else state.configuration.tree.index[question.ask.queue]
    action = question.action or ("preempt" if asking == victim else "reclaim")
    runtimes = state.configuration.min_runtimes
    if action == "preempt":
        minimum = runtimes.for_preempt(victim)
    elif asking is None:
        minimum = runtimes.reclaim_at(victim)
    else:
        minimum = runtimes.for_reclaim(asking, victim)
    counted = counted_states(rules)
    return Protection(
        minimum=minimum,
        action=action,
        started_at=jobs.started[j],
        protected=protected(question.now, jobs.started[j], minimum.micros, rules),
        elastic=jobs.elastic(j),
        pods=len(jobs.tasks[j]),
        running=sum(jobs.task_state[t] in counted for t in jobs.tasks[j]),
        min_available=jobs.min_available[j],
    )


def _evicted(jobs: Jobs, evictions: Iterable[Eviction], running: int, rules: RuleSet) -> Mapping[int, int]:
    """How many pods the scenario lists, by job. Released KAI counts what is listed, whatever its state; documented,
    only a pod that runs can be lost."""
    problems: list[Problem] = []
    listed: dict[int, set[int]] = {}
    for i, eviction in enumerate(evictions):
        j = jobs.by_id.get(eviction.workload, running)
        if j >= running:
            problems.append(
                Problem(pointer=pointer("evict", i, "workload"), detail=f"no workload {eviction.workload!r}")
            )
            continue
        if eviction.task is not None and all(jobs.task_name[t] != eviction.task for t in jobs.tasks[j]):
            detail = f"workload {eviction.workload!r} has no task {eviction.task!r}"
            problems.append(Problem(pointer=pointer("evict", i, "task"), detail=detail))
        listed.setdefault(j, set()).update(lost_with(jobs, j, eviction, rules))
    if problems:
        raise InvalidInput(problems)
    return {j: len(tasks) for j, tasks in listed.items()}


def lost_with(jobs: Jobs, j: int, eviction: Eviction, rules: RuleSet) -> list[int]:
    """The pods of job ``j`` that count as lost with ``eviction``: see ``_evicted``."""
    counted = counted_states(rules)
    if eviction.task is None:
        return [t for t in jobs.tasks[j] if jobs.task_state[t] in counted]
    named = (t for t in jobs.tasks[j] if jobs.task_name[t] == eviction.task)
    return [t for t in named if rules.counts_listed or jobs.task_state[t] in counted]


def _shown(p: Protection, queues: list[str], rules: RuleSet) -> dict[str, Any]:
    until = protected_until(p.started_at, p.minimum.micros, rules)
    set_by = set_by_whom(p, queues)
    reason, message = why(p, set_by)
    return {
        "preemptible": p.passes_filter,
        "reason": reason,
        "message": message,
        "action": p.action,
        "min_runtime": seconds(p.minimum.micros),
        "min_runtime_set_by": set_by,
        "protected": p.protected,
        "protected_until": None if until is None else _instant(until),
        "elastic": p.elastic,
        "running": p.running,
        "min_available": p.min_available,
        "may_lose": max(0, p.running - p.min_available if p.elastic else 0) if p.protected else p.running,
    }


def set_by_whom(p: Protection, queues: list[str]) -> str:
    """Who set the minimum runtime, by name."""
    return _NODE_POOL_NAME if p.minimum.set_by == NODE_POOL else queues[p.minimum.set_by]


def _instant(micros: int) -> str | None:
    """None where RFC 3339 has no year for it: protected for ever, as far as anyone can write down."""
    return to_datetime(micros).isoformat().replace("+00:00", "Z") if abs(micros) <= _LATEST else None


def why(p: Protection, set_by: str) -> tuple[str, str]:
    """Its standing in one word and in one sentence; ``set_by``: the name of who set the minimum."""
    minimum = f"{p.action}-min-runtime of {seconds(p.minimum.micros)} s (set by {set_by})"
    if p.started_at is None:
        return "StartUnknown", f"nothing tells when it started, so its {minimum} protects nothing"
    if not p.protected:
        return ("MinRuntimePassed", f"it has run for its {minimum}") if p.minimum.micros else (
            "NoMinRuntime", f"its {minimum} never protects"
        )  # fmt: skip
    if p.elastic:
        keep = f"{p.min_available} of its {p.running} running pods must stay"
        return "ElasticProtected", f"it has not run for its {minimum}: {keep}"
    return "MinRuntimeNotPassed", f"it has not run for its {minimum}"


def judge(state: CompiledState, now: int, ask: Ask, proposals: list[list[Eviction]]) -> list[list[Refusal]]:
    """See ``Engine.judge``."""
    jobs, _ = with_asks(state, [ask])
    judge = _Judge(state, jobs, ProtectionQuestion(now, [ask], ask))
    return [judge.refusals(evictions) for evictions in proposals]


@dataclass(slots=True)
class _Judge:
    state: CompiledState
    jobs: Jobs
    question: ProtectionQuestion
    _known: dict[int, Protection] = field(default_factory=dict)

    def refusals(self, evictions: list[Eviction]) -> list[Refusal]:
        """Those of one proposal: a gang is judged by all that it would lose."""
        rules, jobs = self.state.configuration.policy.rules, self.jobs
        lost: dict[int, set[int]] = {}
        for eviction in evictions:
            j = jobs.by_id[eviction.workload]
            lost.setdefault(j, set()).update(lost_with(jobs, j, eviction, rules))
        out: list[Refusal] = []
        for eviction in evictions:
            j = jobs.by_id[eviction.workload]
            refusal = self._standing(j) or self._by_runtime(j, len(lost[j]))
            if refusal is not None:
                out.append(Refusal(workload=eviction.workload, task=eviction.task, rule=refusal[0], detail=refusal[1]))
        return out

    def _standing(self, j: int) -> tuple[str, str] | None:
        """What the actions ask of a victim before its clock (reclaim.go, preempt.go)."""
        jobs, asking = self.jobs, self.jobs.of_ask[0]
        if not jobs.preemptible[j]:
            return "not-preemptible", "it is not preemptible"
        if jobs.queue[j] == jobs.queue[asking] and jobs.priority[j] >= jobs.priority[asking]:
            detail = f"priority {jobs.priority[j]} is not below the ask's {jobs.priority[asking]}"
            return "priority-not-lower", detail
        return None

    def _by_runtime(self, j: int, lost: int) -> tuple[str, str] | None:
        protection = self._known.get(j)
        if protection is None:
            rules = self.state.configuration.policy.rules
            protection = self._known[j] = protection_of(self.state, self.jobs, j, self.question, rules)
        if protection.allows(lost):
            return None
        _, sentence = why(protection, set_by_whom(protection, self.state.configuration.tree.names))
        gang = "-gang" if protection.elastic else ""
        return f"{protection.action}-min-runtime{gang}", sentence
