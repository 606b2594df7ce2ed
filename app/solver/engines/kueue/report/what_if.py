"""What it would take to let a waiting ask in: the smallest change of one quota or limit, found by trying.

Every change named here has been tried: the ask is nominated again under quotas that differ in that one number and
nothing else, and either fits or finds victims. Where one change is not enough (several resources are short) all the
changes that are needed together are named. Only explanations ask for this; no decision does.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from msgspec.structs import replace as struct_replace

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.kueue.compile.quota import Field
from app.solver.engines.kueue.compile.usage import Usage
from app.solver.engines.kueue.decide.flavors.modes import Mode
from app.solver.engines.kueue.decide.nominate import demands
from app.solver.engines.kueue.decide.nomination import Nomination
from app.solver.engines.kueue.decide.overlay import Overlay
from app.solver.engines.kueue.topology.placement import PodSet
from app.solver.model.decision import Change
from app.solver.model.quantity import units

_ON_THE_WIRE: dict[Field, str] = {
    "nominal": "guaranteed", "borrowing": "borrowing_limit", "lending": "lending_limit",
}  # fmt: skip
_MOST_SHOWN = 5
_MOST_TOGETHER = 16
_EFFORT = 150_000


@dataclass(frozen=True, slots=True)
class _Edit:
    """``node``'s limit of ``fr`` becomes ``value`` steps. ``current`` None: it has none."""

    node: int
    fr: int
    field: Field
    current: int
    value: int


def smallest_changes(overlay: Overlay, nomination: Nomination) -> list[Change]:
    """The smallest changes that would each let the ask in, smallest first; or those that would only do so together."""
    trial = _Trial(overlay, nomination)
    single: list[tuple[float, _Edit]] = []
    together: list[_Edit] = []
    for demand in demands(overlay, nomination):
        short = {fr: need for fr, amount in demand.items() if (need := amount - _room(overlay, nomination, fr)) > 0}
        if len(short) == 1:
            ((fr, need),) = short.items()
            found = filter(None, map(trial.least, _edits(overlay, nomination, fr, need)))
            # Against what is wanted: steps of different resources do not compare.
            single += [((edit.value - edit.current) / demand[fr], edit) for edit in found]
        elif short and not together and len(short) <= _MOST_TOGETHER:
            joint = [next(_nominal(overlay, nomination, fr, need)) for fr, need in short.items()]
            together = joint if trial.lets_in(joint) else []
    if single:
        best = sorted(single, key=lambda found: found[0])
        return [_as_change(overlay, edit, "this alone lets the ask in") for _, edit in best[:_MOST_SHOWN]]
    return [_as_change(overlay, edit, "together with the others lets the ask in") for edit in together]


def _room(overlay: Overlay, nomination: Nomination, fr: int) -> int:
    """What is available, negative where usage is past the quotas."""
    usage = overlay.usage
    return usage.available_cell(usage.quotas.cells[nomination.preemptor.queue][fr])


def _edits(overlay: Overlay, nomination: Nomination, fr: int, need: int) -> Iterator[_Edit]:
    """Changes that could bring ``need`` more steps: limits on borrowing first, for they need no new capacity."""
    quotas, configuration = overlay.usage.quotas, overlay.state.configuration
    path = configuration.tree.path(nomination.preemptor.queue)
    for node in path[:-1]:
        limit = quotas.borrowing[quotas.cells[node][fr]]
        if limit is not None:
            yield _Edit(node, fr, "borrowing", limit, limit + need)
    yield from _lenders(overlay, path, fr, need)
    yield from _nominal(overlay, nomination, fr, need)
    for cohort in path[1:]:
        nominal = quotas.nominal[quotas.cells[cohort][fr]]
        yield _Edit(cohort, fr, "nominal", nominal, nominal + need)


def _nominal(overlay: Overlay, nomination: Nomination, fr: int, need: int) -> Iterator[_Edit]:
    queue, quotas = nomination.preemptor.queue, overlay.usage.quotas
    nominal = quotas.nominal[quotas.cells[queue][fr]]
    yield _Edit(queue, fr, "nominal", nominal, nominal + need)


def _lenders(overlay: Overlay, path: list[int], fr: int, need: int) -> Iterator[_Edit]:
    """The node beside the path that keeps most to itself of what it does not use."""
    quotas, used = overlay.usage.quotas, overlay.usage.used
    best: tuple[int, _Edit] | None = None
    for below, cohort in pairwise(path):
        for node in quotas.tree.children[cohort]:
            cell = quotas.cells[node].get(fr)
            limit = None if cell is None else quotas.lending[cell]
            if cell is None or limit is None or node == below:
                continue
            spare = quotas.local[cell] - used[cell]
            if spare >= need and (best is None or spare > best[0]):
                best = (spare, _Edit(node, fr, "lending", limit, limit + need))
    if best is not None:
        yield best[1]


class _Trial:
    """Nominates the ask again under other quotas. The effort is bounded: large states are tried less often."""

    def __init__(self, overlay: Overlay, nomination: Nomination) -> None:
        self._overlay = overlay
        self._nomination = nomination
        size = 1000 + len(overlay.state.workloads) + len(overlay.usage.quotas.node)
        self._left = max(8, _EFFORT // size)

    def least(self, edit: _Edit) -> _Edit | None:
        """The smallest value found that lets the ask in, by bisection below ``edit.value``; None when even that does
        not. A smaller value may do where it makes preemption possible, not only where it makes the ask fit."""
        if not self.lets_in([edit]):
            return None
        low, high = edit.current, edit.value
        while high - low > 1 and self._left > 0:
            middle = (low + high) // 2
            if self.lets_in([replace(edit, value=middle)]):
                high = middle
            else:
                low = middle
        return replace(edit, value=high)

    def lets_in(self, edits: list[_Edit]) -> bool:
        """Whether the ask fits or finds victims with these changes made."""
        self._left -= 1
        usage: Usage = self._overlay.usage
        for edit in edits:
            usage = usage.under(usage.quotas.changed(edit.node, edit.fr, edit.field, edit.value), edit.fr)
        found = self._nomination.elsewhere(self._overlay.imagine(usage))
        return found.assignment.mode is Mode.FIT or bool(found.targets)


def _as_change(overlay: Overlay, edit: _Edit, detail: str) -> Change:
    quotas = overlay.usage.quotas
    flavor, resource = quotas.frs[edit.fr]
    return Change(
        queue=quotas.tree.names[edit.node], flavor=flavor, resource=resource, field=_ON_THE_WIRE[edit.field],
        current=units(edit.current, resource), needed=units(edit.value, resource), detail=detail,
    )  # fmt: skip


def bottleneck(overlay: Overlay, queue: int, fr: int) -> str:
    """Which limit on the way up keeps the queue from more of ``fr`` at this moment."""
    usage = overlay.usage
    quotas, used = usage.quotas, usage.used
    names, node = quotas.tree.names, queue
    lowest, gathered, at = None, 0, queue
    while (above := quotas.tree.parent[node]) != ROOTLESS:
        cell = quotas.cells[node][fr]
        kept, limit = quotas.local[cell], quotas.borrowing[cell]
        gathered += max(0, kept - used[cell])
        if limit is not None:
            cap = gathered + quotas.subtree[cell] - kept - max(0, used[cell] - kept) + limit
            if lowest is None or cap < lowest:
                lowest, at = cap, node
        node = above
    cell = quotas.cells[node][fr]
    if lowest is None or gathered + quotas.subtree[cell] - used[cell] <= lowest:
        of = "its own quota" if node == queue else f"what cohort {names[node]} has in all"
        return f"{of} is used up"
    return f"the borrowing limit of {names[at]} is reached"


def easier_places(overlay: Overlay, nomination: Nomination) -> list[str]:
    """What its pods could ask for instead to find places as things are, in one sentence each; nothing where they find
    them, or where quota is short as well. Each has been tried."""
    pod_sets, preemptor = nomination.assignment.pod_sets, nomination.preemptor
    if overlay.room is None or not pod_sets or not overlay.usage.fits(preemptor.queue, preemptor.request):
        return []
    _, misfit = overlay.place(pod_sets)
    if misfit is None:
        return []
    at = next(i for i, (_, of) in enumerate(pod_sets) if of.task.name == misfit.task)
    flavor, of = pod_sets[at]

    def fits(other: PodSet) -> bool:
        return overlay.place((*pod_sets[:at], (flavor, other), *pod_sets[at + 1 :]))[1] is None

    found: list[str] = []
    name, request = of.task.name, of.request
    if request is not None and request.required is not None:
        level = request.required
        if fits(replace(of, request=struct_replace(request, required=None, preferred=level))):
            found.append(f"{name} fits now with {level} preferred, not required")
        levels = overlay.room.rooms.forests[flavor].levels
        above = levels[: levels.index(level)] if level in levels else ()
        wider = next(
            (up for up in reversed(above) if fits(replace(of, request=struct_replace(request, required=up)))), None
        )
        if wider is not None:
            found.append(f"{name} fits now within one {wider}")
    few, many = 0, of.count
    while many - few > 1:  # of counts only whole slices and their likes differ, and more is never easier
        middle = (few + many) // 2
        few, many = (middle, many) if fits(replace(of, count=middle)) else (few, middle)
    if few:
        found.append(f"{few} of the {of.count} pods of {name} fit now")
    return found
