"""What stands most in the way of an ask that waits, and what it would take to let it in."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from app.solver.compiled import ROOTLESS
from app.solver.engines.kueue import nodes
from app.solver.engines.kueue.configuration import Field
from app.solver.engines.kueue.cycle import demands
from app.solver.engines.kueue.nodes import WORDS
from app.solver.engines.kueue.nomination import CycleUsage, Entry, Mode, Nomination
from app.solver.engines.kueue.overlay import Overlay, Usage
from app.solver.kubernetes import PODS
from app.solver.model.base import units
from app.solver.model.decision import Change

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
            edits = filter(None, map(trial.least, _edits(overlay, nomination, fr, need)))
            # Against what is wanted: steps of different resources do not compare.
            single += [((edit.value - edit.current) / demand[fr], edit) for edit in edits]
        elif short and not together and len(short) <= _MOST_TOGETHER:
            joint = [next(_nominal(overlay, nomination, fr, need)) for fr, need in short.items()]
            together = joint if trial.lets_in(joint) else []
    if single:
        best = sorted(single, key=lambda pair: pair[0])
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
        nomination = self._nomination.elsewhere(self._overlay.imagine(usage))
        return nomination.assignment.mode is Mode.FIT or bool(nomination.targets)


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
    lowest, gathered, tightest = None, 0, queue
    while (above := quotas.tree.parent[node]) != ROOTLESS:
        cell = quotas.cells[node][fr]
        own, limit = quotas.local[cell], quotas.borrowing[cell]
        gathered += max(0, own - used[cell])
        if limit is not None:
            cap = gathered + quotas.subtree[cell] - own - max(0, used[cell] - own) + limit
            if lowest is None or cap < lowest:
                lowest, tightest = cap, node
        node = above
    cell = quotas.cells[node][fr]
    if lowest is None or gathered + quotas.subtree[cell] - used[cell] <= lowest:
        of = "its own quota" if node == queue else f"what cohort {names[node]} has in all"
        return f"{of} is used up"
    return f"the borrowing limit of {names[tightest]} is reached"


_MOST_NAMED = 3


def sentence(overlay: Overlay, nomination: Nomination, rules: Mapping[int, str], cycle_usage: CycleUsage | None) -> str:
    """What is short, and who holds it. ``rules``: what the search said of whom, by workload; ``cycle_usage``: what
    earlier heads of the cycle took."""
    queue, usage = nomination.preemptor.queue, overlay.usage
    lacks = [
        (amount - usage.available(queue, fr), fr, amount)
        for demand in demands(overlay, nomination)
        for fr, amount in demand.items()
        if amount > usage.available(queue, fr)
    ]
    if not lacks:
        reasons = [*nomination.assignment.lacking, *nodes.in_the_way(overlay, nomination, rules, cycle_usage)]
        reasons = reasons or ["nothing is short, but nobody may be preempted"]
        return "; ".join([*reasons, *nodes.easier_places(overlay, nomination)])
    # The largest lack, against what was wanted: steps of different resources do not compare.
    short, fr, amount = max(lacks, key=lambda lack: (lack[0] / lack[2], -lack[1]))
    resource, most = usage.quotas.frs[fr][1], usage.quotas.potential_available(queue, fr)
    text = f"{overlay.fr_name(fr)}: {units(short, resource)} more needed; "
    if amount > most:
        return f"{text}even with nothing running the queue could have {units(most, resource)} at most"
    before = [] if cycle_usage is None else _in_the_way(cycle_usage, nomination, fr)
    earlier = f"; {_booked(cycle_usage, before, fr)} in this cycle" if cycle_usage is not None and before else ""
    return text + bottleneck(overlay, queue, fr) + _holders(overlay, fr, rules) + earlier


def _holders(overlay: Overlay, fr: int, rules: Mapping[int, str]) -> str:
    """Whose usage of what is short could not be had, by the rule that accounts for most of it."""
    held: dict[str, tuple[int, int]] = {}
    for workload, rule in rules.items():
        amount = dict(overlay.state.amounts(workload)).get(fr, 0)
        if rule in WORDS and amount:
            total, count = held.get(rule, (0, 0))
            held[rule] = (total + amount, count + 1)
    if not held:
        return ""
    rule, (total, count) = max(held.items(), key=lambda item: (item[1], item[0]))
    resource = overlay.usage.quotas.frs[fr][1]
    return f"; most of it ({units(total, resource)} in {count} workload(s)) {WORDS[rule]}"


def outrun(cycle_usage: CycleUsage, head: Nomination) -> str:
    """A head that fitted until earlier heads of the cycle took their part."""
    queue = head.preemptor.queue

    def shortest() -> tuple[int, int] | None:
        usage = cycle_usage.overlay.usage
        lacks = [(amount - usage.available(queue, fr), fr) for fr, amount in head.preemptor.request]
        # Against what was wanted: steps of different resources do not compare.
        wanted = dict(head.preemptor.request)
        return max(
            ((lack, fr) for lack, fr in lacks if lack > 0),
            key=lambda lack: (lack[0] / wanted[lack[1]], -lack[1]),
            default=None,
        )

    lacks_most = cycle_usage.without(head, shortest)
    if lacks_most is None:
        if cycle_usage.fits(head) == "nodes":
            return "nodes that it counted on are taken by earlier heads of this cycle"
        return "earlier heads of this cycle changed what it counted on"
    lack, fr = lacks_most
    resource = cycle_usage.overlay.usage.quotas.frs[fr][1]
    text = f"{cycle_usage.overlay.fr_name(fr)}: {units(lack, resource)} more needed once all victims are gone"
    if resource == PODS:
        text += ", and Kueue's search for victims does not count pods"
    before = _in_the_way(cycle_usage, head, fr)
    return f"{text}; {_booked(cycle_usage, before, fr)} before it in this cycle" if before else text


def overlapping(cycle_usage: CycleUsage, head: Nomination) -> str:
    """A head whose victims stop for others already."""
    return f"{_leaving(cycle_usage, {workload for workload, _ in head.targets})} already"


def deferred(cycle_usage: CycleUsage, head: Nomination) -> str:
    """A head that fits once everybody has stopped who stops for earlier heads of its cohorts."""
    root, queues = _root(cycle_usage, head), cycle_usage.overlay.state.queue
    configuration = cycle_usage.overlay.state.configuration
    leaving = {workload for workload in cycle_usage.victims if configuration.root[int(queues[workload])] == root}
    return f"{_leaving(cycle_usage, leaving)}; it fits once that is done"


def _root(cycle_usage: CycleUsage, head: Nomination) -> int:
    return cycle_usage.overlay.state.configuration.root[head.preemptor.queue]


def _leaving(cycle_usage: CycleUsage, workloads: set[int]) -> str:
    parts: list[str] = []
    for entry in cycle_usage.entries:
        names = [cycle_usage.overlay.state.workloads[w].id for w in entry.victims if w in workloads]
        if names:
            parts.append(f"{_listed(names)} stop{'s' if len(names) == 1 else ''} for {entry.ask}")
    return _listed(parts)


def _in_the_way(cycle_usage: CycleUsage, head: Nomination, fr: int) -> list[Entry]:
    """The earlier heads of the cycle without which more of ``fr`` would be available; all that took some of it where
    no single one makes a difference."""
    usage, queue, root = cycle_usage.overlay.usage.copy(), head.preemptor.queue, _root(cycle_usage, head)
    roots = cycle_usage.overlay.state.configuration.root
    took = [e for e in cycle_usage.entries if roots[e.queue] == root and dict(e.amounts).get(fr, 0) > 0]
    before, out = usage.available_cell(usage.quotas.cells[queue][fr]), list[Entry]()
    for entry in took:
        part = ((fr, dict(entry.amounts)[fr]),)
        usage.remove(entry.queue, part)
        if usage.available_cell(usage.quotas.cells[queue][fr]) > before:
            out.append(entry)
        usage.add(entry.queue, part)
    return out or took


def _booked(cycle_usage: CycleUsage, entries: Sequence[Entry], fr: int) -> str:
    resource = cycle_usage.overlay.usage.quotas.frs[fr][1]
    total = sum(dict(entry.amounts)[fr] for entry in entries)
    return f"{_listed([entry.ask for entry in entries])} took {units(total, resource)}"


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        shown.append(f"{len(names) - _MOST_NAMED} more")
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))
