"""What a cycle came to, and why: who has a place or lost one, and for whom; the trail of a job as an explanation, what
became of everybody who runs, and the one thing that stands in
the way of a job that waits.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

from app.solver.engines.kai.actions import Cycle
from app.solver.engines.kai.chance import Search, Trail, Tried
from app.solver.engines.kai.jobs import ALLOCATED, GPU, KAI_UNLIMITED, PIPELINED, RUNNING, Share, holds, total
from app.solver.engines.kai.overlay import EVICT, NO_ASK, Eviction, Overlay
from app.solver.engines.kai.state import baseline, layout
from app.solver.engines.kai.validators import Refusal, Scenario
from app.solver.model.base import units
from app.solver.model.decision import Decision, Explanation, Shortage, Verdict
from app.solver.question import Question, Why


class Outcomes:
    """What a cycle came to, by number of the ask.

    ``placed``: pods that have a place in the end. ``lost``: the eviction that took the last place of an ask that has
    none in the end. ``evictions``: all. ``victims``: those of pods that run, in order: a pod placed by the cycle
    itself never ran. Who makes room and then loses it makes it for whoever has it in the end.
    """

    def __init__(self, cycle: Cycle) -> None:
        self._overlay = cycle.overlay
        self.evictions = list(cycle.overlay.evictions.values())

    @cached_property
    def placed(self) -> list[list[int]]:
        """See the class."""
        overlay, placed = self._overlay, list[list[int]]([] for _ in self._overlay.asks)
        for t in sorted(overlay.placed):
            if t >= overlay.running_tasks and overlay.status[t] in (ALLOCATED, PIPELINED):
                placed[overlay.number_of_ask(t)].append(t)
        return placed

    @cached_property
    def lost(self) -> list[Eviction | None]:
        """See the class."""
        overlay, lost = self._overlay, list[Eviction | None]([None] * len(self._overlay.asks))
        for eviction in sorted(self.evictions, key=attrgetter("task")):
            if eviction.ask != NO_ASK and eviction.task >= overlay.running_tasks:
                a = overlay.number_of_ask(eviction.task)
                latest = lost[a]
                if not self.placed[a] and (latest is None or eviction.statement > latest.statement):
                    lost[a] = eviction
        return lost

    @cached_property
    def victims(self) -> list[list[Eviction]]:
        """See the class."""
        victims: list[list[Eviction]] = [[] for _ in self._overlay.asks]
        for eviction in self.evictions:
            if eviction.ask != NO_ASK and eviction.task < self._overlay.running_tasks:
                victims[self.holder(eviction.ask)].append(eviction)
        return victims

    def holder(self, a: int) -> int:
        """Who has the room in the end that ask number ``a`` made: itself, or whoever took it. Whoever takes a place
        gets it later than whoever had it, so that this ends."""
        while (lost := self.lost[a]) is not None:
            a = lost.ask
        return a


def placed_on(cycle: Cycle, nodes: set[int]) -> list[str]:
    """The asks of which the cycle placed pods on these nodes, in the order of the request."""
    overlay = cycle.overlay
    there = {t for t in overlay.placed if overlay.status[t] in (ALLOCATED, PIPELINED) and overlay.node[t] in nodes}
    return [ask.id for a, ask in enumerate(overlay.asks) if not there.isdisjoint(overlay.pods_of(a))]


_LACKS_ROOM = ("no-room", "no-victims", "no-easier", "too-few-gpus-free", "too-few-gpus", "too-few-victims")


def taken_by(cycle: Cycle, a: int) -> str | None:
    """The sentence for an ask that lacks room only because the cycle gave it to other asks: each of its pods fits on
    what the nodes had before the cycle began, first fit by name. None where that is not so, or cannot be told."""
    overlay = cycle.overlay
    main = cycle.tools.trail.main(overlay.jobs.of_ask[a])
    if main is None or main[1] not in _LACKS_ROOM:
        return None
    pods = overlay.wanted(overlay.jobs.of_ask[a])[0]
    if any(overlay.gpus.share[t] for t in pods):
        return None
    nodes = _first_fit(cycle, pods)
    holders = placed_on(cycle, nodes)
    if not nodes or not holders:
        return None
    where = ", ".join(sorted(overlay.node_names[n] for n in nodes))
    hold = "holds" if len(nodes) == 1 else "hold"
    return f"{where} had room for it before the cycle began, and {hold} {', '.join(holders)} now"


def _first_fit(cycle: Cycle, pods: Sequence[int]) -> set[int]:
    """The nodes that would hold the pods; empty where some pod fits nowhere."""
    overlay, placer = cycle.overlay, cycle.tools.placer
    free = [column.copy() for column in baseline(overlay.state).free]
    free += [[0] * len(overlay.state.nodes) for _ in range(overlay.width - len(free))]
    used: set[int] = set()
    for t in pods:
        request, allowed = overlay.request[t], placer.allowed(t)
        for n in placer.by_name:
            if (allowed is None or allowed[n]) and all(holds(free[r][n], need) for r, need in enumerate(request)):
                for r, need in enumerate(request):
                    free[r][n] -= max(0, need)
                used.add(n)
                break
        else:
            return set()
    return used


_NAMES = ("cpu", "memory", "gpu")
_BOUNDS = {"OverLimit": "limit", "NonPreemptibleOverQuota": "deserved quota"}


@dataclass(frozen=True, slots=True)
class Never:
    """Why a job can never run: a reason for conditions, a sentence, what is short."""

    reason: str
    message: str
    shortages: list[Shortage] = field(default_factory=list)


def never(cycle: Cycle, job: int) -> Never | None:
    """The first reason why the job can't run, ever; None where it might."""
    overlay, jobs = cycle.overlay, cycle.overlay.jobs
    if not overlay.leaf[job]:
        queue = overlay.queue_name(jobs.queue[job])
        return Never("QueueNotALeaf", f"{queue} has queues below it, and KAI schedules only jobs of leaves")
    have, need, gang = len(jobs.tasks[job]), jobs.min_available[job], jobs.gang[job]
    if not have:
        return Never("NoPods", "it has no pods")
    if have < need:
        return Never("GangIncomplete", f"its gang needs {need} pods and it has {have}")
    if gang is not None and not gang.satisfied(jobs.by_pod_set(jobs.tasks[job])):
        return Never("GangIncomplete", "its sub groups have fewer pods than they need")
    if gang is None:
        pods = overlay.in_order(job)[: max(need, 1)]
    else:
        pods = gang.next_pods({}, jobs.by_pod_set(overlay.in_order(job)))
    return _too_big(cycle, pods) or _over_bounds(cycle, job, total(overlay.request, pods))


def _too_big(cycle: Cycle, pods: list[int]) -> Never | None:
    """A pod of the gang that no empty node could hold."""
    overlay, state = cycle.overlay, cycle.overlay.state
    seen: set[tuple[object, ...]] = set()
    for t in pods:
        allowed = cycle.tools.placer.allowed(t)
        key = (overlay.request[t], id(allowed))
        if key in seen or t < overlay.running_tasks:
            continue
        seen.add(key)
        open_nodes = [n for n in range(len(state.nodes)) if allowed is None or allowed[n]]
        if not open_nodes:
            if not state.nodes:
                return Never("NoNodes", "there are no nodes in the state")
            return Never("NoNodeAllowed", f"no node satisfies what {overlay.jobs.task_name[t]} asks of nodes")
        only_asked = layout(state).only_asked
        if not any(_holds(state.capacity[n], overlay.request[t], only_asked=only_asked) for n in open_nodes):
            return _larger_than_nodes(cycle, t, open_nodes)
    return None


def _larger_than_nodes(cycle: Cycle, t: int, nodes: list[int]) -> Never:
    overlay, state = cycle.overlay, cycle.overlay.state
    short: list[Shortage] = []
    for r, amount in enumerate(overlay.request[t]):
        largest = max((0, *(state.capacity[n][r] for n in nodes if r < len(state.capacity[n]))))
        if amount > largest:
            name = _NAMES[r] if r <= GPU else overlay.resources.names[r]
            short.append(
                Shortage(
                    resource=name, requested=units(amount, name), available=units(largest, name),
                    short=units(amount - largest, name),
                )
            )  # fmt: skip
    what = ", ".join(f"{s.requested} {s.resource}" for s in short) or "this combination of resources"
    return Never("LargerThanAnyNode", f"no node, even empty, could hold {overlay.jobs.task_name[t]}: {what}", short)


def _holds(capacity: tuple[int, ...], request: tuple[int, ...], *, only_asked: bool) -> bool:
    return all(
        holds(capacity[r] if r < len(capacity) else 0, amount) or (only_asked and not amount and r > GPU)
        for r, amount in enumerate(request)
    )


def _over_bounds(cycle: Cycle, job: int, gang: Share) -> Never | None:
    """A limit, or for a non-preemptible job a deserved quota, that the gang alone would pass."""
    order, overlay = cycle.tools.order, cycle.overlay
    fixed = not overlay.jobs.preemptible[job]
    for q in overlay.paths[overlay.jobs.queue[job]]:
        for r, need in enumerate(gang):
            limit, deserved = order.limit[q][r], order.deserved[q][r]
            if need and limit != KAI_UNLIMITED and need > limit:
                return _bound(cycle, "OverLimit", q, r, need, limit)
            if need and fixed and deserved != KAI_UNLIMITED and need > deserved:
                return _bound(cycle, "NonPreemptibleOverQuota", q, r, need, deserved)
    return None


def _bound(cycle: Cycle, reason: str, q: int, r: int, need: int, bound: int) -> Never:
    queue, name = cycle.overlay.queue_name(q), _NAMES[r]
    shortage = Shortage(
        resource=name, queue=queue, requested=units(need, name), available=units(bound, name),
        short=units(need - bound, name),
    )  # fmt: skip
    message = (
        f"its gang needs {shortage.requested} {name}, more than the {_BOUNDS[reason]} of {queue}, {shortage.available}"
    )
    return Never(reason, message, [shortage])


class Recorder(Trail):
    """A trail that keeps everything, for explanations."""

    counts = True

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[int, dict[tuple[str, int, str, str], Tried]] = {}
        self._searches: dict[int, list[Search]] = {}
        self._search: Search
        self._part: tuple[int, int]

    def again(self) -> "Recorder":
        """See ``Trail.again``."""
        return deepcopy(self)

    def begin(self, job: int, action: str) -> None:
        """See ``Trail.begin``."""
        super().begin(job, action)
        self._search, self._part = Search(action), (0, 0)

    def part(self, size: int, of: int) -> None:
        """See ``Trail.part``."""
        self._part = (size, of)

    def note(self, rule: str, detail: str, **numbers: Any) -> None:
        """See ``Trail.note``."""
        super().note(rule, detail, **numbers)
        key = (self._action, self._part[0], rule, detail)
        of_job = self._found.setdefault(self._job, {})
        tried = of_job.get(key)
        if tried is None:
            tried = of_job[key] = Tried(self._action, *self._part, rule, detail, {})
        tried.count += 1
        tried.numbers = numbers

    def spare(self, victim: int, refusal: Refusal) -> None:
        """See ``Trail.spare``."""
        self._search.refused[victim] = refusal

    def search(self, eligible: Sequence[int]) -> None:
        """See ``Trail.search``."""
        self._search.eligible = frozenset(eligible)
        self._searches.setdefault(self._job, []).append(self._search)

    def succeeded(self, overlay: Overlay) -> None:
        """See ``Trail.succeeded``."""
        search = self._search
        search.ask = overlay.asking(self._job)
        search.taken = frozenset(op.task for op in overlay.ops if op.kind == EVICT)
        search.put_back = frozenset(t for t in search.taken if not overlay.stays_evicted(t))

    def of(self, job: int) -> list[Tried]:
        """See ``Trail.of``."""
        return list(self._found.get(job, {}).values())

    def searches(self, job: int) -> list[Search]:
        """See ``Trail.searches``."""
        return self._searches.get(job, [])

    def _size(self, scenario: Scenario) -> dict[str, int]:
        return {"victims": len(scenario.listed), "pods": scenario.pods}


_Judged = tuple[Verdict, str, str, dict[str, Any]]
"""Verdict, rule, detail, numbers."""


def explain(cycle: Cycle, outcomes: Outcomes, a: int, question: Question, decision: Decision) -> Explanation | None:
    """Every scenario considered, equal ones counted once, and why each failed; then every workload that runs, if
    anybody was searched for victims: whole, or pod by pod where some of it goes or was put back."""
    overlay, record = cycle.overlay, question.why()
    job = overlay.jobs.of_ask[a]
    _steps(cycle, outcomes, a, record)
    trail = cycle.tools.trail
    if trail.searches(job):
        _candidates(overlay, outcomes, a, trail, record)
    name, message = decision.ask, decision.conditions[0].message
    if decision.outcome in ("wait", "infeasible") and not outcomes.placed[a]:
        blocker = message if decision.outcome == "infeasible" or outcomes.lost[a] else taken_by(cycle, a) or message
        can = "can never run" if decision.outcome == "infeasible" else "waits"
        record.headline(f"{name} {can}: {blocker}")
        record.blocked(blocker)
    elif decision.outcome == "wait":
        record.headline(f"{name} waits: {message}")
        record.blocked(message)
    else:
        record.headline(f"{name}: {decision.outcome}")
    return record.explanation()


def _steps(cycle: Cycle, outcomes: Outcomes, a: int, record: Why) -> None:
    overlay = cycle.overlay
    for tried in cycle.tools.trail.of(overlay.jobs.of_ask[a]):
        part = f", first {tried.part} of {tried.of} pods" if tried.of else ""
        numbers = {"part": tried.part, "pods_of_gang": tried.of} if tried.of else {}
        record.step(
            tried.rule, f"{tried.action}{part}: {tried.detail}", action=tried.action, count=tried.count,
            **numbers, **tried.numbers,
        )  # fmt: skip
    policy, searches = overlay.state.configuration.policy, cycle.tools.trail.searches(overlay.jobs.of_ask[a])
    if searches and policy.search_budgets is not None and policy.release.budgets_time:
        record.step("search-budgets", "when a budget of time would have ended the released search is not known")
    for other, lost in enumerate(outcomes.lost):
        if lost is not None and lost.ask == a:
            name = overlay.asks[other].id
            record.step("place-taken", f"{lost.action}: takes the place that {name} was given", ask=name)
    if (lost := outcomes.lost[a]) is not None:
        name = overlay.asks[lost.ask].id
        record.step("place-taken", f"{lost.action}: {name} takes the place that it was given", ask=name)


def _candidates(overlay: Overlay, outcomes: Outcomes, a: int, trail: Trail, record: Why) -> None:
    jobs, own = overlay.jobs, overlay.jobs.of_ask[a]
    pods = _pods(overlay, outcomes, a, trail.searches(own))
    touched = {jobs.task_job[t] for t in pods}
    for j in range(len(overlay.state.jobs.id)):
        if j == own and j not in touched:
            continue
        running = [t for t in jobs.tasks[j] if jobs.task_state[t] == RUNNING]
        if not running:
            continue
        queue, judged = overlay.queue_name(jobs.queue[j]), _judge(overlay, outcomes, a, j, trail)
        if j not in touched:
            verdict, rule, detail, numbers = judged
            record.candidate(verdict, rule, jobs.id[j], queue=queue, detail=detail, **numbers)
            continue
        for t in running:
            verdict, rule, detail, numbers = pods.get(t, judged)
            record.candidate(
                verdict, rule, jobs.id[j], task=jobs.task_name[t], queue=queue,
                node=overlay.node_names[jobs.task_node[t]], detail=detail, **numbers,
            )  # fmt: skip


def _pods(overlay: Overlay, outcomes: Outcomes, a: int, searches: list[Search]) -> dict[int, _Judged]:
    """The pods that a winning statement took, as they end."""
    holder = {e.task: outcomes.holder(e.ask) for e in outcomes.evictions if e.ask != NO_ASK}
    judged_pods: dict[int, _Judged] = {}
    for search in searches:
        for t in search.taken if search.ask == a else ():
            if t in search.put_back:
                judged_pods[t] = "put-back", "fits-with-it", f"{search.action}: the ask fits with it where it was", {}
            elif t in holder:
                judged_pods[t] = "not-needed", "goes-for-another", f"it goes for {overlay.asks[holder[t]].id}", {}
    for e in outcomes.victims[a]:
        moved = overlay.status[e.task] == PIPELINED
        where = f": it runs on at {overlay.node_names[overlay.node[e.task]]}" if moved else ""
        judged_pods[e.task] = "moved" if moved else "victim", e.action, f"{e.action}{where}", {}
    return {t: judged for t, judged in judged_pods.items() if t < overlay.running_tasks}


def _judge(overlay: Overlay, outcomes: Outcomes, a: int, j: int, trail: Trail) -> _Judged:
    """What became of workload j, or of its pods that no winning statement took."""
    job = overlay.jobs.of_ask[a]
    searches = trail.searches(job)
    for search in searches:
        if j in search.eligible:
            if outcomes.placed[a] or outcomes.lost[a]:
                return "not-needed", "enough-without", f"{search.action}: the ask found room without it", {}
            forbidden = next((t for t in reversed(trail.of(job)) if _is_about(overlay, j, t)), None)
            if forbidden is not None:
                return "protected", forbidden.rule, f"{forbidden.action}: {forbidden.detail}", {}
            return "not-needed", "nothing-found", f"{search.action}: nothing that was tried made room", {}
    for search in searches:
        if (refusal := search.refused.get(j)) is not None:
            return "protected", refusal.rule, refusal.detail, refusal.numbers
    reasons = [_out(overlay, job, j, search.action) for search in searches]
    protected = [reason for reason in reasons if reason[0] == "protected"]
    return (protected or reasons)[0]


def _is_about(overlay: Overlay, j: int, tried: Tried) -> bool:
    """Whether a validator refused what was tried on account of workload j, or of its queue or one above."""
    numbers, jobs = tried.numbers, overlay.jobs
    if "workload" in numbers:
        return numbers["workload"] == jobs.id[j]
    theirs = numbers.get("sibling", numbers.get("queue") if "reclaimer_within_quota" in numbers else None)
    return theirs is not None and theirs in map(overlay.queue_name, overlay.paths[jobs.queue[j]])


def _out(overlay: Overlay, job: int, j: int, action: str) -> _Judged:
    """Why an action did not look at a workload that runs, or may not take it whatever it holds."""
    jobs = overlay.jobs
    if action == "reclaim" and jobs.queue[j] == jobs.queue[job]:
        return "out-of-reach", "own-queue", "reclaim takes from other queues only", {}
    if action == "preempt" and jobs.queue[j] != jobs.queue[job]:
        return "out-of-reach", "other-queue", "preempt takes from the ask's own queue only", {}
    if not overlay.leaf[j]:
        return "out-of-reach", "queue-not-a-leaf", f"{action} takes from jobs of leaves only", {}
    if not jobs.preemptible[j]:
        return "protected", "not-preemptible", f"{action}: it is not preemptible", {}
    if action == "preempt" and jobs.priority[j] >= jobs.priority[job]:
        numbers = {"priority": jobs.priority[j], "priority_of_ask": jobs.priority[job]}
        return "protected", "priority-not-lower", "preempt: its priority is not lower", numbers
    cap = overlay.state.configuration.policy.max_consolidation_preemptees
    if action == "consolidation" and cap is not None:
        return (
            "out-of-reach",
            "beyond-cap",
            "consolidation looks at no more jobs",
            {"max_consolidation_preemptees": cap},
        )
    return "out-of-reach", "already-going", f"{action}: nothing of it ran any more when the action looked", {}


def blocker(cycle: Cycle, job: int) -> tuple[str, str]:
    """The reason and the sentence of a job that waits: the failure of its attempts that tells most."""
    overlay = cycle.overlay
    if not overlay.ready(job):
        need, alive = overlay.jobs.min_available[job], overlay.active[job] + overlay.pending[job]
        return "GangIncomplete", f"its gang needs {need} pods and {alive} are there"
    main = cycle.tools.trail.main(job)
    if main is None:
        return "NoAction", "no action of this cycle tried to place it"
    action, rule, detail = main
    return "".join(word.capitalize() for word in rule.split("-")), f"{action}: {detail}"
