"""What another scheduler would evict, judged by YuniKorn: fences, priorities and guarantees, as a decision finds its
candidates, and law 2 (documented) or the guarantee before each (as released) over all of a proposal together."""

from collections.abc import Callable

from app.solver.engines.yunikorn.compile.state import CompiledState
from app.solver.engines.yunikorn.decide.overlay import Overlay
from app.solver.engines.yunikorn.decide.request import Request, ask_problems, refuse, requests_of
from app.solver.engines.yunikorn.decide.victims import required_node
from app.solver.engines.yunikorn.decide.victims.candidates import Keeper, keeper, reach
from app.solver.engines.yunikorn.decide.victims.guarantee import Level, levels, shift, tested_cells
from app.solver.engines.yunikorn.decide.victims.laws import Allowance, law_2_slack
from app.solver.model.decision import Refusal
from app.solver.model.request import Eviction
from app.solver.model.state import Ask

_Together = Callable[[list[int]], dict[int, str]]
"""Of tasks that are candidates each alone, those that may not go with the others, and the rule."""


def judge(state: CompiledState, now: int, ask: Ask, proposals: list[list[Eviction]]) -> list[list[Refusal]]:
    """See ``Engine.judge``. An ask of several tasks is judged by its first."""
    del now
    refuse(ask_problems(state, ask, "asks", 0))
    overlay, request = Overlay(state), requests_of(state, ask)[0]
    of = required_node.keeper(overlay, request) if request.required is not None else None
    kept: Keeper = of or keeper(overlay, request, reach(overlay, request))
    together = _together(overlay, request)
    tasks = _Tasks(state)
    return [_refusals(tasks, evictions, kept, together) for evictions in proposals]


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
        state, at = self._state, self._state.application(workload)
        assert at is not None
        named: dict[str, list[int]] = {}
        for task in range(int(state.starts[at]), int(state.starts[at + 1])):
            named.setdefault(state.tasks[task].name, []).append(task)
        return named


def _refusals(tasks_of: _Tasks, evictions: list[Eviction], kept: Keeper, together: _Together) -> list[Refusal]:
    tasks = {task: eviction for eviction in evictions for task in tasks_of.of(eviction)}
    rules = {task: rule for task in tasks if (rule := kept(task)) is not None}
    rules |= together([task for task in tasks if task not in rules])
    found: dict[tuple[str, str | None], Refusal] = {}
    for task, eviction in tasks.items():
        if (rule := rules.get(task)) is not None:
            refusal = Refusal(workload=eviction.workload, task=eviction.task, rule=rule, detail="")
            found.setdefault((eviction.workload, eviction.task), refusal)
    return list(found.values())


def _together(overlay: Overlay, request: Request) -> _Together:
    if request.required is not None:
        return lambda _: {}
    if overlay.state.configuration.rules == "documented":
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
        cells = tested_cells(known[queue], request.amounts)
        if cells is not None and not any(slack[cell] < 0 for cell in cells):
            refused.append(task)
        else:
            shift(state.configuration, queue, state.amounts(task), 1, slack)
    return refused
