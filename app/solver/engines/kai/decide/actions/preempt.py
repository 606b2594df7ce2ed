"""The preempt action: a job takes from jobs of lower priority in its own queue."""

from app.solver.engines.kai.decide.cycle import Cycle
from app.solver.engines.kai.decide.search.scenario import Scenario
from app.solver.engines.kai.decide.search.solver import Solver
from app.solver.engines.kai.decide.search.validators import Refusal


def preempt(cycle: Cycle) -> None:
    """Try every pending job."""
    cycle.each("preempt", lambda job: _attempt(cycle, job), by_queue=True)


def _attempt(cycle: Cycle, job: int) -> bool:
    overlay = cycle.overlay
    bound = cycle.tools.order.over_quota(job, overlay.wanted(job)[1])
    if bound is not None:
        cycle.tools.trail.note(bound.rule, f"{overlay.queue_name(bound.queue)} would pass its deserved quota")
        return False

    def keeps_protected_gangs(scenario: Scenario) -> Refusal | None:
        return cycle.protection.validate("preempt", scenario)

    def breaks_protected_gang(scenario: Scenario, victim: int) -> Refusal | None:
        return cycle.protection.foregone("preempt", scenario, victim)

    return Solver(cycle.tools, job, _victims(cycle, job), (keeps_protected_gangs,), breaks_protected_gang).solve()


def _victims(cycle: Cycle, job: int) -> list[int]:
    """Preemptible jobs of the same leaf and lower priority that run something and that no filter spares."""
    overlay, jobs = cycle.overlay, cycle.overlay.jobs

    def minimum_runtime(pending: int, victim: int) -> Refusal | None:
        return cycle.protection.filter("preempt", pending, victim)

    queue, priority, preemptible = jobs.queue, jobs.priority, jobs.preemptible
    own, above = queue[job], priority[job]
    return [
        victim
        for victim, at in enumerate(queue)
        if at == own
        and priority[victim] < above
        and preemptible[victim]
        and overlay.seems_active(victim)
        and cycle.passes((minimum_runtime,), job, victim)
    ]
