"""The reclaim action: a job whose queue has less than its share takes from queues that have more."""

from app.solver.engines.kai.decide.cycle import Cycle
from app.solver.engines.kai.decide.search.fairness import Fairness, may_reclaim
from app.solver.engines.kai.decide.search.scenario import Scenario
from app.solver.engines.kai.decide.search.solver import Solver
from app.solver.engines.kai.decide.search.validators import Refusal


def reclaim(cycle: Cycle) -> None:
    """Try every pending job that stays within its queue's fair share."""
    cycle.each("reclaim", lambda job: _attempt(cycle, job), by_queue=True, gate=lambda job: _gate(cycle, job))


def _gate(cycle: Cycle, job: int) -> bool:
    refusal = may_reclaim(cycle.overlay, cycle.tools.order, job)
    if refusal is not None:
        cycle.tools.trail.note(refusal.rule, refusal.detail, **refusal.numbers)
    return refusal is None


def _attempt(cycle: Cycle, job: int) -> bool:
    policy = cycle.overlay.state.configuration.policy
    fairness = Fairness(cycle.overlay, cycle.tools.order.frozen(), ignore_moved=policy.allow_consolidating_reclaim)

    def keeps_protected_gangs(scenario: Scenario) -> Refusal | None:
        return cycle.protection.validate("reclaim", scenario)

    def breaks_protected_gang(scenario: Scenario, victim: int) -> Refusal | None:
        return cycle.protection.foregone("reclaim", scenario, victim)

    return Solver(
        cycle.tools, job, _victims(cycle, job), (keeps_protected_gangs, fairness), breaks_protected_gang
    ).solve()


def _victims(cycle: Cycle, job: int) -> list[int]:
    """Preemptible jobs of other leaves, of any priority, that run something and that no filter spares."""
    overlay, jobs = cycle.overlay, cycle.overlay.jobs

    def minimum_runtime(pending: int, victim: int) -> Refusal | None:
        return cycle.protection.filter("reclaim", pending, victim)

    queue, preemptible, leaf, active = jobs.queue, jobs.preemptible, overlay.leaf, overlay.active
    own = queue[job]
    return [
        victim
        for victim, at in enumerate(queue)
        if at != own
        and active[victim]
        and preemptible[victim]
        and leaf[victim]
        and cycle.passes((minimum_runtime,), job, victim)
    ]
