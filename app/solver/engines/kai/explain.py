"""Why: the trail of a job as an explanation, what became of everybody who runs, and the one thing that stands in
the way of a job that waits.
"""

from collections.abc import Sequence
from typing import Any

from app.solver.engines.kai.actions import Cycle
from app.solver.engines.kai.jobs import PIPELINED, RUNNING
from app.solver.engines.kai.outcomes import Outcomes, taken_by
from app.solver.engines.kai.overlay import EVICT, NO_ASK, Overlay
from app.solver.engines.kai.solver import Search, Trail, Tried
from app.solver.engines.kai.validators import Refusal, Scenario
from app.solver.model.decision import Decision, Explanation, Verdict
from app.solver.question import Question, Why


class Recorder(Trail):
    """A trail that keeps everything, for explanations."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[int, dict[tuple[str, int, str, str], Tried]] = {}
        self._searches: dict[int, list[Search]] = {}
        self._search: Search
        self._part: tuple[int, int]

    def begin(self, job: int, action: str) -> None:
        """See ``Trail.begin``."""
        super().begin(job, action)
        self._search, self._part = Search(action), (0, 0)

    def part(self, size: int, of: int) -> None:
        """See ``Trail.part``."""
        self._part = (size, of)

    def note(self, rule: str, detail: str, **numbers: Any) -> None:
        """See ``Trail.note``."""
        super().note(rule, detail, **numbers)
        key = (self._action, self._part[0], rule, detail)
        of_job = self._found.setdefault(self._job, {})
        found = of_job.get(key)
        if found is None:
            found = of_job[key] = Tried(self._action, *self._part, rule, detail, {})
        found.count += 1
        found.numbers = numbers

    def spare(self, victim: int, refusal: Refusal) -> None:
        """See ``Trail.spare``."""
        self._search.refused[victim] = refusal

    def search(self, eligible: Sequence[int]) -> None:
        """See ``Trail.search``."""
        self._search.eligible = frozenset(eligible)
        self._searches.setdefault(self._job, []).append(self._search)

    def found(self, overlay: Overlay) -> None:
        """See ``Trail.found``."""
        search = self._search
        search.ask = overlay.asking(self._job)
        search.taken = frozenset(op.task for op in overlay.ops if op.kind == EVICT)
        search.put_back = frozenset(t for t in search.taken if not overlay.stays_evicted(t))

    def of(self, job: int) -> list[Tried]:
        """See ``Trail.of``."""
        return list(self._found.get(job, {}).values())

    def searches(self, job: int) -> list[Search]:
        """See ``Trail.searches``."""
        return self._searches.get(job, [])

    def _size(self, scenario: Scenario) -> dict[str, int]:
        return {"victims": len(scenario.listed), "pods": scenario.pods}


_Judged = tuple[Verdict, str, str, dict[str, Any]]
"""Verdict, rule, detail, numbers."""


def explain(cycle: Cycle, outcomes: Outcomes, a: int, question: Question, decision: Decision) -> Explanation | None:
    """Every scenario considered, equal ones counted once, and why each failed; then every workload that runs, if
    anybody was searched for victims: whole, or pod by pod where some of it goes or was put back."""
    overlay, record = cycle.overlay, question.why()
    job = overlay.jobs.of_ask[a]
    _steps(cycle, outcomes, a, record)
    trail = cycle.tools.trail
    if trail.searches(job):
        _candidates(overlay, outcomes, a, trail, record)
    name, message = decision.ask, decision.conditions[0].message
    if decision.outcome in ("wait", "infeasible") and not outcomes.placed[a]:
        blocker = message if decision.outcome == "infeasible" or outcomes.lost[a] else taken_by(cycle, a) or message
        can = "can never run" if decision.outcome == "infeasible" else "waits"
        record.headline(f"{name} {can}: {blocker}")
        record.blocked(blocker)
    elif decision.outcome == "wait":
        record.headline(f"{name} waits: {message}")
        record.blocked(message)
    else:
        record.headline(f"{name}: {decision.outcome}")
    return record.explanation()


def _steps(cycle: Cycle, outcomes: Outcomes, a: int, record: Why) -> None:
    overlay = cycle.overlay
    for tried in cycle.tools.trail.of(overlay.jobs.of_ask[a]):
        part = f", first {tried.part} of {tried.of} pods" if tried.of else ""
        numbers = {"part": tried.part, "pods_of_gang": tried.of} if tried.of else {}
        record.step(
            tried.rule, f"{tried.action}{part}: {tried.detail}", action=tried.action, count=tried.count,
            **numbers, **tried.numbers,
        )  # fmt: skip
    for other, lost in enumerate(outcomes.lost):
        if lost is not None and lost.ask == a:
            name = overlay.asks[other].id
            record.step("place-taken", f"{lost.action}: takes the place that {name} was given", ask=name)
    if (lost := outcomes.lost[a]) is not None:
        name = overlay.asks[lost.ask].id
        record.step("place-taken", f"{lost.action}: {name} takes the place that it was given", ask=name)


def _candidates(overlay: Overlay, outcomes: Outcomes, a: int, trail: Trail, record: Why) -> None:
    jobs, own = overlay.jobs, overlay.jobs.of_ask[a]
    pods = _pods(overlay, outcomes, a, trail.searches(own))
    touched = {jobs.task_job[t] for t in pods}
    for j in range(len(overlay.state.jobs.id)):
        if j == own and j not in touched:
            continue
        running = [t for t in jobs.tasks[j] if jobs.task_state[t] == RUNNING]
        if not running:
            continue
        queue, judged = overlay.queue_name(jobs.queue[j]), _judge(overlay, outcomes, a, j, trail)
        if j not in touched:
            verdict, rule, detail, numbers = judged
            record.candidate(verdict, rule, jobs.id[j], queue=queue, detail=detail, **numbers)
            continue
        for t in running:
            verdict, rule, detail, numbers = pods.get(t, judged)
            record.candidate(
                verdict, rule, jobs.id[j], task=jobs.task_name[t], queue=queue,
                node=overlay.node_names[jobs.task_node[t]], detail=detail, **numbers,
            )  # fmt: skip


def _pods(overlay: Overlay, outcomes: Outcomes, a: int, searches: list[Search]) -> dict[int, _Judged]:
    """The pods that a winning statement took, as they end."""
    holder = {e.task: outcomes.holder(e.ask) for e in outcomes.evictions if e.ask != NO_ASK}
    found: dict[int, _Judged] = {}
    for search in searches:
        for t in search.taken if search.ask == a else ():
            if t in search.put_back:
                found[t] = "put-back", "fits-with-it", f"{search.action}: the ask fits with it where it was", {}
            elif t in holder:
                found[t] = "not-needed", "goes-for-another", f"it goes for {overlay.asks[holder[t]].id}", {}
    for e in outcomes.victims[a]:
        moved = overlay.status[e.task] == PIPELINED
        where = f": it runs on at {overlay.node_names[overlay.node[e.task]]}" if moved else ""
        found[e.task] = "moved" if moved else "victim", e.action, f"{e.action}{where}", {}
    return {t: judged for t, judged in found.items() if t < overlay.running_tasks}


def _judge(overlay: Overlay, outcomes: Outcomes, a: int, j: int, trail: Trail) -> _Judged:
    """What became of workload j, or of its pods that no winning statement took."""
    job = overlay.jobs.of_ask[a]
    searches = trail.searches(job)
    for search in searches:
        if j in search.eligible:
            if outcomes.placed[a] or outcomes.lost[a]:
                return "not-needed", "enough-without", f"{search.action}: the ask found room without it", {}
            forbidden = next((t for t in reversed(trail.of(job)) if _is_about(overlay, j, t)), None)
            if forbidden is not None:
                return "protected", forbidden.rule, f"{forbidden.action}: {forbidden.detail}", {}
            return "not-needed", "nothing-found", f"{search.action}: nothing that was tried made room", {}
    for search in searches:
        if (refusal := search.refused.get(j)) is not None:
            return "protected", refusal.rule, refusal.detail, refusal.numbers
    reasons = [_out(overlay, job, j, search.action) for search in searches]
    protected = [reason for reason in reasons if reason[0] == "protected"]
    return (protected or reasons)[0]


def _is_about(overlay: Overlay, j: int, tried: Tried) -> bool:
    """Whether a validator refused what was tried on account of workload j, or of its queue or one above."""
    numbers, jobs = tried.numbers, overlay.jobs
    if "workload" in numbers:
        return numbers["workload"] == jobs.id[j]
    theirs = numbers.get("sibling", numbers.get("queue") if "reclaimer_within_quota" in numbers else None)
    return theirs is not None and theirs in map(overlay.queue_name, overlay.paths[jobs.queue[j]])


def _out(overlay: Overlay, job: int, j: int, action: str) -> _Judged:
    """Why an action did not look at a workload that runs, or may not take it whatever it holds."""
    jobs = overlay.jobs
    if action == "reclaim" and jobs.queue[j] == jobs.queue[job]:
        return "out-of-reach", "own-queue", "reclaim takes from other queues only", {}
    if action == "preempt" and jobs.queue[j] != jobs.queue[job]:
        return "out-of-reach", "other-queue", "preempt takes from the ask's own queue only", {}
    if not overlay.leaf[j]:
        return "out-of-reach", "queue-not-a-leaf", f"{action} takes from jobs of leaves only", {}
    if not jobs.preemptible[j]:
        return "protected", "not-preemptible", f"{action}: it is not preemptible", {}
    if action == "preempt" and jobs.priority[j] >= jobs.priority[job]:
        numbers = {"priority": jobs.priority[j], "priority_of_ask": jobs.priority[job]}
        return "protected", "priority-not-lower", "preempt: its priority is not lower", numbers
    cap = overlay.state.configuration.policy.max_consolidation_preemptees
    if action == "consolidation" and cap is not None:
        return (
            "out-of-reach",
            "beyond-cap",
            "consolidation looks at no more jobs",
            {"max_consolidation_preemptees": cap},
        )
    return "out-of-reach", "already-going", f"{action}: nothing of it ran any more when the action looked", {}


def blocker(cycle: Cycle, job: int) -> tuple[str, str]:
    """The reason and the sentence of a job that waits: the failure of its attempts that tells most."""
    overlay = cycle.overlay
    if not overlay.ready(job):
        need, alive = overlay.jobs.min_available[job], overlay.active[job] + overlay.pending[job]
        return "GangIncomplete", f"its gang needs {need} pods and {alive} are there"
    main = cycle.tools.trail.main(job)
    if main is None:
        return "NoAction", "no action of this cycle tried to place it"
    action, rule, detail = main
    return "".join(word.capitalize() for word in rule.split("-")), f"{action}: {detail}"
