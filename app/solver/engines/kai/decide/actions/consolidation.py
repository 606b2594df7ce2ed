"""The consolidation action: move preemptible pods, of any queue and priority, so that a pending job fits."""

from heapq import nsmallest

from app.solver.engines.kai.compile.jobs import RELEASING
from app.solver.engines.kai.compile.resources import GPU
from app.solver.engines.kai.decide.cycle import Cycle
from app.solver.engines.kai.decide.overlay import Overlay
from app.solver.engines.kai.decide.search.scenario import Scenario
from app.solver.engines.kai.decide.search.solver import Solver
from app.solver.engines.kai.decide.search.validators import Refusal


def consolidation(cycle: Cycle) -> None:
    """Try every preemptible pending job; nobody may end without a place."""
    if cycle.overlay.state.configuration.policy.max_consolidation_preemptees == 0:
        return
    cycle.each("consolidation", lambda job: _attempt(cycle, job), by_queue=False, preemptible_only=True)


def _attempt(cycle: Cycle, job: int) -> bool:
    overlay = cycle.overlay
    needed = overlay.wanted(job)[1][GPU]
    available = sum(free for free, node in zip(overlay.free[GPU], overlay.state.nodes, strict=True) if node.schedulable)
    if available < needed:
        cycle.tools.trail.note("too-few-gpus-free", "the cluster has too few GPUs idle or being released")
        return False

    def all_placed_again(scenario: Scenario) -> Refusal | None:
        return _without_place(overlay, scenario)

    return Solver(cycle.tools, job, _movable(overlay, job), (all_placed_again,)).solve()


def _movable(overlay: Overlay, job: int) -> list[int]:
    """Preemptible jobs that run something. The cap on them admits one more than it says, as in KAI, which takes them as
    a map yields them: here by id."""
    jobs = overlay.jobs
    cap = overlay.state.configuration.policy.max_consolidation_preemptees
    found = [
        j
        for j in range(len(jobs.id))
        if j != job and overlay.leaf[j] and jobs.preemptible[j] and overlay.seems_active(j)
    ]
    return found if cap is None else nsmallest(cap + 1, found, key=jobs.id.__getitem__)


def _without_place(overlay: Overlay, scenario: Scenario) -> Refusal | None:
    for victim, listed in scenario.listed.items():
        for t in listed:
            if overlay.status[t] == RELEASING:
                numbers = {"workload": overlay.jobs.id[victim], "task": overlay.jobs.task_name[t]}
                return Refusal("victim-without-place", "a pod that would move has no other place", numbers)
    return None
