"""What stands most in the way of an ask that waits, in one sentence."""

from collections.abc import Iterable, Sequence

from app.solver.engines.kueue.compile.amounts import PODS
from app.solver.engines.kueue.decide.booking import Books, Entry
from app.solver.engines.kueue.decide.nominate import demands
from app.solver.engines.kueue.decide.nomination import Nomination
from app.solver.engines.kueue.decide.overlay import Overlay
from app.solver.engines.kueue.report.protection import fr_name
from app.solver.engines.kueue.report.what_if import bottleneck, easier_places
from app.solver.model.decision import Candidate
from app.solver.model.quantity import units

_MOST_NAMED = 3
_WORDS = {
    "priority": "has a priority that the policy does not let the ask preempt",
    "not-newer": "has the ask's priority and is not newer",
    "within-nominal": "runs in queues that are within their quota",
    "within-cluster-queue-never": "runs in the ask's own queue, where withinClusterQueue is Never",
    "reclaim-within-cohort-never": "runs in other queues, and reclaimWithinCohort is Never",
    "not-preemptible": "is marked as not preemptible",
    "own-workload": "belongs to the ask itself",
    "already-leaving": "stops for another ask already",
    "ask-would-borrow": "could only go for an ask that does not borrow",
    "queue-back-within-quota": "is in queues that would be back within quota before the ask fits",
    "share-too-low": "is in queues whose share is not high enough against the ask's",
    "not-enough": "could go, but all of it together is not enough",
    "preemption-policy-never": "could only go for an ask that preempts",
    "waits-before-preempting": "could only go for an ask that has waited longer",
}


def sentence(overlay: Overlay, nomination: Nomination, told: Iterable[Candidate], books: Books | None) -> str:
    """What is short, and who holds it; ``told``: the verdicts. ``books``: what earlier heads of the cycle took."""
    queue, usage = nomination.preemptor.queue, overlay.usage
    lacks = [
        (amount - usage.available(queue, fr), fr, amount)
        for demand in demands(overlay, nomination)
        for fr, amount in demand.items()
        if amount > usage.available(queue, fr)
    ]
    if not lacks:
        lacking = nomination.assignment.lacking or _no_places(nomination)
        reasons = lacking or ["nothing is short, but nobody may be preempted"]
        return "; ".join([*reasons, *easier_places(overlay, nomination)])
    # The largest lack, against what was wanted: steps of different resources do not compare.
    short, fr, amount = max(lacks, key=lambda lack: (lack[0] / lack[2], -lack[1]))
    resource, most = usage.quotas.frs[fr][1], usage.quotas.potential_available(queue, fr)
    text = f"{fr_name(overlay, fr)}: {units(short, resource)} more needed; "
    if amount > most:
        return f"{text}even with nothing running the queue could have {units(most, resource)} at most"
    before = [] if books is None else _in_the_way(books, nomination, fr)
    earlier = f"; {_booked(books, before, fr)} in this cycle" if books is not None and before else ""
    return text + bottleneck(overlay, queue, fr) + _holders(overlay, fr, told) + earlier


def _no_places(nomination: Nomination) -> list[str]:
    """Quota is there for all; whoever runs on the nodes may not be preempted."""
    return ["quota is there, and the nodes have no room for the pods"] if nomination.assignment.pod_sets else []


def _holders(overlay: Overlay, fr: int, told: Iterable[Candidate]) -> str:
    """Whose usage of what is short could not be had, by the rule that accounts for most of it."""
    index = {workload.id: i for i, workload in enumerate(overlay.state.workloads)}
    held: dict[str, tuple[int, int]] = {}
    for found in told:
        amount = dict(overlay.state.amounts(index[found.workload])).get(fr, 0)
        if found.rule in _WORDS and amount:
            total, count = held.get(found.rule, (0, 0))
            held[found.rule] = (total + amount, count + 1)
    if not held:
        return ""
    rule, (total, count) = max(held.items(), key=lambda item: (item[1], item[0]))
    resource = overlay.usage.quotas.frs[fr][1]
    return f"; most of it ({units(total, resource)} in {count} workload(s)) {_WORDS[rule]}"


def outrun(books: Books, head: Nomination) -> str:
    """A head that fitted until earlier heads of the cycle took their part."""
    queue = head.preemptor.queue

    def shortest() -> tuple[int, int] | None:
        usage = books.overlay.usage
        lacks = [(amount - usage.available(queue, fr), fr) for fr, amount in head.preemptor.request]
        # Against what was wanted: steps of different resources do not compare.
        wanted = dict(head.preemptor.request)
        return max(
            ((lack, fr) for lack, fr in lacks if lack > 0),
            key=lambda lack: (lack[0] / wanted[lack[1]], -lack[1]),
            default=None,
        )

    found = books.without(head, shortest)
    if found is None:
        return "earlier heads of this cycle changed what it counted on"
    lack, fr = found
    resource = books.overlay.usage.quotas.frs[fr][1]
    text = f"{fr_name(books.overlay, fr)}: {units(lack, resource)} more needed once all victims are gone"
    if resource == PODS:
        text += ", and Kueue's search for victims does not count pods"
    before = _in_the_way(books, head, fr)
    return f"{text}; {_booked(books, before, fr)} before it in this cycle" if before else text


def overlapping(books: Books, head: Nomination) -> str:
    """A head whose victims stop for others already."""
    return f"{_leaving(books, {workload for workload, _ in head.targets})} already"


def deferred(books: Books, head: Nomination) -> str:
    """A head that fits once everybody has stopped who stops for earlier heads of its cohorts."""
    root, queues = _root(books, head), books.overlay.state.queue
    configuration = books.overlay.state.configuration
    leaving = {workload for workload in books.victims if configuration.root[int(queues[workload])] == root}
    return f"{_leaving(books, leaving)}; it fits once that is done"


def _root(books: Books, head: Nomination) -> int:
    return books.overlay.state.configuration.root[head.preemptor.queue]


def _leaving(books: Books, workloads: set[int]) -> str:
    parts: list[str] = []
    for entry in books.entries:
        names = [books.overlay.state.workloads[w].id for w in entry.victims if w in workloads]
        if names:
            parts.append(f"{_listed(names)} stop{'s' if len(names) == 1 else ''} for {entry.ask}")
    return _listed(parts)


def _in_the_way(books: Books, head: Nomination, fr: int) -> list[Entry]:
    """The earlier heads of the cycle without which more of ``fr`` would be available; all that took some of it where
    no single one makes a difference."""
    usage, queue, root = books.overlay.usage.copy(), head.preemptor.queue, _root(books, head)
    roots = books.overlay.state.configuration.root
    took = [e for e in books.entries if roots[e.queue] == root and dict(e.amounts).get(fr, 0) > 0]
    before, out = usage.available_cell(usage.quotas.cells[queue][fr]), list[Entry]()
    for entry in took:
        part = ((fr, dict(entry.amounts)[fr]),)
        usage.remove(entry.queue, part)
        if usage.available_cell(usage.quotas.cells[queue][fr]) > before:
            out.append(entry)
        usage.add(entry.queue, part)
    return out or took


def _booked(books: Books, entries: Sequence[Entry], fr: int) -> str:
    resource = books.overlay.usage.quotas.frs[fr][1]
    total = sum(dict(entry.amounts)[fr] for entry in entries)
    return f"{_listed([entry.ask for entry in entries])} took {units(total, resource)}"


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        shown.append(f"{len(names) - _MOST_NAMED} more")
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))
