"""``POST /v1/preemptibility``: what protects each running task, by itself or from one ask.

``aggressively_preemptible`` are tasks that go as a last resort: opted-out ones and originators.
"""

from collections.abc import Iterable
from typing import Any, Literal

from app.solver.engine import ProtectionQuestion
from app.solver.engines.yunikorn import required_node
from app.solver.engines.yunikorn.board import Board
from app.solver.engines.yunikorn.candidates import candidates, fates, reach
from app.solver.engines.yunikorn.cluster import OPTED_OUT, Cluster
from app.solver.engines.yunikorn.guarantee import Level, keeps_guarantees, levels, shift, tested_cells
from app.solver.engines.yunikorn.request import Request, ask_problems, refuse, requests_of
from app.solver.model.problems import Problem, pointer

Preemptibility = Literal["non_preemptible", "aggressively_preemptible", "preemptible"]


def preemptibility(cluster: Cluster, question: ProtectionQuestion) -> dict[str, Any]:
    """The body of the answer; ``evict_allowed`` when evictions were named."""
    board = Board(cluster)
    level: list[Level | None] | None = None
    kept = dict(_kept_by_themselves(cluster))
    if question.ask is not None:
        refuse(ask_problems(cluster, question.ask, "ask"))
        request = requests_of(cluster, question.ask)[0]
        level = levels(cluster.queues, request.queue)
        kept = dict(_kept_from(board, request, level))
    if cluster.queues.rules == "documented" and (question.ask is None or level is not None):
        kept |= _kept_by_law_2(board, kept, question)
    answer: dict[str, Any] = {"workloads": _workloads(cluster, kept)}
    if question.evict:
        answer["evict_allowed"] = _allowed(board, _named(cluster, question), kept, level, question)
    return answer


def _kept_by_themselves(cluster: Cluster) -> Iterable[tuple[int, str]]:
    """Tasks that no ask may preempt."""
    for task, of in enumerate(cluster.tasks):
        if of.required_node is not None:
            yield task, "required-node"
        elif of.state != "running":
            yield task, "already-leaving"
        elif of.node is None:
            yield task, "on-no-node"
        elif cluster.queues.settings[int(cluster.queue[task])].preemption_policy == "disabled":
            yield task, "preemption-disabled"


def _kept_from(board: Board, request: Request, level: list[Level | None]) -> Iterable[tuple[int, str]]:
    """Tasks that this ask may not preempt."""
    if request.required is None:
        within = reach(board, request, level)
        open_ = set(candidates(board, request, within).tolist())
        rules = dict(fates(board, request, within))
        return ((task, rules.get(task, "excluded")) for task in range(board.cluster.task_count) if task not in open_)
    allowed = set(required_node.candidates(board, request))
    return (
        (task, "on-another-node" if int(board.cluster.node[task]) != request.required else "excluded")
        for task in range(board.cluster.task_count)
        if task not in allowed
    )


def _kept_by_law_2(board: Board, kept: dict[int, str], question: ProtectionQuestion) -> dict[int, str]:
    """Documented rules: tasks whose removal alone would leave a queue below its guarantee."""
    if question.ask is not None and (question.ask.required_node or question.ask.tasks[0].required_node):
        return {}
    cluster = board.cluster
    return {
        task: "law-2"
        for task in range(cluster.task_count)
        if task not in kept
        and not keeps_guarantees(cluster.queues, int(cluster.queue[task]), cluster.amounts(task), board.slack)
    }


def _workloads(cluster: Cluster, kept: dict[int, str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        workload.id: {"preemptible": False, "reason": "no running tasks", "tasks": {}} for workload in cluster.workloads
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


def _allowed(
    board: Board, tasks: list[int], kept: dict[int, str], level: list[Level | None] | None, question: ProtectionQuestion
) -> bool:
    """Whether all of them may go together: law 2 (documented), or each queue over its guarantee before (shipped)."""
    cluster, slack = board.cluster, list(board.slack)
    if any(task in kept for task in tasks):
        return False
    by_node = question.ask is not None and bool(question.ask.required_node or question.ask.tasks[0].required_node)
    for task in tasks if not by_node else ():
        queue, amounts = int(cluster.queue[task]), cluster.amounts(task)
        if cluster.queues.rules == "documented" and not keeps_guarantees(cluster.queues, queue, amounts, slack):
            return False
        if level is not None and cluster.queues.rules == "shipped":
            cells = tested_cells(level[queue], amounts)
            if cells is not None and not any(slack[cell] < 0 for cell in cells):
                return False
        shift(cluster.queues, queue, amounts, 1, slack)
    return True
