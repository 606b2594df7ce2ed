"""Why an ask was decided as it was, and what would have decided otherwise: another rule set, or another quota.

Verdicts and prose are derived here from what the search told (``candidates.Silent``), once its outcome is known.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from msgspec import structs
from msgspec.json import encode

from app.solver.engines.yunikorn import configuration
from app.solver.engines.yunikorn.ask import ATTEMPTS, Context, decide
from app.solver.engines.yunikorn.candidates import (
    SILENT,
    Outcome,
    Pool,
    Reach,
    Silent,
    counted,
    fates,
    joined,
    path_limits,
)
from app.solver.engines.yunikorn.configuration import (
    Amounts,
    CompiledConfiguration,
    Difference,
    RuleSet,
    cells_of,
    effective,
)
from app.solver.engines.yunikorn.guarantees import (
    Allowance,
    law_2_slack,
    levels,
    over_limit_of_nothing,
    remaining,
)
from app.solver.engines.yunikorn.overlay import Overlay, Request
from app.solver.engines.yunikorn.shipped import fates_on_node
from app.solver.engines.yunikorn.state import OPTED_OUT, ORIGINATOR, Ints, slack_of
from app.solver.model.base import units
from app.solver.model.decision import Change, Explanation, Verdict
from app.solver.question import Why

Fate = tuple[Verdict, str]
"""A verdict and its rule."""
OUT_OF_REACH = frozenset({
    "asking-queue", "outside-the-fence", "on-no-node", "no-common-resource", "on-another-node", "node-held",
    "node-closed",
})  # fmt: skip
"""Rules by which a task was never looked at for the ask; the others forbid that it goes."""
SEARCHED_IN_VAIN = frozenset({"no-node", "no-victims", "no-candidates", "nodes-held", "shortfall", "required-node"})
"""Failures of a search that has looked at every candidate."""
_NEARNESS: dict[Verdict, int] = {
    "victim": 4, "put-back": 3, "not-needed": 2, "protected": 1, "out-of-reach": 0,
}  # fmt: skip
"""Of several tasks of an ask each gives a verdict; the one that came nearest to evicting holds."""


class Recorder(Silent):
    """One ask's record. The explanation is that of the answer given: a candidate has one verdict for the whole ask, and
    an ask that waits takes nobody, whatever was tried for its first tasks."""

    __slots__ = ("_among", "_final", "_forbidden", "_overlay", "_places", "_pool", "_taken", "_vain", "_why", "_within")
    on = True

    def __init__(self, why: Why) -> None:
        self._why = why
        self._final: dict[int, Fate] = {}
        self._places: dict[int, int] = {}
        self._overlay: Overlay | None = None
        self._start()

    def _start(self) -> None:
        self._within: Reach | None = None
        self._among: list[int] | None = None
        self._pool: Pool | None = None
        self._forbidden: set[int] = set()
        self._taken: dict[int, list[int]] = {}
        self._vain: set[int] = set()

    def searching(self, overlay: Overlay, request: Request, within: Reach | None, among: Sequence[int] | Ints) -> None:
        """See ``Silent``."""
        self._within = within
        self._among = [int(task) for task in among]
        if within is None:
            return
        names = overlay.state.configuration.tree.names
        reason = "it can't take the ask within its limit" if within.at_limit else "it is fenced, or the root"
        self._why.step(
            "fence", f"victims are looked for below {names[within.fence]}: {reason}", candidates=len(self._among)
        )
        asking, left = _left(overlay, request, within)
        shown = {request.resources.names[r]: units(n, request.resources.names[r]) for r, n in left.items()}
        self._why.step("guarantee-left", f"what is left of the guarantee of {names[asking]}", left=shown)

    def opened(self, pool: Pool) -> None:
        """See ``Silent``."""
        self._pool = pool

    def forbidden(self, tasks: Ints) -> None:
        """See ``Silent``."""
        self._forbidden.update(tasks.tolist())

    def searched(self, node: int, taken: Sequence[int], victims: Sequence[int] | None) -> None:
        """See ``Silent``."""
        if victims is None:
            self._vain.add(node)
        else:
            self._vain.discard(node)
            self._taken[node] = list(taken)

    def decided(self, overlay: Overlay, request: Request, outcome: Outcome) -> None:
        """See ``Silent``."""
        self._overlay = overlay
        self._tell_nodes(overlay, outcome)
        if request.units > 1:
            self._why.step("task", f"{request.task.name}: {outcome.kind}", place=request.unit)
        fates_here = {} if self._among is None else dict(self._fates(overlay, request, self._among, outcome))
        if outcome.kind != "wait":
            for task, fate in fates_here.items():
                held = self._final.get(task)
                if held is None or _NEARNESS[fate[0]] >= _NEARNESS[held[0]]:
                    self._final[task] = fate
            self._places |= {task: len(self._places) + i for i, task in enumerate(outcome.victims)}
        else:
            tried = {task for task, (verdict, _) in self._final.items() if verdict in ("victim", "put-back")}
            self._final |= fates_here
            self._final |= dict.fromkeys(tried, ("not-needed", "part-waits"))
            self._places = {}
        self._start()

    def _tell_nodes(self, overlay: Overlay, outcome: Outcome) -> None:
        names = overlay.state.node_names
        for node, taken in self._taken.items():
            victims = outcome.victims if node == outcome.node else taken
            shown = ["/".join(overlay.state.label(task)) for task in victims]
            self._why.step("node", f"{names[node]}: {counted(len(victims), 'victim')}", victims=shown, node=names[node])
        for node in self._vain:
            detail = f"{names[node]}: what may be preempted there does not make room"
            self._why.step("node-out", detail, node=names[node])

    def _fates(
        self, overlay: Overlay, request: Request, among: list[int], outcome: Outcome
    ) -> Iterable[tuple[int, Fate]]:
        """One verdict a task, from the point of view of one allocation ask."""
        within = self._within
        reasons = fates_on_node(overlay, request) if within is None else fates(overlay, request, within)
        for task, rule in reasons:
            yield task, ("out-of-reach" if rule in OUT_OF_REACH else "protected", rule)
        victims = set(outcome.victims)
        for task in among:
            yield task, ("victim", "makes-room") if task in victims else self._spared(overlay, task, outcome)

    def _spared(self, overlay: Overlay, task: int, outcome: Outcome) -> Fate:
        """The verdict of a candidate that stays."""
        node = int(overlay.state.node[task])
        if task in self._forbidden:
            return "protected", "law-2"
        if self._pool is not None and not self._pool.usable[node]:
            held = any(holding == node for holding, _ in self._pool.held)
            return "out-of-reach", "node-held" if held else "node-closed"
        if node == outcome.node and task in self._taken.get(node, ()):
            return "put-back", "fits-without"
        if node in self._vain or outcome.failed in SEARCHED_IN_VAIN:
            return "not-needed", "makes-no-room"
        return "not-needed", "not-reached"

    def step(self, rule: str, detail: str) -> None:
        """See ``Silent``."""
        self._why.step(rule, detail)

    def blocked(self, blocker: str, changes: Iterable[Change]) -> None:
        """See ``Silent``."""
        self._why.blocked(blocker, *changes)

    def explanation(self, overlay: Overlay, outcomes: Sequence[tuple[Request, Outcome]]) -> Explanation | None:
        """See ``Silent``."""
        self._why.headline(headline(overlay, outcomes))
        if self._overlay is not None:
            for task, (verdict, rule) in sorted(self._final.items()):
                self._candidate(self._overlay, task, verdict, rule)
        return self._why.explanation()

    def _candidate(self, overlay: Overlay, task: int, verdict: Verdict, rule: str) -> None:
        state = overlay.state
        workload, name = state.label(task)
        numbers: dict[str, Any] = {
            "priority": int(state.priority[task]),
            "opted_out": bool(state.flags[task] & OPTED_OUT),
            "originator": bool(state.flags[task] & ORIGINATOR),
            "requests": state.resources.units(state.amounts(task)),
        }
        if verdict == "victim":
            numbers["place"] = self._places[task]
        self._why.candidate(
            verdict, rule, workload, task=name, queue=state.queue_name(task), node=state.tasks[task].node,
            **numbers,
        )  # fmt: skip


def recorder(why: Why) -> Silent:
    """What a search tells itself to."""
    return Recorder(why) if why.on else SILENT


def _left(overlay: Overlay, request: Request, within: Reach) -> tuple[int, Amounts]:
    """What is left of the asking side's guarantee, in what the ask names: of the queue that has a claim, or of the
    asking queue as the released rules see it."""
    queues = overlay.state.configuration
    if queues.rules.keeps_guarantees:
        asking = request.queue if within.claim is None else within.claim
        return asking, {r: overlay.slack[cell] for r, cell in queues.cells[asking].items() if r in request.amounts}
    level = levels(queues, request.queue)[request.queue] or {}
    return request.queue, {r: remaining(level, r, overlay.slack) for r in request.amounts if r in level}


def headline(overlay: Overlay, outcomes: Sequence[tuple[Request, Outcome]]) -> str:
    """The answer to an ask in one sentence."""
    request, last = outcomes[-1]
    ask = request.ask.id
    if last.kind == "wait":
        part = f"task {request.unit + 1} of {request.units}: " if request.units > 1 else ""
        return f"{ask} waits: {part}{last.reason}"
    names = overlay.state.node_names
    nodes = joined(list(dict.fromkeys(names[o.node] for _, o in outcomes if o.node is not None)))
    victims = [task for _, outcome in outcomes for task in outcome.victims]
    if not victims:
        return f"{ask} fits on {nodes} now"
    queues = sorted({overlay.state.queue_name(task) for task in victims})
    held = list(dict.fromkeys(names[o.node] for _, o in outcomes if o.kind == "preempt" and o.node is not None))
    verb = "is" if len(held) == 1 else "are"
    return f"{counted(len(victims), 'task')} of {', '.join(queues)} must go; {joined(held)} {verb} reserved for {ask}"


def under(overlay: Overlay, rules: RuleSet) -> Overlay:
    """The overlay as the other rule set would see it."""
    queues = overlay.state.configuration
    settings = effective(queues.tree, queues.blocks, rules)
    return _with(overlay, replace(queues, rules=rules, settings=settings), overlay.state.limit)


def with_guarantee(overlay: Overlay, queue: int, resource: int, amount: int) -> Overlay:
    """The overlay if ``queue`` were guaranteed ``amount`` steps of ``resource``."""
    queues = overlay.state.configuration
    guaranteed = list(queues.guaranteed)
    guaranteed[queue] = {**(guaranteed[queue] or {}), resource: amount}
    cells, path_cells, owner = cells_of(queues.tree, guaranteed)
    changed = replace(
        queues, guaranteed=guaranteed, cells=cells, path_cells=path_cells, cell_owner=owner,
        guarantee_of=[(guaranteed[q] or {})[r] for q, r in owner],
    )  # fmt: skip
    return _with(overlay, changed, overlay.state.limit)


def with_limit(overlay: Overlay, queue: int, resource: int, amount: int) -> Overlay:
    """The overlay if the limit of ``queue`` were ``amount`` steps of ``resource``."""
    limit = list(overlay.state.limit)
    limit[queue] = {**(limit[queue] or {}), resource: amount}
    return _with(overlay, overlay.state.configuration, limit)


def _with(overlay: Overlay, queues: CompiledConfiguration, limit: list[Amounts | None]) -> Overlay:
    twin = overlay.copy()
    twin.state = overlay.state.with_configuration(queues, limit)
    twin.slack = slack_of(queues, twin.allocated, twin.preempting)
    return twin


MOST_TRIED = 12
"""Quota changes that are tried for one ask."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """What was found for an ask: under the other rule set, by which differences, and the changes that let it in."""

    twin: Overlay
    theirs: Outcome | None
    differences: list[Difference]
    changes: list[Change]


class Comparisons:
    """Comparisons of one question: which difference between the rule sets decided, and what would have let the ask in.

    Both are found by deciding again, silently, on a changed copy of the overlay; so what is claimed was tried. Asks
    that are alike, but for their names, are compared once while nobody changes the overlay: of thousands that wait
    alike each would find the same."""

    def __init__(self) -> None:
        self._known: dict[object, _Compared] = {}

    def forget(self) -> None:
        """The overlay is no longer what it was."""
        self._known.clear()

    def compare(self, overlay: Overlay, request: Request, context: Context, outcome: Outcome, record: Silent) -> None:
        """Record the difference that decided, and the smallest change for an ask that waits. ``overlay``: before it."""
        alike = _likeness(overlay, request)
        comparison = self._known.get(alike)
        if comparison is None:
            comparison = self._known[alike] = _compared(overlay, request, context, outcome)
        if comparison.theirs is not None:
            mine = overlay.state.configuration.rules
            detail = f"{mine.other.name} rules: {headline(comparison.twin, [(request, comparison.theirs)])}"
            for difference in comparison.differences:
                _tell(record, difference, mine, detail)
        if outcome.kind == "wait":
            record.step(outcome.failed or "", outcome.reason)
            record.blocked(outcome.reason, comparison.changes)


def _likeness(overlay: Overlay, request: Request) -> object:
    """All that an outcome depends on; an ask that holds a node is like no other."""
    if any(held.ask.id == request.ask.id for holders in overlay.held.values() for held in holders):
        return request.ask.id
    ask = encode(structs.replace(request.ask, id="", uid=None, tasks=[]))
    task = encode(structs.replace(request.task, name="", uid=None))
    attempts_left = overlay.attempts[request.queue] < ATTEMPTS
    running = overlay.state.application(request.application)
    return ask, task, running, request.priority, request.created, attempts_left


def _compared(overlay: Overlay, request: Request, context: Context, outcome: Outcome) -> _Compared:
    changes = list(_changes(overlay, request, context)) if outcome.kind == "wait" else []
    alike = not overlay.held and not over_limit_of_nothing(overlay, request)
    if outcome.kind == "admit" and not outcome.attempted and alike:
        return _Compared(overlay, None, [], changes)  # room is room to both, where nobody waits for some
    mine = overlay.state.configuration.rules
    twin = under(overlay, mine.other)
    theirs = decide(twin, request, context, SILENT)
    if (outcome.kind, outcome.node, sorted(outcome.victims)) == (theirs.kind, theirs.node, sorted(theirs.victims)):
        return _Compared(twin, None, [], changes)
    outcomes = {mine.name: outcome, mine.other.name: theirs}
    differences = list(_that_apply(overlay, twin, request, **outcomes)) or [configuration.NODE_CHOICE]
    return _Compared(twin, theirs, differences, changes)


def _tell(record: Silent, difference: Difference, rules: RuleSet, detail: str) -> None:
    record.step(difference.rule, f"{rules.name} rules: {difference.of(rules)}; {detail}")


def _that_apply(
    overlay: Overlay, twin: Overlay, request: Request, documented: Outcome, shipped: Outcome
) -> Iterator[Difference]:
    """The named differences that the two outcomes show."""
    state = overlay.state
    if request.required is not None:
        yield configuration.REQUIRED_NODE
    if (documented.failed == "too-young") != (shipped.failed == "too-young"):
        yield configuration.PARENT_DELAY
    policies = [
        (a.preemption_policy, b.preemption_policy)
        for a, b in zip(state.configuration.settings, twin.state.configuration.settings, strict=True)
    ]
    if any(a != b for a, b in policies):
        yield configuration.ROOT_POLICY
    if levels(state.configuration, request.queue) != levels(twin.state.configuration, request.queue):
        yield configuration.ANCESTRY
    if (documented.failed == "queue-guarantees") != (shipped.failed == "queue-guarantees"):
        yield configuration.ASK_GUARANTEE
    if shipped.victims and request.required is None:
        yield from _of_victims(overlay, request, documented, shipped)
    if over_limit_of_nothing(overlay, request):
        yield configuration.NOTHING_ASKED
    if shipped.failed == "shortfall":
        yield configuration.FREE_SPACE


def _of_victims(overlay: Overlay, request: Request, documented: Outcome, shipped: Outcome) -> Iterator[Difference]:
    state = overlay.state
    if not Allowance(state, law_2_slack(overlay, request)).let_together(shipped.victims):
        yield configuration.VICTIM_GUARANTEE
    running = state.application(request.application)
    if any(int(state.workload[task]) == running for task in shipped.victims):
        yield configuration.SAME_APPLICATION
    opted_out = [bool(state.flags[task] & OPTED_OUT) for task in shipped.victims]
    if any(opted_out) and not any(state.flags[task] & OPTED_OUT for task in documented.victims):
        yield configuration.OPTED_OUT
    if any(int(state.node[task]) != shipped.node for task in shipped.victims):
        yield configuration.ONE_NODE
    elif documented.node == shipped.node and documented.victims != shipped.victims:
        yield configuration.FREE_SPACE


def _changes(overlay: Overlay, request: Request, context: Context) -> Iterator[Change]:
    """Single quotas that, raised this far, would let the ask in or make room for it; each was tried."""
    state = overlay.state
    for q, r, field, current, needed in islice(_raises(overlay, request), MOST_TRIED):
        changed = with_limit if field == "limit" else with_guarantee
        if decide(changed(overlay, q, r, needed), request, context, SILENT).kind != "wait":
            name = state.resources.names[r]
            queue = state.configuration.tree.names[q]
            yield Change(
                queue=queue, resource=name, field=field, current=None if current is None else units(current, name),
                needed=units(needed, name), detail=f"{field} of {name} in {queue}",
            )  # fmt: skip


def _raises(overlay: Overlay, request: Request) -> Iterator[tuple[int, int, str, int | None, int]]:
    """(queue, resource, field, current, needed): the asking queue's guarantee, and limits on the path in the way.

    The documented rules want the queue under its guarantee, the released ones room for the whole ask.
    """
    state, own = overlay.state, request.queue
    ceiling = path_limits(state, own)[own]
    names = state.resources.names
    for r in sorted((r for r in request.needs if r < len(names)), key=names.__getitem__):
        amount = request.needs[r]
        held = (state.configuration.guaranteed[own] or {}).get(r)
        needed = overlay.used_after(own, r, request) + (1 if state.configuration.rules.keeps_guarantees else amount)
        if (held is None or needed > held) and needed <= ceiling.get(r, needed):
            yield own, r, "guaranteed", held, needed
        for q in state.configuration.paths[own][:-1]:
            most = (state.limit[q] or {}).get(r)
            if most is not None and overlay.used(q, r) + amount > most:
                yield q, r, "limit", most, overlay.used(q, r) + amount
