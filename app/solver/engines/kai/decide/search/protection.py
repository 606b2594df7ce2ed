"""Minimum runtimes inside the actions: a victim filter and a scenario validator for reclaim and for preempt."""

from typing import Literal

from app.solver.engines.kai.compile.jobs import ALLOCATED, RUNNING
from app.solver.engines.kai.compile.min_runtime import MinRuntime, Rules, is_elastic, keeps_gang, may_evict, protected
from app.solver.engines.kai.decide.overlay import Overlay
from app.solver.engines.kai.decide.search.scenario import Scenario
from app.solver.engines.kai.decide.search.validators import Refusal
from app.solver.model.duration import seconds


class Protection:
    """One per overlay: released KAI judges a victim's clock once a cycle, and so does this."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        configuration = overlay.state.configuration
        self._runtimes = configuration.min_runtimes
        self._rules: Rules = configuration.policy.rules
        self._minimums: dict[tuple[int, int], MinRuntime] = {}
        self._known: dict[tuple[str, int, int], bool] = {}

    def minimum(self, action: Literal["reclaim", "preempt"], job: int, victim: int) -> MinRuntime:
        """The minimum runtime that protects ``victim`` from ``job``."""
        queues = self._overlay.jobs.queue
        if action == "preempt":
            return self._runtimes.for_preempt(queues[victim])
        pair = queues[job], queues[victim]
        found = self._minimums.get(pair)
        if found is None:
            found = self._minimums[pair] = self._runtimes.for_reclaim(*pair)
        return found

    def is_protected(self, action: Literal["reclaim", "preempt"], job: int, victim: int) -> bool:
        """Whether the victim's minimum runtime has not passed."""
        key = (action, victim if action == "preempt" else job, victim)
        found = self._known.get(key)
        if found is None:
            started = self._overlay.started[victim]
            minimum = self.minimum(action, job, victim).micros
            found = protected(self._overlay.now, started, minimum, self._rules)
            if started is not None:
                self._known[key] = found
        return found

    def filter(self, action: Literal["reclaim", "preempt"], job: int, victim: int) -> Refusal | None:
        """Protected whole, unless the victim is elastic."""
        if not self.is_protected(action, job, victim):
            return None
        jobs = self._overlay.jobs
        if may_evict(protected=True, elastic=is_elastic(len(jobs.tasks[victim]), jobs.min_available[victim])):
            return None
        minimum = self.minimum(action, job, victim)
        return Refusal(
            f"{action}-min-runtime", f"{jobs.id[victim]} has not run for its {action}-min-runtime",
            {"min_runtime": seconds(minimum.micros)},
        )  # fmt: skip

    def foregone(self, action: Literal["reclaim", "preempt"], scenario: Scenario, victim: int) -> Refusal | None:
        """What ``validate`` will say of every scenario that lists of the victim what this one does, or more; None where
        that is open. Shipped only: a pod counts as lost once it is listed, and pending pods could yet be placed."""
        if self._rules != "shipped" or victim not in scenario.listed:
            return None
        jobs, overlay = self._overlay.jobs, self._overlay
        if not is_elastic(len(jobs.tasks[victim]), jobs.min_available[victim]):
            return None
        lost = len(scenario.listed[victim])
        keeps = keeps_gang(
            running=overlay.used[victim] + overlay.pending[victim],
            evicted=lost,
            min_available=jobs.min_available[victim],
        )
        if keeps or not self.is_protected(action, scenario.job, victim):
            return None
        return self._undercut(action, victim, overlay.used[victim] - lost)

    def validate(self, action: Literal["reclaim", "preempt"], scenario: Scenario) -> Refusal | None:
        """A protected elastic victim keeps its gang.

        Shipped: every pod that the scenario lists counts as lost, pods being released as running. Documented: only
        pods that the scenario really evicts are lost, and only pods that really run are left.
        """
        jobs, overlay = self._overlay.jobs, self._overlay
        for victim in scenario.elastic:
            listed = scenario.listed[victim]
            if not self.is_protected(action, scenario.job, victim):
                continue
            if self._rules == "shipped":
                running, lost = overlay.used[victim], len(listed)
            else:
                lost = sum(overlay.evictions_of(t) > 0 for t in listed)
                running = lost + sum(overlay.status[t] in (RUNNING, ALLOCATED) for t in jobs.tasks[victim])
            if lost and not keeps_gang(running=running, evicted=lost, min_available=jobs.min_available[victim]):
                return self._undercut(action, victim, running - lost)
        return None

    def _undercut(self, action: str, victim: int, keeps: int) -> Refusal:
        jobs = self._overlay.jobs
        needs = jobs.min_available[victim]
        return Refusal(
            f"{action}-min-runtime-gang",
            f"{jobs.id[victim]} is protected and would keep {max(keeps, 0)} of the {needs} pods that it needs",
            {"workload": jobs.id[victim], "keeps": max(keeps, 0), "needs": needs},
        )
