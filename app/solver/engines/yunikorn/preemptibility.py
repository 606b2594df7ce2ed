"""Who may be preempted under YuniKorn's rules: ``POST /v1/preemptibility``, and proposals of another scheduler."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from app.solver.engines.yunikorn import shipped
from app.solver.engines.yunikorn.candidates import Keeper, fates, keeper, reach
from app.solver.engines.yunikorn.guarantees import (
    Allowance,
    Level,
    law_2_slack,
    law_2_slack_for_any,
    levels,
    over_some,
    shift,
)
from app.solver.engines.yunikorn.overlay import Overlay, Request, ask_problems, refuse, requests_of
from app.solver.engines.yunikorn.state import OPTED_OUT, CompiledState
from app.solver.model.decision import Refusal
from app.solver.model.problems import Problem, pointer
from app.solver.model.request import Eviction
from app.solver.model.state import Ask
from app.solver.question import ProtectionQuestion

_Together = Callable[[list[int]], dict[int, str]]
"""Of tasks that are candidates each alone, those that may not go with the others, and the rule."""


def judge(state: CompiledState, now: int, ask: Ask, proposals: list[list[Eviction]]) -> list[list[Refusal]]:
    """See ``Engine.judge``. An ask of several tasks is judged by its first.

    What another scheduler would evict is judged by fences, priorities and guarantees, as a decision finds its
    candidates, and by law 2 (documented) or the guarantee before each (as released) over all of a proposal together."""
    del now
    refuse(ask_problems(state, ask, "asks", 0))
    overlay, request = Overlay(state), requests_of(state, ask)[0]
    of = shipped.keeper_on_node(overlay, request) if request.required is not None else None
    reason_of: Keeper = of or keeper(overlay, request, reach(overlay, request))
    together = _together(overlay, request)
    tasks = _Tasks(state)
    return [_refusals(tasks, evictions, reason_of, together) for evictions in proposals]


class _Tasks:
    """Canonical indices of what would be evicted; an application's tasks are looked through once."""

    def __init__(self, state: CompiledState) -> None:
        self._state = state
        self._named: dict[str, dict[str, list[int]]] = {}

    def of(self, eviction: Eviction) -> list[int]:
        """Of all the application's tasks, or of those of that name."""
        named = self._named.get(eviction.workload)
        if named is None:
            named = self._named[eviction.workload] = self._read(eviction.workload)
        if eviction.task is None:
            return sorted(task for tasks in named.values() for task in tasks)
        return named[eviction.task]

    def _read(self, workload: str) -> dict[str, list[int]]:
        state, running = self._state, self._state.application(workload)
        assert running is not None
        named: dict[str, list[int]] = {}
        for task in range(int(state.starts[running]), int(state.starts[running + 1])):
            named.setdefault(state.tasks[task].name, []).append(task)
        return named


def _refusals(tasks_of: _Tasks, evictions: list[Eviction], reason_of: Keeper, together: _Together) -> list[Refusal]:
    tasks = {task: eviction for eviction in evictions for task in tasks_of.of(eviction)}
    rules = {task: rule for task in tasks if (rule := reason_of(task)) is not None}
    rules |= together([task for task in tasks if task not in rules])
    refusals: dict[tuple[str, str | None], Refusal] = {}
    for task, eviction in tasks.items():
        if (rule := rules.get(task)) is not None:
            refusal = Refusal(workload=eviction.workload, task=eviction.task, rule=rule, detail="")
            refusals.setdefault((eviction.workload, eviction.task), refusal)
    return list(refusals.values())


def _together(overlay: Overlay, request: Request) -> _Together:
    if request.required is not None:
        return lambda _: {}
    if overlay.state.configuration.rules.keeps_guarantees:
        return _by_law_2(Allowance(overlay.state, law_2_slack(overlay, request)))
    known = levels(overlay.state.configuration, request.queue)
    return lambda tasks: dict.fromkeys(as_released(overlay, request, known, tasks), "within-guarantee")


def _by_law_2(allowance: Allowance) -> _Together:
    def of(tasks: list[int]) -> dict[int, str]:
        taken: list[int] = []
        for task in tasks:
            if allowance.lets(task):
                allowance.take(task)
                taken.append(task)
        for task in taken:
            allowance.give_back(task)
        return dict.fromkeys((task for task in tasks if task not in taken), "law-2")

    return of


def as_released(overlay: Overlay, request: Request, known: list[Level | None], tasks: list[int]) -> list[int]:
    """Tasks that can't leave one after the other: their queue is not over its guarantee in what the ask names before
    they do."""
    state, slack, refused = overlay.state, list(overlay.slack), list[int]()
    for task in tasks:
        queue = int(state.queue[task])
        if over_some(known[queue], request.amounts, slack):
            shift(state.configuration, queue, state.amounts(task), 1, slack)
        else:
            refused.append(task)
    return refused


Preemptibility = Literal["non_preemptible", "aggressively_preemptible", "preemptible"]


def preemptibility(state: CompiledState, question: ProtectionQuestion) -> dict[str, Any]:
    """The body of the answer: what protects each running task, by itself or from one ask; ``evict_allowed`` when
    evictions were named. ``aggressively_preemptible`` are tasks that go as a last resort: opted-out ones and
    originators."""
    overlay = Overlay(state)
    request = None
    if question.ask is not None:
        refuse(ask_problems(state, question.ask, "ask"))
        request = requests_of(state, question.ask)[0]
    reasons = dict(_kept_by_themselves(state) if request is None else _kept_from(overlay, request))
    guarantees = _Guarantees(overlay, request)
    reasons |= {
        task: "law-2" for task in range(state.task_count) if task not in reasons and not guarantees.let_go(task)
    }
    answer: dict[str, Any] = {"workloads": _workloads(state, reasons)}
    if question.evict:
        tasks = _named(state, question)
        answer["evict_allowed"] = not any(task in reasons for task in tasks) and guarantees.let_go_together(tasks)
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
        return shipped.fates_on_node(overlay, request)
    return fates(overlay, request, reach(overlay, request))


class _Guarantees:
    """Which tasks the guarantees let go: law 2 (documented), or a queue that is over before (shipped, which knows no
    protection without an ask). Asks with a required node ask for neither."""

    def __init__(self, overlay: Overlay, request: Request | None) -> None:
        self._overlay = overlay
        self._request = request
        self._lawful: Allowance | None = None
        if overlay.state.configuration.rules.keeps_guarantees and (request is None or request.required is None):
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


def _workloads(state: CompiledState, reasons: dict[int, str]) -> dict[str, Any]:
    workloads: dict[str, Any] = {
        workload.id: {"preemptible": False, "reason": "nothing-runs", "tasks": {}} for workload in state.workloads
    }
    for task in range(state.task_count):
        workload, name = state.label(task)
        of = workloads[workload]
        standing, reason = _standing(state, task, reasons)
        of["tasks"][name] = {"preemptibility": standing, "reason": reason}
        if standing != "non_preemptible" and not of["preemptible"]:
            of["preemptible"], of["reason"] = True, reason
        elif not of["preemptible"]:
            of["reason"] = reason
    return workloads


def _standing(state: CompiledState, task: int, reasons: dict[int, str]) -> tuple[Preemptibility, str]:
    if task in reasons:
        return "non_preemptible", reasons[task]
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
    tasks: dict[int, None] = {}
    for i, eviction in enumerate(question.evict):
        of = running.get(eviction.workload, {})
        wanted = list(of.values()) if eviction.task is None else [of[eviction.task]] if eviction.task in of else []
        if not wanted:
            what = eviction.workload if eviction.task is None else f"{eviction.workload}/{eviction.task}"
            problems.append(Problem(pointer=pointer("evict", i), detail=f"{what!r} does not run"))
        tasks |= dict.fromkeys(wanted)
    refuse(problems)
    return list(tasks)
