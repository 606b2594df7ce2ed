"""Preemption for an ask that must run on one node, a DaemonSet pod (YuniKorn: required_node_preemptor.go)."""

from collections.abc import Iterator

from app.solver.engines.yunikorn.candidates import Keeper, Silent
from app.solver.engines.yunikorn.configuration import Amounts
from app.solver.engines.yunikorn.overlay import Overlay, Request
from app.solver.engines.yunikorn.room import Needs, path_needs, without_superfluous
from app.solver.engines.yunikorn.state import OPTED_OUT, ORIGINATOR

_Order = tuple[bool, bool, int, int]
"""An originator, else opted out; priority; age negated."""
_INSERTION = 20
"""Longest run that Go's stable sort sorts by insertion."""


def candidates(overlay: Overlay, request: Request) -> list[int]:
    """Tasks on the node that may go: plain, opted-out, originators; then least priority, newest, smaller.

    For an ask that must run on the node there is no delay, no guarantee and no fence; its own Never does not hold
    either."""
    state = overlay.state
    assert request.required is not None
    spares = state.configuration.rules.spares_application
    on_node: list[int] = state.tasks_on(request.required).tolist()
    found = [
        task
        for task in on_node
        if state.eligible[task]
        and not (overlay.gone is not None and overlay.gone[task])
        and int(state.priority[task]) <= request.priority
        and any(r in request.amounts for r in state.amounts(task))
        and not (spares and int(state.workload[task]) == request.workload)
    ]
    found.sort(key=lambda task: state.tasks[task].name)
    groups: dict[_Order, list[int]] = {}
    for task in found:
        groups.setdefault(_order(overlay, task), []).append(task)
    return [task for key in sorted(groups) for task in _smaller_first(overlay, groups[key])]


def fates(overlay: Overlay, request: Request) -> Iterator[tuple[int, str]]:
    """Every task that is no candidate, and the rule that keeps it; for explanations."""
    of = keeper(overlay, request)
    return ((task, rule) for task in range(overlay.state.task_count) if (rule := of(task)) is not None)


def keeper(overlay: Overlay, request: Request) -> Keeper:
    """The rule that keeps each task, worked out when it is asked for."""
    state, open_ = overlay.state, set(candidates(overlay, request))

    def of(task: int) -> str | None:
        if task in open_:
            return None
        if int(state.node[task]) != request.required:
            return "on-another-node"
        if state.tasks[task].required_node is not None:
            return "bound-to-its-node"
        if state.tasks[task].state != "running" or (overlay.gone is not None and overlay.gone[task]):
            return "already-leaving"
        if int(state.priority[task]) > request.priority:
            return "higher-priority"
        return "same-application" if any(r in request.amounts for r in state.amounts(task)) else "no-common-resource"

    return of


def _order(overlay: Overlay, task: int) -> _Order:
    state = overlay.state
    flags = int(state.flags[task])
    originator = bool(flags & ORIGINATOR)
    opted_out = not originator and bool(flags & OPTED_OUT)
    return originator, opted_out, int(state.priority[task]), -state.created(task)


def _smaller_first(overlay: Overlay, group: list[int]) -> list[int]:
    """Equals by type, priority and age, given in the order of their names.

    YuniKorn's comparison says "less" both ways for requests that are equal or can't be compared, so that its
    stable sort turns their order round: a task moves before everybody it is not strictly larger than. That is
    repeated here where Go sorts by insertion; beyond, smaller sums come first.
    """
    state = overlay.state
    if len(group) > _INSERTION:
        backwards = list(reversed(group))
        return sorted(backwards, key=lambda task: sum(state.amounts(task).values()))
    out: list[int] = []
    for task in group:
        at = len(out)
        while at and not _larger(state.amounts(task), state.amounts(out[at - 1])):
            at -= 1
        out.insert(at, task)
    return out


def _larger(left: Amounts, right: Amounts) -> bool:
    """More in some resource and less in none."""
    gaps = [left.get(r, 0) - right.get(r, 0) for r in {**left, **right}]
    return any(gap > 0 for gap in gaps) and all(gap >= 0 for gap in gaps)


def shipped(overlay: Overlay, request: Request, record: Silent) -> list[int] | None:
    """Collect until the victims alone cover the ask; accept if victims and free space do. None: nobody goes."""
    state, ask = overlay.state, request.amounts
    assert request.required is not None
    total: Amounts = {}
    victims: list[int] = []
    everybody = candidates(overlay, request)
    record.searching(overlay, request, None, everybody)
    for task in everybody:
        if all(total.get(r, 0) >= amount for r, amount in ask.items()):
            break
        victims.append(task)
        for r, amount in state.amounts(task).items():
            total[r] = total.get(r, 0) + amount
    free = overlay.free[request.required].tolist()
    covered = all(total.get(r, 0) + (free[r] if r < len(free) else 0) >= amount for r, amount in ask.items())
    found = victims if victims and covered else None
    record.searched(request.required, victims, found)
    return found


def documented(overlay: Overlay, request: Request, record: Silent) -> list[int] | None:
    """The same order beside free space; opted-out tasks only when nothing else makes room; nobody superfluous."""
    assert request.required is not None
    needs = path_needs(overlay, request).on(overlay, request, request.required)
    everybody = candidates(overlay, request)
    record.searching(overlay, request, None, everybody)
    opted_in = [task for task in everybody if not int(overlay.state.flags[task]) & OPTED_OUT]
    for among in (opted_in, everybody):
        taken = _collect(needs, among)
        found = None if taken is None else without_superfluous(needs, taken)
        record.searched(request.required, taken or (), found)
        if found is not None:
            return found
    return None


def _collect(needs: Needs, among: list[int]) -> list[int] | None:
    """Who is taken, in order, until the ask fits; None when it never does."""
    taken: list[int] = []
    missing = [need.amount for need in needs.of]
    for task in among:
        if all(lack <= 0 for lack in missing):
            break
        taken.append(task)
        missing = [lack - help_ for lack, help_ in zip(missing, needs.help_of(task), strict=True)]
    return taken if taken and all(lack <= 0 for lack in missing) else None
