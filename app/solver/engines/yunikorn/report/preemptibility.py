"""``POST /v1/preemptibility``: what protects each running task, by itself or from one ask.

``aggressively_preemptible`` are tasks that go as a last resort: opted-out ones and originators.
"""

from collections.abc import Iterable
from typing import Any, Literal

from app.solver.engines.yunikorn.compile.state import OPTED_OUT, CompiledState
from app.solver.engines.yunikorn.decide.overlay import Overlay
from app.solver.engines.yunikorn.decide.request import Request, ask_problems, refuse, requests_of
from app.solver.engines.yunikorn.decide.victims import required_node
from app.solver.engines.yunikorn.decide.victims.candidates import fates, reach
from app.solver.engines.yunikorn.decide.victims.guarantee import levels
from app.solver.engines.yunikorn.decide.victims.laws import Allowance, law_2_slack, law_2_slack_for_any
from app.solver.engines.yunikorn.report.proposals import as_released
from app.solver.model.problems import Problem, pointer
from app.solver.question import ProtectionQuestion

Preemptibility = Literal["non_preemptible", "aggressively_preemptible", "preemptible"]


def preemptibility(state: CompiledState, question: ProtectionQuestion) -> dict[str, Any]:
    """The body of the answer; ``evict_allowed`` when evictions were named."""
    overlay = Overlay(state)
    request = None
    if question.ask is not None:
        refuse(ask_problems(state, question.ask, "ask"))
        request = requests_of(state, question.ask)[0]
    kept = dict(_kept_by_themselves(state) if request is None else _kept_from(overlay, request))
    guarantees = _Guarantees(overlay, request)
    kept |= {task: "law-2" for task in range(state.task_count) if task not in kept and not guarantees.let_go(task)}
    answer: dict[str, Any] = {"workloads": _workloads(state, kept)}
    if question.evict:
        tasks = _named(state, question)
        answer["evict_allowed"] = not any(task in kept for task in tasks) and guarantees.let_go_together(tasks)
    return answer


def _kept_by_themselves(state: CompiledState) -> Iterable[tuple[int, str]]:
    """Tasks that no ask may preempt."""
    for task, of in enumerate(state.tasks):
        if of.required_node is not None:
            yield task, "bound-to-its-node"
        elif of.state != "running":
            yield task, "already-leaving"
        elif of.node is None:
            yield task, "on-no-node"
        elif state.configuration.settings[int(state.queue[task])].preemption_policy == "disabled":
            yield task, "preemption-disabled"


def _kept_from(overlay: Overlay, request: Request) -> Iterable[tuple[int, str]]:
    """Tasks that this ask may not preempt."""
    if request.required is not None:
        return required_node.fates(overlay, request)
    return fates(overlay, request, reach(overlay, request))


class _Guarantees:
    """Which tasks the guarantees let go: law 2 (documented), or a queue that is over before (shipped, which knows no
    protection without an ask). Asks with a required node ask for neither."""

    def __init__(self, overlay: Overlay, request: Request | None) -> None:
        self._overlay = overlay
        self._request = request
        self._lawful: Allowance | None = None
        if overlay.state.configuration.rules == "documented" and (request is None or request.required is None):
            slack = law_2_slack_for_any(overlay) if request is None else law_2_slack(overlay, request)
            self._lawful = Allowance(overlay.state, slack)

    def let_go(self, task: int) -> bool:
        """Whether law 2 lets the task go by itself."""
        return self._lawful is None or self._lawful.lets(task)

    def let_go_together(self, tasks: list[int]) -> bool:
        """Whether all of them may go, one after the other."""
        if self._lawful is not None:
            return self._lawful.let_together(tasks)
        if self._request is None or self._request.required is not None:
            return True
        known = levels(self._overlay.state.configuration, self._request.queue)
        return not as_released(self._overlay, self._request, known, tasks)


def _workloads(state: CompiledState, kept: dict[int, str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        workload.id: {"preemptible": False, "reason": "nothing-runs", "tasks": {}} for workload in state.workloads
    }
    for task in range(state.task_count):
        workload, name = state.label(task)
        of = found[workload]
        standing, reason = _standing(state, task, kept)
        of["tasks"][name] = {"preemptibility": standing, "reason": reason}
        if standing != "non_preemptible" and not of["preemptible"]:
            of["preemptible"], of["reason"] = True, reason
        elif not of["preemptible"]:
            of["reason"] = reason
    return found


def _standing(state: CompiledState, task: int, kept: dict[int, str]) -> tuple[Preemptibility, str]:
    if task in kept:
        return "non_preemptible", kept[task]
    flags = int(state.flags[task])
    if flags:
        return "aggressively_preemptible", "opted-out" if flags & OPTED_OUT else "originator"
    return "preemptible", "may-be-preempted"


def _named(state: CompiledState, question: ProtectionQuestion) -> list[int]:
    """Canonical indices of the tasks to evict. Raises InvalidInput for those that don't run."""
    running: dict[str, dict[str, int]] = {workload.id: {} for workload in state.workloads}
    for task in range(state.task_count):
        workload, name = state.label(task)
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
