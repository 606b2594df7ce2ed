"""What a decision tells of itself: the moments of the search, by name. This one hears them all and keeps nothing."""

from collections.abc import Iterable, Mapping, Sequence

from app.solver.engines.kueue.fair_share import Rivals
from app.solver.engines.kueue.nomination import Books, Nomination, Suit
from app.solver.engines.kueue.overlay import Overlay, Preemptor, Target
from app.solver.engines.kueue.topology.room import Misfit, Place, PodSets
from app.solver.model.decision import Explanation, Victim
from app.solver.model.state import Ask, Task


class Recorder:
    """Keeps nothing."""

    def boosted(self, given: int, counts: int) -> None:
        """The ask's priority counts as another one after waiting (KEP-83)."""

    def consumed(self, local_queue: str, usage: float, *, known: bool) -> None:
        """Its queue goes by what LocalQueues have consumed; ``known``: whether anybody said it of this one."""

    def resumes(self, scan: Mapping[str, Mapping[str, int]]) -> None:
        """The scan of flavors goes on where the last cycle left it."""

    def flavor_refused(self, task: str, flavor: str, reason: str) -> None:
        """A pod set may not use a flavor at all."""

    def nodes_short(self, overlay: Overlay, pod_sets: PodSets, misfit: Misfit, *, empty: bool) -> None:
        """Quota is there, and nodes have no room for a pod set; ``empty``: nor would they with nothing of Kueue's."""

    def placed(self, overlay: Overlay, pod_sets: PodSets, places: Mapping[str, Place]) -> None:
        """All find places, with those gone that stop for it; the overlay is as it was before."""

    def flavor_considered(self, task: str, flavor: str, suit: Suit) -> None:
        """How well a flavor suits a pod set."""

    def reduced(self, tasks: Sequence[Task], counts: Sequence[int]) -> None:
        """The full size can't be had, these counts can: what was said of candidates was for another size."""

    def never_preempts(self, overlay: Overlay) -> None:
        """The ask's policy is to stop nobody."""

    def not_yet(self, overlay: Overlay) -> None:
        """The ask has not waited long enough to stop anybody (KEP-83)."""

    def search_begins(self, overlay: Overlay, preemptor: Preemptor, contested: frozenset[int]) -> None:
        """A search for victims: what was said of candidates before belongs to another one."""

    def nobody_low_enough(self, preemptor: Preemptor, own: int | None, others: int | None) -> None:
        """No priority within reach is low enough; ``own``, ``others``: the lowest ones, None where nothing runs."""

    def attempt_begins(self, overlay: Overlay, *, borrow: bool) -> None:
        """Classical: everybody is a candidate again, for a search that may or may not let the ask borrow."""

    def would_borrow(self, overlay: Overlay, workload: int) -> None:
        """Classical: may go only for an ask that does not borrow, which this attempt lets it."""

    def back_within(self, overlay: Overlay, workload: int) -> None:
        """Classical: with those before it gone, its queue or a cohort above it is within quota."""

    def round_begins(self, strategy: str, *, reclaims: bool) -> None:
        """Fair sharing: queues are gone through by share; ``reclaims``: candidates go without comparing shares."""

    def cohorts_tie(self, overlay: Overlay, cohorts: Sequence[int]) -> None:
        """Fair sharing: these have the same share, and the origin goes into one of them by chance."""

    def taking(self, overlay: Overlay, workload: int, rivals: Rivals) -> None:
        """Fair sharing: about to be taken because of these shares."""

    def too_low(self, overlay: Overlay, workloads: Iterable[int], rivals: Rivals, strategy: str) -> None:
        """Fair sharing: these stay, for the shares do not pass the strategy."""

    def taken(self, overlay: Overlay, preemptor: Preemptor, targets: Sequence[Target], *, fits: bool) -> None:
        """The last of ``targets`` has been taken out; ``fits``: whether the ask fits now."""

    def put_back(self, overlay: Overlay, workload: int) -> None:
        """The ask fits with it."""

    def search_failed(self, overlay: Overlay, targets: Iterable[Target]) -> None:
        """Nobody is taken in the end: the ask does not fit even with these gone, whom the search may take."""

    def trees_by_chance(self, trees: int) -> None:
        """Cycle, fair sharing: heads of so many cohort trees, which the origin takes in any order."""

    def in_order(self, place: int, heads: int, level: int) -> None:
        """Cycle: the head's turn; ``place`` counts from 0."""

    def again(self) -> None:
        """Cycle: assigned anew, since somebody of its victims stops for an earlier head."""

    def places_taken(self) -> None:
        """Cycle: assigned anew, since earlier heads took the nodes that it was to have."""

    def reserves(self) -> None:
        """Cycle: nobody may stop for it, and it keeps its capacity from later heads."""

    def overlaps(self, books: Books, head: Nomination, message: str) -> None:
        """Cycle: skipped, since its victims stop for earlier heads."""

    def outrun(self, books: Books, head: Nomination, message: str) -> None:
        """Cycle: skipped, since it does not fit with what earlier heads took."""

    def deferred(self, books: Books, head: Nomination) -> None:
        """Cycle: it fits once those have stopped who stop for earlier heads."""

    def behind(self, ask: Ask, head: Ask, rest: str) -> None:
        """Cycle: another ask of its queue goes first."""

    def inadmissible(self, ask: Ask, why: str) -> None:
        """It is not tried at all."""

    def fits(self, ask: Ask) -> None:
        """Admitted without stopping anybody."""

    def preempts(self, ask: Ask, victims: Sequence[Victim]) -> None:
        """These stop for it."""

    def waits(self, ask: Ask, reasons: str, *, hopeless: bool) -> None:
        """It waits, or can never run."""

    def blocked(self, overlay: Overlay, nomination: Nomination, books: Books | None) -> None:
        """Nothing lets it in: to say what stands most in the way. ``books``: of the cycle that it is part of."""

    def explanation(self) -> Explanation | None:
        """What is told of it all."""
        return None


SILENT = Recorder()
