"""``POST /v1/preemptibility``: what protects each running task, by itself or from one ask.

``aggressively_preemptible`` are tasks that go as a last resort: opted-out ones and originators.
"""

from collections.abc import Iterable
from typing import Any, Literal

from app.solver.engine import ProtectionQuestion
from app.solver.engines.yunikorn.compile.state import OPTED_OUT, Cluster
from app.solver.engines.yunikorn.decide.overlay import Board
from app.solver.engines.yunikorn.decide.request import Request, ask_problems, refuse, requests_of
from app.solver.engines.yunikorn.decide.victims import required_node
from app.solver.engines.yunikorn.decide.victims.candidates import fates, reach
from app.solver.engines.yunikorn.decide.victims.guarantee import keeps_guarantees, levels, shift, tested_cells
from app.solver.engines.yunikorn.decide.victims.laws import law_2_slack, law_2_slack_for_any
from app.solver.model.problems import Problem, pointer

Preemptibility = Literal["non_preemptible", "aggressively_preemptible", "preemptible"]


def preemptibility(cluster: Cluster, question: ProtectionQuestion) -> dict[str, Any]:
    """The body of the answer; ``evict_allowed`` when evictions were named."""
    board = Board(cluster)
    request = None
    if question.ask is not None:
        refuse(ask_problems(cluster, question.ask, "ask"))
        request = requests_of(cluster, question.ask)[0]
    kept = dict(_kept_by_themselves(cluster) if request is None else _kept_from(board, request))
    guarantees = _Guarantees(board, request)
    kept |= {task: "law-2" for task in range(cluster.task_count) if task not in kept and not guarantees.keep(task)}
    answer: dict[str, Any] = {"workloads": _workloads(cluster, kept)}
    if question.evict:
        tasks = _named(cluster, question)
        answer["evict_allowed"] = not any(task in kept for task in tasks) and guarantees.keep_together(tasks)
    return answer


def _kept_by_themselves(cluster: Cluster) -> Iterable[tuple[int, str]]:
    """Tasks that no ask may preempt."""
    for task, of in enumerate(cluster.tasks):
        if of.required_node is not None:
            yield task, "bound-to-its-node"
        elif of.state != "running":
            yield task, "already-leaving"
        elif of.node is None:
            yield task, "on-no-node"
        elif cluster.queues.settings[int(cluster.queue[task])].preemption_policy == "disabled":
            yield task, "preemption-disabled"


def _kept_from(board: Board, request: Request) -> Iterable[tuple[int, str]]:
    """Tasks that this ask may not preempt."""
    if request.required is not None:
        return required_node.fates(board, request)
    return fates(board, request, reach(board, request))


class _Guarantees:
    """Which tasks the guarantees let go: law 2 (documented), or a queue that is over before (shipped, which knows no
    protection without an ask). Asks with a required node ask for neither."""

    def __init__(self, board: Board, request: Request | None) -> None:
        self._cluster = board.cluster
        self._slack: list[int] = []
        self._tests: list[list[int] | None] = []
        if request is not None and request.required is not None:
            return
        queues = board.cluster.queues
        if queues.rules == "documented":
            self._slack = law_2_slack_for_any(board) if request is None else law_2_slack(board, request)
        elif request is not None:
            self._slack = list(board.slack)
            self._tests = [tested_cells(level, request.amounts) for level in levels(queues, request.queue)]

    def keep(self, task: int) -> bool:
        """Law 2 alone: whether the task may go with those that have gone."""
        cluster, queue = self._cluster, int(self._cluster.queue[task])
        if not self._slack or self._tests:
            return True
        return keeps_guarantees(cluster.queues, queue, cluster.amounts(task), self._slack)

    def keep_together(self, tasks: list[int]) -> bool:
        """Whether all of them may go, one after the other."""
        cluster = self._cluster
        for task in tasks if self._slack else ():
            queue, amounts = int(cluster.queue[task]), cluster.amounts(task)
            cells = self._tests[queue] if self._tests else None
            if not self.keep(task) or (cells is not None and not any(self._slack[cell] < 0 for cell in cells)):
                return False
            shift(cluster.queues, queue, amounts, 1, self._slack)
        return True


def _workloads(cluster: Cluster, kept: dict[int, str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        workload.id: {"preemptible": False, "reason": "nothing-runs", "tasks": {}} for workload in cluster.workloads
    }
    for task in range(cluster.task_count):
        workload, name = cluster.label(task)
        of = found[workload]
        state, reason = _state(cluster, task, kept)
        of["tasks"][name] = {"preemptibility": state, "reason": reason}
        if state != "non_preemptible" and not of["preemptible"]:
            of["preemptible"], of["reason"] = True, reason
        elif not of["preemptible"]:
            of["reason"] = reason
    return found


def _state(cluster: Cluster, task: int, kept: dict[int, str]) -> tuple[Preemptibility, str]:
    if task in kept:
        return "non_preemptible", kept[task]
    flags = int(cluster.flags[task])
    if flags:
        return "aggressively_preemptible", "opted-out" if flags & OPTED_OUT else "originator"
    return "preemptible", "may-be-preempted"


def _named(cluster: Cluster, question: ProtectionQuestion) -> list[int]:
    """Canonical indices of the tasks to evict. Raises InvalidInput for those that don't run."""
    running: dict[str, dict[str, int]] = {workload.id: {} for workload in cluster.workloads}
    for task in range(cluster.task_count):
        workload, name = cluster.label(task)
        running[workload][name] = task
    problems: list[Problem] = []
    found: dict[int, None] = {}
    for i, eviction in enumerate(question.evict):
        of = running.get(eviction.workload, {})
        wanted = list(of.values()) if eviction.task is None else [of[eviction.task]] if eviction.task in of else []
        if not wanted:
            what = eviction.workload if eviction.task is None else f"{eviction.workload}/{eviction.task}"
            problems.append(Problem(pointer=pointer("evict", i), detail=f"{what!r} does not run"))
        found |= dict.fromkeys(wanted)
    refuse(problems)
    return list(found)
