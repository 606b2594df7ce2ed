"""Who may be preempted under YuniKorn's rules: ``POST /v1/preemptibility``, proposals of another scheduler, and who
goes for a changed quota (YuniKorn: quota_preemptor.go)."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np

from app.solver.engines.yunikorn import shipped
from app.solver.engines.yunikorn.candidates import Keeper, fates, keeper, reach
from app.solver.engines.yunikorn.configuration import Amounts
from app.solver.engines.yunikorn.guarantees import (
    Allowance,
    Level,
    keeps_guarantees,
    law_2_slack,
    law_2_slack_for_any,
    levels,
    over_some,
    shift,
)
from app.solver.engines.yunikorn.overlay import Overlay, Request, ask_problems, refuse, requests_of
from app.solver.engines.yunikorn.state import OPTED_OUT, ORIGINATOR, CompiledState
from app.solver.model.base import units
from app.solver.model.decision import Plan, PlannedEviction, Refusal, Result
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.request import Eviction
from app.solver.model.state import Ask
from app.solver.question import ProtectionQuestion, Question, safe_point

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


HOUR = 3600 * 10**6
_SCORE_ORIGINATOR = 1 << 33
_SCORE_OPTED_OUT = 1 << 34
MILLI = "vcore"
"""The one resource that YuniKorn counts in thousandths."""
QUOTA_ENFORCED = "QuotaChanged"
Rank = tuple[int, int, int, list[float]]


def enforce(state: CompiledState, question: Question, name: str) -> Result:
    """Evictions that bring queue ``name``, which is above it, towards its limit. Raises InvalidInput: no such queue, or
    asks beside it.

    The amount above the limit, capped by the largest overuse of a guarantee on the queue's path, is spread over
    child queues by their share of overuse; each leaf then gives tasks that fit into its part, never more. The caller
    decides when a limit is due (YuniKorn: quota.preemption.delay after it was lowered); a queue within its limit gives
    nothing. Where the original crashes, a parent whose amount is empty, nobody is evicted."""
    queue = state.configuration.tree.index.get(name)
    problems: list[Problem] = []
    if queue is None:
        problems.append(Problem(pointer="/options/yunikorn/enforce_quota", detail=f"no queue {name!r}"))
    if question.asks:
        problems.append(Problem(pointer="/asks", detail="enforcing a quota takes no asks"))
    if queue is None or problems:
        raise InvalidInput(problems)
    overlay = Overlay(state)
    amount = _amount(state, queue)
    parts = list(_parts(state, queue, amount))
    evictions = [_eviction(state, task) for leaf, part in parts for task in _victims(overlay, leaf, part)]
    return Result(
        decisions=[], order=[], plan=Plan(evictions=evictions, placements=[]),
        notes={
            "enforced": {
                "queue": name,
                "above_limit": state.resources.units(amount),
                "parts": {state.configuration.tree.names[leaf]: state.resources.units(part) for leaf, part in parts},
            }
        },
    )  # fmt: skip


def _eviction(state: CompiledState, task: int) -> PlannedEviction:
    workload, name = state.label(task)
    return PlannedEviction(
        workload=workload, task=name, queue=state.queue_name(task), node=state.tasks[task].node,
        reason=QUOTA_ENFORCED,
    )  # fmt: skip


def _amount(state: CompiledState, queue: int) -> Amounts:
    """What the queue is above its limit, without what is being preempted, by resource; only positive amounts."""
    above: Amounts = {}
    for r, most in (state.limit[queue] or {}).items():
        over = state.allocated[queue][r] - state.preempting[queue][r] - most
        if over > 0:
            above[r] = over
    cap = _overuse(state, queue)
    return {r: min(over, cap.get(r, over)) for r, over in above.items()}


def _overuse(state: CompiledState, queue: int) -> Amounts:
    """The largest overuse against a guarantee on the path, by resource that some queue there overuses."""
    largest: Amounts = {}
    for q in state.configuration.paths[queue]:
        for r, guaranteed in (state.configuration.guaranteed[q] or {}).items():
            over = state.allocated[q][r] - guaranteed
            if over > largest.get(r, 0):
                largest[r] = over
    return largest


def _parts(state: CompiledState, queue: int, amount: Amounts) -> Iterator[tuple[int, Amounts]]:
    """(leaf, its part of ``amount``), leaves in the order of their paths."""
    if not amount:
        return
    queues = state.configuration
    if queues.leaf[queue]:
        yield queue, amount
        return
    overuse = {child: over for child in queues.tree.children[queue] if (over := _child_overuse(state, child))}
    total: Amounts = {}
    for over in overuse.values():
        for r, value in over.items():
            total[r] = total.get(r, 0) + value
    for child in sorted(overuse, key=queues.tree.names.__getitem__):
        part = {r: _part(value, total[r], amount[r]) for r, value in overuse[child].items() if r in amount}
        yield from _parts(state, child, part)


def _part(value: int, total: int, amount: int) -> int:
    """``value`` in ``total`` of ``amount``, rounded down; 0 where nobody overuses."""
    return int(value / total * amount) if total else 0


def _child_overuse(state: CompiledState, child: int) -> Amounts:
    """Distance from the guarantee (the original counts what is under it as well), or all usage without one.

    Nothing for a child that is within its guarantee in every resource. A type with 0 says that the child has no part
    in it, one that is missing that the child has no bound on it.
    """
    used, guaranteed = state.allocated[child], state.configuration.guaranteed[child]
    if guaranteed is None:
        return {r: used[r] for r in _types_named(state, child)}
    if all(used[r] <= held for r, held in guaranteed.items()):
        return {}
    return {r: abs(used[r] - held) for r, held in guaranteed.items()}


def _types_named(state: CompiledState, queue: int) -> list[int]:
    """Types that some task of the queue names, whatever the amount: those that its usage has in the original."""
    inside = np.zeros(len(state.configuration.tree), dtype=bool)
    inside[state.configuration.tree.under(queue)] = True
    shapes: list[int] = np.unique(state.shape[inside[state.queue]]).tolist()
    return sorted({r for shape in shapes for r in state.shapes[shape]})


def _victims(overlay: Overlay, leaf: int, part: Amounts) -> list[int]:
    """Tasks that fit into the part by themselves and together; one that doesn't is skipped. A part that is all zeros
    takes nobody (YuniKorn: filterAllocations)."""
    state = overlay.state
    if not any(part.values()):
        return []
    lawful = state.configuration.rules.keeps_guarantees
    left = dict(part)
    taken: list[int] = []
    for task in _candidates(state, leaf, part):
        safe_point()
        amounts = state.amounts(task)
        if any(value > left[r] for r, value in amounts.items() if r in left):
            continue
        if lawful and not keeps_guarantees(state.configuration, leaf, amounts, overlay.slack):
            continue
        overlay.evict([task])
        taken.append(task)
        for r, value in amounts.items():
            if r in left:
                left[r] -= value
    return taken


def _candidates(state: CompiledState, leaf: int, part: Amounts) -> list[int]:
    """Tasks of the leaf that may go, in order; Go's sort turns the order of equals round."""
    mask = state.eligible & (state.queue == leaf) & state.shares_a_type(part)
    limit = state.limit[leaf] or {}
    ranks = {task: _rank(state, task, part, limit) for task in reversed(np.flatnonzero(mask).tolist())}
    return sorted(ranks, key=ranks.__getitem__)


def _rank(state: CompiledState, task: int, part: Amounts, limit: Amounts) -> Rank:
    """Highest score, lowest priority, newest by whole hours, smallest shares of the leaf's own limit.

    The score puts originators and opted-out tasks first (shipped) or last (documented, law 1). Shares are of the types
    in the part only, the largest first; those of 0 count as if they were not there (YuniKorn:
    CompUsageRatioSpecificTypes, compareShares).
    """
    flags, amounts = int(state.flags[task]), state.amounts(task)
    score = sum(1 for r in amounts if r in part) * 100 // len(amounts)
    protected = (_SCORE_ORIGINATOR if flags & ORIGINATOR else 0) + (_SCORE_OPTED_OUT if flags & OPTED_OUT else 0)
    score += -protected if state.configuration.rules.opted_out_last else protected
    shares = [_share(state, r, value, limit) for r, value in amounts.items() if r in part and value]
    return -score, int(state.priority[task]), -(state.created(task) // HOUR), sorted(shares, reverse=True)


def _share(state: CompiledState, resource: int, amount: int, limit: Amounts) -> float:
    """Of the limit; without one the raw quantity, which YuniKorn has in thousandths for vcore and else in units."""
    if limit.get(resource):
        return amount / limit[resource]
    return float(amount if state.resources.names[resource] == MILLI else units(amount, state.resources.names[resource]))
