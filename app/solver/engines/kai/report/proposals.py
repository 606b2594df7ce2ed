"""What another scheduler would evict, judged by KAI: preemptible work only, in the ask's own queue of a lower priority,
and never against a minimum runtime. Minimum runtimes are judged as ``POST /v1/preemptibility`` judges them.

Who deserves what is not asked: the proposal is about room on a node, and a reclaim divides the whole cluster.
"""

from dataclasses import dataclass, field

from app.solver.engines.kai.compile.jobs import Jobs
from app.solver.engines.kai.compile.state import CompiledState, with_asks
from app.solver.engines.kai.report.preemptibility import Protection, lost_with, protection_of, set_by_whom, why
from app.solver.model.decision import Refusal
from app.solver.model.request import Eviction
from app.solver.model.state import Ask
from app.solver.question import ProtectionQuestion


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
    _known: dict[int, Protection] = field(default_factory=dict[int, Protection])

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
            found = self._standing(j) or self._by_runtime(j, len(lost[j]))
            if found is not None:
                out.append(Refusal(workload=eviction.workload, task=eviction.task, rule=found[0], detail=found[1]))
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
        found = self._known.get(j)
        if found is None:
            rules = self.state.configuration.policy.rules
            found = self._known[j] = protection_of(self.state, self.jobs, j, self.question, rules)
        if found.allows(lost):
            return None
        _, sentence = why(found, set_by_whom(found, self.state.configuration.tree.names))
        gang = "-gang" if found.elastic else ""
        return f"{found.action}-min-runtime{gang}", sentence
