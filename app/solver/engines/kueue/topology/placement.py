"""Placement: in which domains the pods of a pod set go, and whether they all fit.

Source: Kueue ``pkg/cache/scheduler/tas_flavor_snapshot.go``: ``fillInCounts`` (what fits where),
``findLevelWithFitDomains`` (which domains are taken), ``updateCountsToMinimumGeneric`` (how few of those below do).
Best fit takes the smallest domain that holds the rest, least free capacity the fullest ones first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.solver.engines.kueue.topology import Amounts, Domain, Forest
from app.solver.kubernetes import PODS
from app.solver.model.base import parse_quantity, scale_of
from app.solver.model.kueue import TopologyRequest
from app.solver.model.state import Task

Remaining = Callable[[int], Amounts]
"""What is left in a leaf, steps by resource."""
Placed = dict[int, int]
"""Pods by leaf."""


@dataclass(frozen=True, slots=True)
class PodSet:
    """What is to be placed: ``count`` pods of ``requests``, steps by resource with one of "pods"."""

    task: Task
    count: int
    requests: Amounts
    request: TopologyRequest | None

    @staticmethod
    def of(task: Task, count: int) -> "PodSet":
        """Raises QuantityError."""
        requests = {name: parse_quantity(value, scale_of(name)) for name, value in task.requests.items()}
        requests[PODS] = requests.get(PODS, 0) + 1
        return PodSet(task, count, requests, task.topology_request)


@dataclass(slots=True)
class Wanted:
    """A request as the levels of one forest have it. ``inner``: by level, the size of which pods below a slice come in
    multiples."""

    count: int
    leaders: int
    level: int
    slice_level: int
    size: int
    required: bool
    least_free: bool
    inner: dict[int, int] = field(default_factory=dict)


def layers_of(request: TopologyRequest | None) -> list[tuple[str, int | None]]:
    """Level and size of each layer of slices, outermost first."""
    if request is None:
        return []
    if request.slice_layers:
        return [(layer.level, layer.size) for layer in request.slice_layers]
    return [(request.slice_required, request.slice_size)] if request.slice_required is not None else []


def levels_of(request: TopologyRequest) -> list[str]:
    """Every level that it names."""
    named = [request.required, request.preferred, *(level for level, _ in layers_of(request))]
    return [level for level in named if level is not None]


def asks(request: TopologyRequest | None) -> bool:
    """Whether it asks for a topology at all: the name of a group alone does not."""
    return request is not None and bool(
        request.unconstrained or request.required or request.preferred or request.slice_required
        or request.slice_size or request.slice_layers
    )  # fmt: skip


def wanted_of(forest: Forest, workers: PodSet, leader: PodSet | None) -> Wanted | str:
    """What the workers ask for, in this forest; or why it can't give that."""
    request, levels = workers.request, forest.levels
    layers = layers_of(request)
    lowest = len(levels) - 1
    named = (request.required or request.preferred) if request is not None else None
    only_slices = bool(layers) and named is None
    if named is not None:
        if named not in levels:
            return f"no requested topology level: {named}"
        level = levels.index(named)
    else:
        level = 0 if only_slices else lowest
    size, slice_level = 1, lowest
    if layers:
        key, given = layers[0]
        if given is None:
            return "slices are asked for without their size"
        if key not in levels:
            return f"no requested topology level for slices: {key}"
        size, slice_level = given, levels.index(key)
    if level > slice_level:
        return f"slices of level {levels[slice_level]} are above the level {levels[level]} of their pod set"
    unconstrained = request is None or not asks(request) or request.unconstrained
    wanted = Wanted(
        workers.count, 0 if leader is None else 1, level, slice_level, size,
        required=request is not None and request.required is not None, least_free=unconstrained or only_slices,
    )  # fmt: skip
    before, last = size, slice_level
    for key, given in layers[1:]:
        if key not in levels:
            return f"no requested topology level for a further layer of slices: {key}"
        below = levels.index(key)
        if below <= last:
            return f"a further layer of slices, {key}, must be below {levels[last]}"
        if given is None or before % given:
            return f"the size {given} of a further layer of slices must divide {before}"
        wanted.inner |= dict.fromkeys(range(last + 1, below + 1), given)
        before, last = given, below
    return wanted


class Placement:
    """Of one group of pod sets in one forest. By domain: pods that fit below it, slices, how many of both fit beside a
    leader, and whether a leader does. ``why_not`` changes none of them, so that they can be kept up to date, leaf by
    leaf; ``places`` overwrites them with what is assigned. ``_holding``: the domains of the level that each hold all,
    once that was asked for."""

    def __init__(
        self, forest: Forest, remaining: Remaining, workers: PodSet, leader: PodSet | None, wanted: Wanted,
        units: Sequence[int] | None = None, *, within: Domain | None = None,
    ) -> None:  # fmt: skip
        """``units``: how many of the workers fit in each leaf by what is left there, where that is known; ``within``:
        the domain that they must be in."""
        self._forest, self._remaining, self._wanted = forest, remaining, wanted
        self._allowed = forest.allowed(workers.task)
        if within is not None:
            pairs = zip(self._allowed, forest.leaves, strict=True)
            self._allowed = [of and leaf.values[: len(within.values)] == within.values for of, leaf in pairs]
        self._requests = [(name, amount) for name, amount in workers.requests.items() if amount > 0]
        self._leader = None if leader is None else [pair for pair in leader.requests.items() if pair[1] > 0]
        number = len(forest)
        self._pods, self._beside = [0] * number, [0] * number
        self._slices, self._slices_beside = [0] * number, [0] * number
        self._leads = [0] * number
        self._holding: set[int] | None = None
        if units is None or leader is not None:
            for leaf in range(len(forest.leaves)):
                self._count(leaf)
        else:
            self._take(units)
        for level in range(len(forest.levels) - 2, -1, -1):
            for domain in forest.by_level[level]:
                self._sum_up(domain)

    def changed(self, leaf: int) -> None:
        """What is left in a leaf is something else now."""
        self._count(leaf)
        domain: Domain | None = self._forest.leaves[leaf]
        while domain is not None:
            if domain.leaf < 0:
                self._sum_up(domain)
            if self._holding is not None and domain.level == self._wanted.level:
                (self._holding.add if self._holds(domain.id) else self._holding.discard)(domain.id)
            domain = domain.above

    def why_not(self) -> str | None:
        """Why they do not all fit; None where they do."""
        wanted = self._wanted
        if wanted.required:  # one domain of the level holds all of it, or none does: no order is needed
            domains = self._forest.by_level[wanted.level]
            if self._holding is None:
                self._holding = {domain.id for domain in domains if self._holds(domain.id)}
            if self._holding:
                return None
            return _short(wanted, max((self._slices[domain.id] for domain in domains), default=0))
        chosen = self._choose(wanted.level)
        return chosen if isinstance(chosen, str) else None

    def looked_at(self) -> list[list[Domain]]:
        """Domains by level in the order in which levels are looked at, up to the first of which one domain holds all.
        Not once ``places`` was asked for."""
        wanted, levels = self._wanted, list[list[Domain]]()
        need, leads = wanted.count // wanted.size, self._leads
        for level in range(wanted.level, -1, -1):
            domains = sorted(self._forest.by_level[level], key=self._order_beside)
            levels.append(domains)
            holds = any(self._slices_beside[of.id] >= need and leads[of.id] >= wanted.leaders for of in domains)
            if holds or wanted.required or wanted.least_free:
                break
        return levels

    def fitting(self, domain: Domain) -> int:
        """How many slices fit in it, beside their leader if there is one."""
        return (self._slices_beside if self._wanted.leaders else self._slices)[domain.id]

    def left(self, domain: Domain) -> Amounts:
        """What is left in it of what the workers request."""
        if not domain.children:
            left = self._remaining(domain.leaf)
            return {name: left.get(name, 0) for name, _ in self._requests}
        total: Amounts = {}
        for child in domain.children:
            for name, amount in self.left(child).items():
                total[name] = total.get(name, 0) + amount
        return total

    def places(self) -> tuple[Placed, Placed] | str:
        """Leaves for the workers and for their leader, if there is one; or why they do not all fit."""
        chosen = self._choose(self._wanted.level)
        if isinstance(chosen, str):
            return chosen
        leaves = self._descend(*chosen)
        pods, leads = self._pods, self._leads
        return (
            {domain.leaf: pods[domain.id] for domain in leaves if pods[domain.id] > 0},
            {domain.leaf: leads[domain.id] for domain in leaves if leads[domain.id] > 0},
        )

    def _holds(self, number: int) -> bool:
        """Whether a domain holds all of it."""
        wanted = self._wanted
        return self._slices_beside[number] >= wanted.count // wanted.size and self._leads[number] >= wanted.leaders

    def _count(self, leaf: int) -> None:
        """What fits in a leaf (phase 1)."""
        wanted, number = self._wanted, self._forest.leaves[leaf].id
        pods = beside = leads = 0
        if self._allowed[leaf]:
            left = self._remaining(leaf)
            pods = beside = fit(self._requests, left)
            if self._leader is not None and fit(self._leader, left) > 0:
                leads = 1
                taken = dict(self._leader)
                beside = fit(self._requests, {name: amount - taken.get(name, 0) for name, amount in left.items()})
        self._pods[number], self._beside[number], self._leads[number] = pods, beside, leads
        if wanted.slice_level == len(self._forest.levels) - 1:
            self._slices[number], self._slices_beside[number] = pods // wanted.size, beside // wanted.size

    def _take(self, units: Sequence[int]) -> None:
        pods, ids = self._pods, self._forest.leaf_ids
        for leaf_id, fit, allowed in zip(ids, units, self._allowed, strict=True):
            if allowed:
                pods[leaf_id] = fit
        self._beside = pods.copy()
        if self._wanted.slice_level == len(self._forest.levels) - 1:
            size = self._wanted.size
            self._slices = pods.copy() if size == 1 else [number // size for number in pods]
            self._slices_beside = self._slices.copy()

    def _sum_up(self, domain: Domain) -> None:
        """From its children. With a leader those count that can take one, and of these the one that loses least."""
        wanted = self._wanted
        inner = wanted.inner.get(domain.level + 1, 1)
        pods = slices = leads = lost_slices = 0
        lost: int | None = None
        for child in domain.children:
            number = child.id
            mine, beside = self._pods[number], self._beside[number]
            if inner > 1:
                mine, beside = mine // inner * inner, beside // inner * inner
            pods += mine
            slices += self._slices[number]
            if not wanted.leaders or self._leads[number]:
                fewer = self._slices[number] - self._slices_beside[number]
                lost_slices = fewer if lost is None else min(lost_slices, fewer)
                lost = mine - beside if lost is None else min(lost, mine - beside)
            leads = max(leads, self._leads[number])
        number = domain.id
        self._pods[number], self._leads[number] = pods, leads
        self._beside[number] = 0 if lost is None else pods - lost
        if domain.level == wanted.slice_level:
            self._slices[number], self._slices_beside[number] = pods // wanted.size, self._beside[number] // wanted.size
        else:
            self._slices[number], self._slices_beside[number] = slices, 0 if lost is None else slices - lost_slices

    def _order(self, domain: Domain) -> tuple[int, int, tuple[str, ...]]:
        slices = self._slices[domain.id]
        return slices if self._wanted.least_free else -slices, self._pods[domain.id], domain.values

    def _order_beside(self, domain: Domain) -> tuple[int, int, int, tuple[str, ...]]:
        number = domain.id
        slices = self._slices_beside[number]
        return -self._leads[number], slices if self._wanted.least_free else -slices, self._beside[number], domain.values

    def _capacity(self, domain: Domain, leaders: int, *, slices: bool) -> int:
        if slices:
            return (self._slices_beside if leaders else self._slices)[domain.id]
        return (self._beside if leaders else self._pods)[domain.id]

    def _best(self, domains: Sequence[Domain], need: int, leaders: int, *, slices: bool) -> Domain:
        """The first of the smallest that hold all of it; the first of all where none does."""
        best, least = domains[0], -1
        for domain in domains:
            capacity = self._capacity(domain, leaders, slices=slices)
            if capacity >= need and (least < 0 or capacity < least) and self._leads[domain.id] >= leaders:
                best, least = domain, capacity
        return best

    def _choose(self, level: int) -> tuple[int, list[Domain]] | str:
        """Domains of ``level`` or above that hold everything (phase 2a)."""
        wanted, leads = self._wanted, self._leads
        need, leaders = wanted.count // wanted.size, wanted.leaders
        domains = sorted(self._forest.by_level[level], key=self._order_beside)
        if not domains:
            nowhere = "there are no nodes in the state with the labels of the flavor and its levels"
            return f"no topology domains at level: {self._forest.levels[level]}: {nowhere}"
        top = domains[0]
        if wanted.least_free:
            for domain in domains:
                if leads[domain.id] >= leaders and self._capacity(domain, leaders, slices=True) >= need:
                    return level, [domain]
            if wanted.required:
                return _short(wanted, max(self._slices[domain.id] for domain in domains))
        elif self._slices_beside[top.id] >= need and leads[top.id] >= leaders:
            top = self._best(domains, need, leaders, slices=True)
        if self._slices_beside[top.id] >= need and leads[top.id] >= leaders:
            return level, [top]
        if wanted.required:
            return _short(wanted, self._slices[top.id])
        if level > 0 and not wanted.least_free:
            return self._choose(level - 1)
        return self._several(level, self._prioritised(domains, wanted.count, leaders, wanted.size, slices=True))

    def _several(self, level: int, domains: list[Domain]) -> tuple[int, list[Domain]] | str:
        wanted = self._wanted
        need, leaders = wanted.count // wanted.size, wanted.leaders
        taken: list[Domain] = []
        rest, place = need, 0
        while leaders > 0 and place < len(domains) and self._leads[domains[place].id] > 0:
            domain = domains[place]
            if not wanted.least_free and self._slices_beside[domain.id] >= rest:
                domain = self._best(domains[place:], rest, leaders, slices=True)
            taken.append(domain)
            leaders -= self._leads[domain.id]
            rest -= self._slices_beside[domain.id]
            place += 1
        if leaders > 0:
            return _short(wanted, 0)
        others = sorted(domains[place:], key=self._order)
        for i, first in enumerate(others):
            if rest <= 0:
                break
            last = not wanted.least_free and self._slices[first.id] >= rest
            domain = self._best(others[i:], rest, 0, slices=True) if last else first
            taken.append(domain)
            rest -= self._slices[domain.id]
        return _short(wanted, need - rest) if rest > 0 else (level, taken)

    def _prioritised(self, domains: list[Domain], count: int, leaders: int, size: int, *, slices: bool) -> list[Domain]:
        """With a leader: the first domain goes first that can take it and still leaves room for all."""
        if not leaders or len(domains) < 2:
            return domains
        need = count // size if slices else count
        there = sum(self._capacity(domain, 0, slices=slices) for domain in domains)
        for i, domain in enumerate(domains):
            lost = self._capacity(domain, 0, slices=slices) - self._capacity(domain, 1, slices=slices)
            if self._leads[domain.id] >= leaders and there - lost >= need:
                return [domain, *domains[:i], *domains[i + 1 :]]
        return domains

    def _descend(self, level: int, chosen: list[Domain]) -> list[Domain]:
        """From the chosen domains down to leaves, as few as hold everything (phase 2b)."""
        wanted = self._wanted
        chosen = self._fewest(chosen, wanted.count, wanted.leaders, wanted.size, slices=True)
        while level < wanted.slice_level:
            below = sorted((child for domain in chosen for child in domain.children), key=self._order)
            chosen = self._fewest(below, wanted.count, wanted.leaders, wanted.size, slices=True)
            level += 1
        while level < len(self._forest.levels) - 1:
            size = wanted.inner.get(level + 1, 1)
            children: list[Domain] = []
            for domain in chosen:
                below = sorted(domain.children, key=self._order)
                for child in below if size > 1 else ():
                    self._slices[child.id] = self._pods[child.id] // size
                    self._slices_beside[child.id] = self._beside[child.id] // size
                pods, leaders = self._pods[domain.id], self._leads[domain.id]
                children += self._fewest(below, pods, leaders, size, slices=size > 1)
            chosen = children
            level += 1
        return chosen

    def _fewest(self, domains: list[Domain], count: int, leaders: int, size: int, *, slices: bool) -> list[Domain]:
        """Of ``domains`` in order as few as hold the pods; what each gets overwrites its counts. None where they
        don't."""
        domains = self._prioritised(domains, count, leaders, size, slices=slices)
        rest, taken, leads = count // size if slices else count, list[Domain](), self._leads
        for i, first in enumerate(domains):
            domain, beside = first, leaders > 0
            capacity = self._capacity(domain, leaders, slices=slices)
            fits = capacity >= rest and (not beside or leads[domain.id] >= leaders)
            if fits and not self._wanted.least_free:
                domain = self._best(domains[i:], rest, leaders, slices=slices)
                capacity = self._capacity(domain, leaders, slices=slices)
            number = domain.id
            if not beside:
                leads[number] = 0
            gets = min(capacity, rest)
            done = capacity >= rest and leads[number] >= leaders
            if beside:
                if not done:
                    (self._slices_beside if slices else self._beside)[number] = gets
                leads[number] = min(leads[number], leaders)
                leaders -= leads[number]
            if slices:
                self._slices[number] = gets
            self._pods[number] = gets * size if slices else gets
            rest -= gets
            taken.append(domain)
            if done:
                return taken
        return []


def fit(requests: Sequence[tuple[str, int]], left: Amounts) -> int:
    """How many units of ``requests``, all above 0."""
    fewest: int | None = None
    for name, amount in requests:
        units = left.get(name, 0) // amount
        if units <= 0:
            return 0
        if fewest is None or units < fewest:
            fewest = units
    return fewest or 0


def _short(wanted: Wanted, fits: int) -> str:
    unit = "pods" if wanted.size == 1 else f"slices of {wanted.size} pods"
    return f"only {max(0, fits)} of {wanted.count // wanted.size} {unit} fit"
