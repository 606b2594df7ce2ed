"""What a run of a cycle has of its own. What released KAI leaves to chance: the order in which Go yields the entries of
a map. And the trail of its searches, which hears why they fail.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from app.solver.compiled import ROOTLESS
from app.solver.engines.kai.jobs import Share, total
from app.solver.engines.kai.overlay import NO_ASK, Overlay
from app.solver.engines.kai.queue_order import Entry, OverBound, QueueOrder

T = TypeVar("T")

DRAWS = 40
"""Draws of an answer that hangs on an order: what happens half the time is met, all but for one in a trillion."""
MOST_DRAWS = 200
"""Draws where 40 don't tell which of two outcomes is the likeliest, in small clusters."""
PROBES = 10
"""Draws where an order may decide and seldom does: there are more only where one of them comes to something else."""
MOST_PODS_PROBED = 2_000
"""Pods of the cluster in all of these together."""
MOST_STEPS = 60_000
"""Steps that all draws of an answer may spend on simulations together: enough or not, there are no more draws then."""

MOST_PODS = 16_000
"""Pods of the cluster in all draws together, beyond which more are drawn only while one outcome has the majority; a
cluster of which two draws have more is not drawn."""

_GROUP = 8
_FULL = 7
_TABLE = 128 * _FULL
"""Entries that a single table of a map holds."""


class HangsOnOrder(Exception):
    """A run met an order on which a choice of it hangs, and nobody wants to know what comes of it with one order."""


class Lots:
    """A generator that is seeded by what is chosen next, once something is drawn for it."""

    __slots__ = ("_choice", "_random", "drew")

    def __init__(self, seed: int) -> None:
        self.drew = False
        self._random = Random(seed)
        self._choice: Callable[[], Hashable] | None = None

    def choose(self, choice: Callable[[], Hashable]) -> None:
        """What is drawn next is for this choice."""
        self._choice = choice

    @property
    def random(self) -> Random:
        """What to draw from."""
        self.drew = True
        if self._choice is not None:
            self._random.seed(hash(self._choice()))
            self._choice = None
        return self._random


class Map(Generic[T]):
    """A map of Go that was filled in the given order: in groups of slots, each walk beginning at any slot. ``lots``
    None: every walk is in the order in which it was filled."""

    def __init__(self, entries: Iterable[T], lots: Lots | None) -> None:
        listed = list(entries)
        self._lots = None if len(listed) < 2 else lots
        self._groups = [listed] if lots is None or len(listed) <= _GROUP else _groups(listed, lots.random)

    def walk(self) -> list[T]:
        """The entries. Behind the last one of a group its slots are empty."""
        if self._lots is None:
            return self._groups[0]
        group, first = divmod(self._lots.random.randrange(len(self._groups) * _GROUP), _GROUP)
        entries, others = self._groups[group], (*self._groups[group + 1 :], *self._groups[:group])
        return [*entries[first:], *(entry for other in others for entry in other), *entries[:first]]


def _groups(entries: list[T], random: Random) -> list[list[T]]:
    count = 2
    while len(entries) > count * _FULL:
        count *= 2
    groups: list[list[T]] = [[] for _ in range(count)]
    for entry in entries:
        group, step = random.randrange(count), 0
        while len(groups[group]) == _GROUP:
            step += 1
            group = (group + step) % count
        groups[group].append(entry)
    return groups


class Names:
    """Jobs and pods in order of name, for all runs on one overlay: a state that is followed has no order of its own."""

    def __init__(self) -> None:
        self._jobs: list[int] | None = None
        self._places: list[int] | None = None

    def jobs(self, overlay: Overlay) -> list[int]:
        """All jobs."""
        if self._jobs is None:
            self._jobs = sorted(range(len(overlay.jobs.id)), key=overlay.jobs.id.__getitem__)
        return self._jobs

    def places(self, overlay: Overlay) -> list[int]:
        """By pod its place among all: by job, then by its own name."""
        if self._places is None:
            jobs, name = overlay.jobs, overlay.jobs.task_name.__getitem__
            in_order = (t for j in self.jobs(overlay) for t in sorted(jobs.tasks[j], key=name))
            self._places = [0] * len(jobs.task_job)
            for place, t in enumerate(in_order):
                self._places[t] = place
        return self._places


class Chance:
    """The orders of one run. Without a seed every map yields its entries as they came in. ``matters``: whether the run
    met an order on which a choice of it hangs, or it is known that there is one; with ``stops`` such a run ends there.
    ``may_matter``: whether it met one on which a choice may hang; that is looked at with ``looks`` alone.

    What is drawn hangs on the seed and on what it is drawn for (``turn`` and ``choose``), never on what was drawn
    before: who spares a choice changes no other."""

    def __init__(
        self, seed: int | None = None, names: Names | None = None, *, stops: bool = False, looks: bool = False
    ) -> None:
        self._names = names or Names()
        self._seed = seed
        self._lots = None if seed is None else Lots(seed)
        self._jobs: Map[int] | None = None
        self._turns = 0
        self._met = False
        self._stops, self._looks = stops, looks
        self.matters = seed is not None
        self.may_matter = False

    def hangs(self) -> None:
        """A choice hangs on an order. Raises HangsOnOrder."""
        self.matters = True
        if self._stops:
            raise HangsOnOrder

    def may_hang(self, decides: Callable[[], bool]) -> None:
        """``decides``, asked once it counts: whether a choice may hang on an order."""
        if self._looks and not self.may_matter:
            self.may_matter = decides()

    def again(self, seed: int) -> "Chance":
        """The orders of another run that has come as far, where nothing has been drawn yet."""
        other = Chance(seed, self._names)
        other._turns = self._turns
        return other

    @property
    def untouched(self) -> bool:
        """Whether nothing has been drawn yet, nor would have been with a seed."""
        return not self._met if self._lots is None else not self._lots.drew

    def turn(self) -> None:
        """An action orders its jobs, or the search for a part begins."""
        self._turns += 1
        self.choose()

    def choose(self, *of: Hashable) -> None:
        """What is drawn next is for this choice of the turn: numbers, and tuples of them."""
        if self._lots is not None:
            choice = self._seed, self._turns, of
            self._lots.choose(lambda: choice)

    def choose_pods(self, overlay: Overlay, size: int, *of: Iterable[int]) -> None:
        """The same for these pods, which are called alike in whatever order a request has them."""
        if self._lots is None:
            return
        turns = self._turns

        def choice() -> Hashable:
            places = self._names.places(overlay)
            return self._seed, turns, (size, *(tuple(sorted(places[t] for t in pods)) for pods in of))

        self._lots.choose(choice)

    @property
    def drawn(self) -> bool:
        """Whether the orders are drawn."""
        return self._lots is not None

    def map(self, entries: Iterable[T]) -> Map[T]:
        """A map that is walked more than once."""
        self._met = True
        return Map(entries, self._lots)

    def order(self, entries: Iterable[T]) -> list[T]:
        """The entries as a map yields them that was filled in the given order."""
        self._met = True
        return list(entries) if self._lots is None else self.map(entries).walk()

    def pods(self, tasks: list[int]) -> list[int]:
        """The pods of a group, by one walk of the map of them, which was filled by a walk of that of its pod set."""
        self._met = True
        return self.order(self.order(tasks)) if self.drawn else tasks

    def jobs(self, overlay: Overlay) -> list[int] | None:
        """All jobs, by one walk of the map of them, which lives as long as the run. None where no order is drawn, or
        the map has several tables."""
        number = len(overlay.jobs.id)
        if number > _TABLE:
            return None
        self._met = True
        if self._lots is None:
            return None
        if self._jobs is None:
            self._jobs = self.map(self._names.jobs(overlay))
        return self._jobs.walk()

    def some(self, keys: Sequence[int], number: int, overlay: Overlay) -> list[int]:
        """The first ``number`` of these jobs that the map of all jobs yields. One that has several tables yields any of
        them alike."""
        self._met = True
        if self._lots is None:
            return list(keys[:number])
        if (jobs := self.jobs(overlay)) is None:
            return self._lots.random.sample(keys, number)
        wanted = set(keys)
        return list(islice((job for job in jobs if job in wanted), number))


def hangs_on_entry(overlay: Overlay, order: QueueOrder, waiting: Mapping[int, Sequence[Entry]]) -> bool:
    """Whether the order in which jobs (``waiting``, by leaf) come into a tree, theirs or that of a simulation, with
    victims, may show. A heap of queues is repaired at its top alone, by the best job of each at that time: one of four
    and more keeps what came in first behind the top, and below a queue that is not on top itself one of two does."""
    parent = overlay.parent_queue
    jobs = [(job, overlay.wanted(job)[1]) for entries in waiting.values() for _, job in entries]
    if jobs:
        tasks, active, preemptible = overlay.jobs.tasks, overlay.active, overlay.jobs.preemptible
        jobs += [(v, total(overlay.wants, tasks[v])) for v in range(len(tasks)) if active[v] and preemptible[v]]
    wants: dict[int, set[Share]] = {}
    below: dict[int, dict[int, None]] = {}
    for job, want in jobs:
        queue = overlay.jobs.queue[job]
        while queue != ROOTLESS:
            wants.setdefault(queue, set()).add(want)
            below.setdefault(parent[queue], {})[queue] = None
            queue = parent[queue]

    def on_top(queue: int) -> bool:
        return queue == ROOTLESS or (len(below[parent[queue]]) == 1 and on_top(parent[queue]))

    return any(
        len(queues) >= (4 if on_top(queue) else 2) and order.hangs_on_jobs({q: wants[q] for q in queues})
        for queue, queues in below.items()
    )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a victim or a scenario is out: a stable rule, the workload or queue it is about, the numbers compared."""

    rule: str
    detail: str
    numbers: dict[str, Any] = field(default_factory=dict)


class Scenario(Protocol):
    """What validators judge: the victims listed for ``part``, the first pods of the pending gang of ``job``.

    ``listed``: pods by job; ``elastic``: the jobs of those that need fewer pods than they have; ``taking``: the jobs
    that the try takes from."""

    @property
    def job(self) -> int: ...
    @property
    def part(self) -> Sequence[int]: ...
    @property
    def listed(self) -> dict[int, list[int]]: ...
    @property
    def elastic(self) -> list[int]: ...
    @property
    def taking(self) -> Collection[int]: ...
    @property
    def pods(self) -> int: ...


_SUCCEEDED = ("placed", "solved")

_TELLS = {
    "no-easier": 0, "no-room": 1, "too-few-gpus-free": 1, "no-victims": 1, "down-for-gone": 1, "too-few-gpus": 2,
    "too-few-victims": 3, "over-limit": 5, "non-preemptible-over-quota": 5, "larger-than-any-node": 5,
    "search-cut-short": 6,
}  # fmt: skip
_REFUSED = 4
"""How much a failure tells about what stands in the way, most last; what is not listed was refused by a validator or
by reclaim's gate."""


@dataclass(slots=True)
class Tried:
    """Scenarios of one action that ended alike: how many, and the numbers of the last one."""

    action: str
    part: int
    of: int
    rule: str
    detail: str
    numbers: dict[str, Any]
    count: int = 0


@dataclass(slots=True)
class Search:
    """One search for victims: the action, who might be taken, whom a filter kept out and why. Where it found room: the
    ask that it was for, and the pods that its statement took, those that it put back among them."""

    action: str
    eligible: frozenset[int] = frozenset()
    refused: dict[int, Refusal] = field(default_factory=dict)
    ask: int = NO_ASK
    taken: frozenset[int] = frozenset()
    put_back: frozenset[int] = frozenset()


class Trail:
    """Hears the moments of a search, one job at a time, and keeps what every job's main failure was: nothing that an
    answer without explanations can do without. ``Recorder`` keeps the rest, and ``counts`` how often."""

    counts = False
    unheard = False

    def __init__(self) -> None:
        self._main: dict[int, tuple[int, str, str, str]] = {}
        self._job: int
        self._action: str

    def again(self) -> "Trail":
        """For another run of the cycle that has come as far."""
        other = copy(self)
        other._main = self._main.copy()
        return other

    def begin(self, job: int, action: str) -> None:
        """What follows is about this job in this action."""
        self._job, self._action = job, action

    def part(self, size: int, of: int) -> None:
        """The gang's first ``size`` pods are being solved."""

    def note(self, rule: str, detail: str, **numbers: Any) -> None:
        """Count one way to fail, or to succeed."""
        if rule not in _SUCCEEDED:
            tells = _TELLS.get(rule, _REFUSED)
            if tells >= self._main.get(self._job, (0,))[0]:
                self._main[self._job] = tells, self._action, rule, detail

    def cut_short(self) -> None:
        """The budget ran out."""
        self.note("search-cut-short", "the search for a place ran out of steps before it had seen every scenario")

    def spare(self, victim: int, refusal: Refusal) -> None:
        """A filter keeps a job from being a victim."""

    def search(self, eligible: Sequence[int]) -> None:
        """A search begins; it may take from these jobs."""

    def succeeded(self, overlay: Overlay) -> None:
        """The search found room; its statement is still open."""

    def too_short(self, scenario: Scenario) -> None:
        """The listed victims' GPUs can't hold the part."""
        self.note("too-few-gpus", "nodes could not hold the GPUs, were all these victims gone", **self._size(scenario))

    def no_room(self, scenario: Scenario, bound: OverBound | None) -> None:
        """The part found no place."""
        size = self._size(scenario)
        if bound is not None:
            self.note(bound.rule, "a queue would pass its bound", **size)
        else:
            self.note("too-few-victims", "no place for the pods with the victims of that node gone", **size)

    def judged(self, scenario: Scenario, refusal: Refusal | None) -> None:
        """The part found its place, and the validators spoke."""
        size = self._size(scenario)
        if refusal is None:
            self.note("solved", "the pods fit with these victims", **size)
        else:
            self.note(refusal.rule, refusal.detail, **size, **refusal.numbers)

    def _size(self, scenario: Scenario) -> dict[str, int]:
        """How large a scenario is, for those who keep it."""
        del scenario
        return {}

    def main(self, job: int) -> tuple[str, str, str] | None:
        """Action, rule and sentence of the job's failure that tells most, the latest of those; None without any."""
        failure = self._main.get(job)
        return None if failure is None else failure[1:]

    def of(self, job: int) -> list[Tried]:
        """What was recorded of a job, in order."""
        del job
        return []

    def searches(self, job: int) -> list[Search]:
        """The searches for one job, in order."""
        del job
        return []


class Unheard(Trail):
    """A trail that nobody reads: why a try fails makes no difference."""

    unheard = True

    def note(self, rule: str, detail: str, **numbers: Any) -> None:
        """See ``Trail.note``."""
