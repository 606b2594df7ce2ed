"""The search of consolidation, reclaim and preempt: the pending gang pod by pod, each part with a growing prefix of
the victim order, each prefix node by node (docs/engines/kai.md, The solver).

Nothing is minimised afterwards, other than by placing victims again. Every step is paid from a budget.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.solver.engines.kai.budget import Budget
from app.solver.engines.kai.compile import GPU, NOWHERE, PENDING, PIPELINED, RELEASING
from app.solver.engines.kai.job_order import PendingOrder, Victim, VictimOrder, victim_of
from app.solver.engines.kai.placing import Placer
from app.solver.engines.kai.queue_order import QueueOrder
from app.solver.engines.kai.scenario import Group, Scenario
from app.solver.engines.kai.session import Session, total
from app.solver.engines.kai.trail import Trail
from app.solver.engines.kai.validators import ScenarioValidator, refused_scenario


@dataclass(frozen=True, slots=True)
class Tools:
    """What every action works with."""

    session: Session
    order: QueueOrder
    placer: Placer
    budget: Budget
    trail: Trail


class Solver:
    """One attempt to make room for one job. ``victims``: jobs that may be taken from, in order of the request."""

    def __init__(self, tools: Tools, job: int, victims: Sequence[int], validators: Sequence[ScenarioValidator]) -> None:
        self._tools = tools
        self._session = tools.session
        self._job = job
        self._validators = validators
        self._before = tools.order.frozen()
        self._victims = [victim_of(self._session, v) for v in victims]
        self._feasible = set(self._feasible_nodes())
        self._left_nodes: set[int] = set()

    def solve(self) -> bool:
        """Whether the job found its place. True leaves the winning statement open; False leaves nothing behind."""
        session = self._session
        tasks = list(session.wanted(self._job)[0])
        recorded: list[Group] = []
        start = session.checkpoint()
        for size in range(1, len(tasks) + 1):
            session.rollback(start)
            self._tools.trail.part(size, len(tasks))
            found = self._solve_part(tasks[:size], recorded)
            if found is None:
                session.rollback(start)
                return False
            recorded = found
        return bool(tasks) and session.active[self._job] >= session.jobs.min_available[self._job]

    def _feasible_nodes(self) -> Iterable[int]:
        """Nodes with a GPU idle or being released; all of them where some pod of the job needs none."""
        session = self._session
        nodes = range(len(session.node_names))
        if any(not session.request[t][GPU] for t in session.jobs.tasks[self._job]):
            return nodes
        return [n for n in nodes if session.has_gpu_room(n)]

    def _solve_part(self, part: list[int], recorded: Sequence[Group]) -> list[Group] | None:
        """The groups that must go for ``part``, their statement open; None when no prefix will do."""
        session, trail = self._session, self._tools.trail
        scenario = Scenario(session, self._job, part, recorded)
        order = VictimOrder(session, self._before)
        for victim in self._victims:
            order.push(Victim(victim.job, victim.key, victim.tasks, victim.holds, others=victim.others))
        feasible = self._feasible | self._left_nodes
        start = session.checkpoint()
        for t in scenario.recorded_tasks:
            session.evict(t)
        grew: bool | None = True
        while grew is not None:
            if grew and scenario.room.enough():
                if not self._tools.budget.spend():
                    break
                found = self._try(scenario, feasible)
                if found is not None:
                    return found
            elif grew:
                trail.too_short(scenario)
            grew = scenario.grow(order)
        session.rollback(start)
        return None

    def _try(self, scenario: Scenario, feasible: set[int]) -> list[Group] | None:
        """One prefix: on each node of its latest victim, until the part fits somewhere."""
        session = self._session
        if scenario.latest is None:
            return self._simulate(scenario, [], feasible) if scenario.recorded else None
        mark = session.checkpoint()
        for node in scenario.nodes_of_latest():
            extra = scenario.victims_on(node)
            for t in extra:
                session.evict(t)
            new = {session.node[t] for t in extra} - feasible
            feasible |= new
            if self._place(scenario, extra, feasible):
                return self._judge(scenario, extra, mark)
            feasible -= new
            session.rollback(mark)
            if not self._tools.budget.spend():
                break
        return None

    def _simulate(self, scenario: Scenario, extra: list[int], feasible: set[int]) -> list[Group] | None:
        mark = self._session.checkpoint()
        if self._place(scenario, extra, feasible):
            return self._judge(scenario, extra, mark)
        self._session.rollback(mark)
        return None

    def _judge(self, scenario: Scenario, extra: list[int], mark: tuple[int, int]) -> list[Group] | None:
        """Ask the validators; a refusal ends this prefix, whatever other nodes might have offered."""
        refusal = refused_scenario(self._validators, scenario)
        self._tools.trail.judged(scenario, refusal)
        if refusal is not None:
            self._session.rollback(mark)
            return None
        return self._needed(scenario, extra)

    def _place(self, scenario: Scenario, extra: list[int], feasible: set[int]) -> bool:
        """Victims and the part in the order of pending jobs, each where it fits; True when the part found its place."""
        session, placer, budget = self._session, self._tools.placer, self._tools.budget
        task_job = session.jobs.task_job
        taking = {task_job[t] for t in extra} | {group.job for group in scenario.recorded}
        nodes = placer.in_name_order(n for n in feasible if n != NOWHERE)
        pending = PendingOrder(session, self._tools.order)
        pending.stand_for(self._job, total(session.request, scenario.part))
        pending.add_all(sorted(taking | session.pending_jobs() | {self._job}))
        placed = False
        while (job := pending.pop()) is not None:
            if job == self._job:
                if not placer.place_job(job, scenario.part, nodes, bind=False):
                    self._tools.trail.no_room(scenario, placer.refused)
                    return False
                placed = True
            elif job in taking:
                if not budget.spend():
                    return False
                placer.place_job(job, session.wanted(job)[0], nodes, bind=False)
        return placed

    def _needed(self, scenario: Scenario, extra: list[int]) -> list[Group]:
        """The groups of which some pod did not stay where it was."""
        session = self._session
        gone: list[int] = []
        moved: list[int] = []
        for t in (*scenario.recorded_tasks, *extra):
            if session.status[t] == RELEASING or session.evictions_of(t) > 1:
                gone.append(t)
            elif session.status[t] == PIPELINED:
                moved.append(t)
            elif session.evictions_of(t):
                gone.append(t)
        by_job: dict[int, list[Group]] = {}
        for t in (*gone, *moved):
            job = session.jobs.task_job[t]
            chosen = by_job.setdefault(job, [])
            if not any(t in group.tasks for group in chosen):
                chosen.append(next(group for group in scenario.groups[job] if t in group.tasks))
        # Only nodes that somebody leaves are open to the next part, not those of a pod that its group draws along.
        self._left_nodes = {session.node_before(t) for t in (*gone, *moved)}
        return [group for groups in by_job.values() for group in groups]


__all__ = ["PENDING", "Solver", "Tools"]
