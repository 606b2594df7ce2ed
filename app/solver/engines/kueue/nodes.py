"""What is told of nodes: which domains were looked at, whose pods are in the way, what would find places instead."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from msgspec.structs import replace as struct_replace

from app.solver.engines.kueue.nomination import CycleUsage, Mode, Nomination
from app.solver.engines.kueue.overlay import Overlay
from app.solver.engines.kueue.topology import Domain, Forest
from app.solver.engines.kueue.topology.placement import Placement, PodSet, Wanted
from app.solver.engines.kueue.topology.room import Place, PodSets
from app.solver.kubernetes import PODS
from app.solver.model.base import units

WORDS = {
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
"""What keeps running work where it is, by rule."""
_MOST_SHOWN = 20
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class LookedAt:
    """The domains of one level for one pod set: ``need`` of ``unit`` are wanted in one of them. ``domains``: those with
    most room first, each with what ``fits`` and what is ``free``, at most some; ``of``: how many there are."""

    task: str
    level: str
    need: int
    unit: str
    domains: list[dict[str, object]]
    of: int

    @property
    def sentence(self) -> str:
        """As a person reads it."""
        shown = ", ".join(f"{domain['domain']} has {domain['fits']}" for domain in self.domains[:_MOST_NAMED])
        more = f", and {self.of - _MOST_NAMED} more" if self.of > _MOST_NAMED else ""
        return f"{self.task}: room in one {self.level} for {self.need} {self.unit}: {shown or 'there is none'}{more}"


def looked_at(overlay: Overlay, pod_sets: PodSets, *, empty: bool = False) -> list[LookedAt]:
    """For each pod set up to the first that finds no places, the levels that its placement goes through."""
    levels: list[LookedAt] = []

    def look(workers: PodSet, forest: Forest, wanted: Wanted, placement: Placement) -> None:
        unit = "pods" if wanted.size == 1 else f"slices of {wanted.size} pods"
        for domains in placement.looked_at():
            best = sorted(domains, key=lambda of: (-placement.fitting(of), of.values))[:_MOST_SHOWN]
            level = forest.levels[domains[0].level] if domains else forest.levels[wanted.level]
            shown: list[dict[str, object]] = [
                {"domain": called(of), "fits": placement.fitting(of), "free": _free(placement, of)} for of in best
            ]
            need = wanted.count // wanted.size
            levels.append(LookedAt(workers.task.name, level, need, unit, shown, len(domains)))

    overlay.place(pod_sets, empty=empty, look=look)
    return levels


def called(domain: Domain) -> str:
    """Its label values from the outermost level down."""
    return "/".join(domain.values)


def _free(placement: Placement, domain: Domain) -> dict[str, int | float]:
    return {name: units(amount, name) for name, amount in sorted(placement.left(domain).items())}


def areas(overlay: Overlay, pod_sets: PodSets, places: Mapping[str, Place]) -> dict[str, set[tuple[str, ...]]]:
    """By flavor, the domains that pods are placed in, at the level that each pod set asks for."""
    assert overlay.room is not None, "whoever has places has nodes"
    domains: dict[str, set[tuple[str, ...]]] = {}
    for flavor, of in pod_sets:
        forest, place = overlay.room.rooms.forests[flavor], places.get(of.task.name)
        for leaf in place.pods if place is not None else ():
            domains.setdefault(flavor, set()).add(forest.leaves[leaf].values[: _level(forest, of) + 1])
    return domains


def _level(forest: Forest, of: PodSet) -> int:
    """The place of the level that it asks for; the lowest where it names none."""
    request = of.request
    named = None if request is None else request.required or request.preferred
    return forest.levels.index(named) if named in forest.levels else len(forest.levels) - 1


def pods_in(overlay: Overlay, workload: int, pod_sets: PodSets) -> dict[str, int]:
    """How many pods of running work are where, by the domains that the pod sets ask for; of its own flavors only."""
    assert overlay.room is not None, "whoever has pod sets to place has nodes"
    rooms, pods = overlay.room.rooms, dict[str, int]()
    levels = {flavor: _level(rooms.forests[flavor], of) for flavor, of in reversed(pod_sets)}
    for (flavor, leaf), used in sorted(rooms.used_by(overlay.state.workloads[workload]).items()):
        if flavor in levels:
            name = "/".join(rooms.forests[flavor].leaves[leaf].values[: levels[flavor] + 1])
            pods[name] = pods.get(name, 0) + used[PODS]
    return pods


def frees(overlay: Overlay, workload: int, where: dict[str, set[tuple[str, ...]]]) -> bool:
    """Whether running work has pods in one of these domains."""
    assert overlay.room is not None, "whoever has places has nodes"
    rooms = overlay.room.rooms
    used = rooms.used_by(overlay.state.workloads[workload])
    return any(
        rooms.forests[flavor].leaves[leaf].values[: len(values)] == values
        for flavor, leaf in used
        for values in where.get(flavor, ())
    )


def in_the_way(
    overlay: Overlay, nomination: Nomination, rules: Mapping[int, str], cycle_usage: CycleUsage | None
) -> list[str]:
    """Where quota is there and nodes are not: the domain that lacks least, and whose pods are there. ``rules``: what
    the search said of whom, by workload; ``cycle_usage``: what earlier heads of the cycle took."""
    assignment, misfit = nomination.assignment, nomination.assignment.misfit
    if misfit is None or overlay.room is None or assignment.mode is not Mode.PREEMPT:
        return []
    flavor, of = next(pair for pair in assignment.pod_sets if pair[1].task.name == misfit.task)
    forest = overlay.room.rooms.forests[flavor]
    nearest = _nearest(overlay, assignment.pod_sets, of)
    where = () if nearest is None else nearest[0].values
    there: dict[str, list[str]] = {}
    for i, workload in enumerate(overlay.state.workloads):
        used = overlay.room.rooms.used_by(workload) if rules.get(i) in WORDS else {}
        if any(name == flavor and forest.leaves[leaf].values[: len(where)] == where for name, leaf in used):
            there.setdefault(rules[i], []).append(workload.id)
    reason = f"{misfit.task}: {misfit.reason}"
    if nearest is not None:
        reason += f"; nearest is {called(nearest[0])}, with room for {nearest[1]}"
    for rule, names in sorted(there.items(), key=lambda item: (-len(item[1]), item[0]))[:_MOST_NAMED]:
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        reason += f"; what runs there ({', '.join(names[:_MOST_NAMED])}{more}) {WORDS[rule]}"
    earlier = [
        entry.ask
        for entry in (() if cycle_usage is None else cycle_usage.entries)
        if any(name == flavor and forest.leaves[leaf].values[: len(where)] == where for name, leaf in entry.nodes)
    ]
    if earlier:
        reason += f"; {', '.join(earlier[:_MOST_NAMED])} took nodes there before it in this cycle"
    return [reason]


def _nearest(overlay: Overlay, pod_sets: PodSets, of: PodSet) -> tuple[Domain, int] | None:
    """The domain of the level that ``of`` is required to be in that has most room of those that would hold it with
    nothing of Kueue's, and how much; None where no level is required."""
    if of.request is None or of.request.required is None:
        return None
    fits: list[dict[Domain, int]] = []
    need = 0

    def look(workers: PodSet, forest: Forest, wanted: Wanted, placement: Placement) -> None:
        nonlocal need
        if of.task.name == workers.task.name:
            need = wanted.count // wanted.size
            fits.append({domain: placement.fitting(domain) for domain in forest.by_level[wanted.level]})

    for empty in (False, True):
        overlay.place(pod_sets, empty=empty, look=look)
    if len(fits) < 2:
        return None
    now, at_most = fits
    large = [domain for domain in now if at_most[domain] >= need]
    best = min(large, key=lambda domain: (-now[domain], domain.values), default=None)
    return None if best is None else (best, now[best])


def easier_places(overlay: Overlay, nomination: Nomination) -> list[str]:
    """What its pods could ask for instead to find places as things are, in one sentence each; nothing where they find
    them, or where quota is short as well. Each has been tried."""
    pod_sets, preemptor = nomination.assignment.pod_sets, nomination.preemptor
    if overlay.room is None or not pod_sets or not overlay.usage.fits(preemptor.queue, preemptor.request):
        return []
    _, misfit = overlay.place(pod_sets)
    if misfit is None:
        return []
    place = next(i for i, (_, of) in enumerate(pod_sets) if of.task.name == misfit.task)
    flavor, of = pod_sets[place]

    def fits(other: PodSet) -> bool:
        return overlay.place((*pod_sets[:place], (flavor, other), *pod_sets[place + 1 :]))[1] is None

    sentences: list[str] = []
    name, request = of.task.name, of.request
    if request is not None and request.required is not None:
        level = request.required
        if fits(replace(of, request=struct_replace(request, required=None, preferred=level))):
            sentences.append(f"{name} fits now with {level} preferred, not required")
        levels = overlay.room.rooms.forests[flavor].levels
        above = levels[: levels.index(level)] if level in levels else ()
        wider = next(
            (up for up in reversed(above) if fits(replace(of, request=struct_replace(request, required=up)))), None
        )
        if wider is not None:
            sentences.append(f"{name} fits now within one {wider}")
    few, many = 0, of.count
    while many - few > 1:  # of counts only whole slices and their likes differ, and more is never easier
        middle = (few + many) // 2
        few, many = (middle, many) if fits(replace(of, count=middle)) else (few, middle)
    if few:
        sentences.append(f"{few} of the {of.count} pods of {name} fit now")
    return sentences
