"""Why, in comparison: which difference between the rule sets decided, and what would have let the ask in.

Both are found by deciding again, silently, on a changed copy of the overlay; so what is claimed was tried.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from msgspec import structs
from msgspec.json import encode

from app.solver.engines.yunikorn.compile import rule_sets
from app.solver.engines.yunikorn.compile.rule_sets import Difference, RuleSet
from app.solver.engines.yunikorn.compile.state import OPTED_OUT
from app.solver.engines.yunikorn.decide.ask import ATTEMPTS, Context, decide
from app.solver.engines.yunikorn.decide.outcome import Outcome
from app.solver.engines.yunikorn.decide.overlay import Overlay
from app.solver.engines.yunikorn.decide.record import SILENT, Silent
from app.solver.engines.yunikorn.decide.request import Request
from app.solver.engines.yunikorn.decide.victims.candidates import path_limits
from app.solver.engines.yunikorn.decide.victims.guarantee import levels
from app.solver.engines.yunikorn.decide.victims.laws import Allowance, law_2_slack
from app.solver.engines.yunikorn.report import what_if
from app.solver.engines.yunikorn.report.explain import headline
from app.solver.model.quantity import units
from app.solver.model.trace import Change

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
    """Comparisons of one question. Asks that are alike, but for their names, are compared once while nobody changes
    the overlay: of thousands that wait alike each would find the same."""

    def __init__(self) -> None:
        self._known: dict[object, _Compared] = {}

    def forget(self) -> None:
        """The overlay is no longer what it was."""
        self._known.clear()

    def compare(self, overlay: Overlay, request: Request, context: Context, outcome: Outcome, record: Silent) -> None:
        """Record the difference that decided, and the smallest change for an ask that waits. ``overlay``: before it."""
        alike = _likeness(overlay, request)
        found = self._known.get(alike)
        if found is None:
            found = self._known[alike] = _compared(overlay, request, context, outcome)
        if found.theirs is not None:
            mine = overlay.state.configuration.rules
            detail = f"{_other(mine)} rules: {headline(found.twin, [(request, found.theirs)])}"
            for difference in found.differences:
                _tell(record, difference, mine, detail)
        if outcome.kind == "wait":
            record.step(outcome.failed or "", outcome.reason)
            record.blocked(outcome.reason, found.changes)


def _likeness(overlay: Overlay, request: Request) -> object:
    """All that an outcome depends on; an ask that holds a node is like no other."""
    if any(held.ask.id == request.ask.id for holders in overlay.held.values() for held in holders):
        return request.ask.id
    ask = encode(structs.replace(request.ask, id="", uid=None, tasks=[]))
    task = encode(structs.replace(request.task, name="", uid=None))
    attempts_left = overlay.attempts[request.queue] < ATTEMPTS
    return ask, task, request.workload, request.priority, request.created, attempts_left


def _compared(overlay: Overlay, request: Request, context: Context, outcome: Outcome) -> _Compared:
    changes = list(_changes(overlay, request, context)) if outcome.kind == "wait" else []
    if outcome.kind == "admit" and not outcome.attempted and not overlay.held:
        return _Compared(overlay, None, [], changes)  # room is room to both, where nobody waits for some
    mine = overlay.state.configuration.rules
    twin = what_if.under(overlay, _other(mine))
    theirs = decide(twin, request, context, SILENT)
    if (outcome.kind, outcome.node, sorted(outcome.victims)) == (theirs.kind, theirs.node, sorted(theirs.victims)):
        return _Compared(twin, None, [], changes)
    documented, shipped = (outcome, theirs) if mine == "documented" else (theirs, outcome)
    found = list(_that_apply(overlay, twin, request, documented, shipped)) or [rule_sets.NODE_CHOICE]
    return _Compared(twin, theirs, found, changes)


def _other(rules: RuleSet) -> RuleSet:
    return "shipped" if rules == "documented" else "documented"


def _tell(record: Silent, difference: Difference, rules: RuleSet, detail: str) -> None:
    text = difference.documented if rules == "documented" else difference.shipped
    record.step(difference.rule, f"{rules} rules: {text}; {detail}")


def _that_apply(
    overlay: Overlay, twin: Overlay, request: Request, documented: Outcome, shipped: Outcome
) -> Iterator[Difference]:
    """The named differences that the two outcomes show."""
    state = overlay.state
    if request.required is not None:
        yield rule_sets.REQUIRED_NODE
    if (documented.failed == "too-young") != (shipped.failed == "too-young"):
        yield rule_sets.PARENT_DELAY
    policies = [
        (a.preemption_policy, b.preemption_policy)
        for a, b in zip(state.configuration.settings, twin.state.configuration.settings, strict=True)
    ]
    if any(a != b for a, b in policies):
        yield rule_sets.ROOT_POLICY
    if levels(state.configuration, request.queue) != levels(twin.state.configuration, request.queue):
        yield rule_sets.ANCESTRY
    if (documented.failed == "queue-guarantees") != (shipped.failed == "queue-guarantees"):
        yield rule_sets.ASK_GUARANTEE
    if shipped.victims and request.required is None:
        yield from _of_victims(overlay, request, documented, shipped)
    if shipped.failed == "shortfall":
        yield rule_sets.FREE_SPACE


def _of_victims(overlay: Overlay, request: Request, documented: Outcome, shipped: Outcome) -> Iterator[Difference]:
    state = overlay.state
    if not Allowance(state, law_2_slack(overlay, request)).let_together(shipped.victims):
        yield rule_sets.VICTIM_GUARANTEE
    if any(int(state.workload[task]) == request.workload for task in shipped.victims):
        yield rule_sets.SAME_APPLICATION
    opted_out = [bool(state.flags[task] & OPTED_OUT) for task in shipped.victims]
    if any(opted_out) and not any(state.flags[task] & OPTED_OUT for task in documented.victims):
        yield rule_sets.OPTED_OUT
    if any(int(state.node[task]) != shipped.node for task in shipped.victims):
        yield rule_sets.ONE_NODE
    elif documented.node == shipped.node and documented.victims != shipped.victims:
        yield rule_sets.FREE_SPACE


def _changes(overlay: Overlay, request: Request, context: Context) -> Iterator[Change]:
    """Single quotas that, raised this far, would let the ask in or make room for it; each was tried."""
    state = overlay.state
    for q, r, field, current, needed in islice(_raises(overlay, request), MOST_TRIED):
        changed = what_if.with_limit if field == "limit" else what_if.with_guarantee
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
        needed = overlay.used_after(own, r, request) + (1 if state.configuration.rules == "documented" else amount)
        if (held is None or needed > held) and needed <= ceiling.get(r, needed):
            yield own, r, "guaranteed", held, needed
        for q in state.configuration.paths[own][:-1]:
            most = (state.limit[q] or {}).get(r)
            if most is not None and overlay.used(q, r) + amount > most:
                yield q, r, "limit", most, overlay.used(q, r) + amount
