"""Placement: in which domains the pods of a pod set go, and whether they all fit.

Source: Kueue ``pkg/cache/scheduler/tas_flavor_snapshot.go``: ``fillInCounts`` (what fits where),
``findLevelWithFitDomains`` (which domains are taken), ``updateCountsToMinimumGeneric`` (how few of those below do).
Best fit takes the smallest domain that holds the rest, least free capacity the fullest ones first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.solver import kubernetes
from app.solver.engines.kueue.topology.forest import Amounts, Domain, Forest
from app.solver.model.kueue import TopologyRequest
from app.solver.model.quantity import parse, scale_of
from app.solver.model.state import Node, Task

PODS = "pods"
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
        requests = {name: parse(value, scale_of(name)) for name, value in task.requests.items()}
        requests[PODS] = requests.get(PODS, 0) + 1
        return PodSet(task, count, requests, task.topology_request)


@dataclass(slots=True)
class _Wanted:
    """A request as the levels of one forest have it. ``inner``: by level, the size of which pods below a slice come in
    multiples."""

    count: int
    leaders: int
    level: int
    slice_level: int
    size: int
    required: bool
    least_free: bool
    inner: dict[int, int] = field(default_factory=dict[int, int])


def place(
    forest: Forest, remaining: Remaining, workers: PodSet, leader: PodSet | None = None
) -> tuple[Placed, Placed] | str:
    """Leaves for the workers and for their leader, if there is one; or why they do not all fit."""
    wanted = _wanted(forest, workers, leader)
    if isinstance(wanted, str):
        return wanted
    if not forest.leaves:
        return f"no topology domains at level: {forest.levels[wanted.level]}"
    _count(forest, remaining, workers, leader, wanted)
    chosen = _choose(forest, wanted, wanted.level)
    if isinstance(chosen, str):
        return chosen
    found = _descend(forest, wanted, *chosen)
    return (
        {domain.leaf: domain.pods for domain in found if domain.pods > 0},
        {domain.leaf: domain.leader for domain in found if domain.leader > 0},
    )


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


def _wanted(forest: Forest, workers: PodSet, leader: PodSet | None) -> _Wanted | str:
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
            return "slice topology requested, but slice size not provided"
        if key not in levels:
            return f"no requested topology level for slices: {key}"
        size, slice_level = given, levels.index(key)
    if level > slice_level:
        return f"slices of level {levels[slice_level]} are above the level {levels[level]} of their pod set"
    unconstrained = request is None or not asks(request) or bool(request.unconstrained)
    wanted = _Wanted(
        workers.count, 0 if leader is None else 1, level, slice_level, size,
        required=request is not None and request.required is not None, least_free=unconstrained or only_slices,
    )  # fmt: skip
    before = size
    at = slice_level
    for key, given in layers[1:]:
        if key not in levels:
            return f"no requested topology level for a further layer of slices: {key}"
        below = levels.index(key)
        if below <= at:
            return f"a further layer of slices, {key}, must be below {levels[at]}"
        if given is None or before % given:
            return f"the size {given} of a further layer of slices must divide {before}"
        wanted.inner |= dict.fromkeys(range(at + 1, below + 1), given)
        before, at = given, below
    return wanted


def _count(forest: Forest, remaining: Remaining, workers: PodSet, leader: PodSet | None, wanted: _Wanted) -> None:
    """What fits where (phase 1)."""
    lowest = len(forest.levels) - 1
    requests = [(name, amount) for name, amount in workers.requests.items() if amount > 0]
    for domain in forest.leaves:
        node = forest.nodes[domain.leaf]
        domain.leader = domain.slices = domain.slices_beside = 0
        if node is not None and not _may_use(workers.task, node, forest):
            domain.pods = domain.pods_beside = 0
            continue
        left = remaining(domain.leaf)
        domain.pods = domain.pods_beside = _fit(requests, left)
        if leader is not None and _fit([pair for pair in leader.requests.items() if pair[1] > 0], left) > 0:
            domain.leader = 1
            beside = {name: amount - leader.requests.get(name, 0) for name, amount in left.items()}
            domain.pods_beside = _fit(requests, beside)
        if wanted.slice_level == lowest:
            domain.slices, domain.slices_beside = domain.pods // wanted.size, domain.pods_beside // wanted.size
    for level in range(lowest - 1, -1, -1):
        for domain in forest.by_level[level]:
            _sum_up(domain, wanted)


def _sum_up(domain: Domain, wanted: _Wanted) -> None:
    """From its children. With a leader those count that can take one, and of these the one that loses least by it."""
    inner = wanted.inner.get(domain.level + 1, 1)
    pods = slices = leader = 0
    lost: int | None = None
    lost_slices = 0
    for child in domain.children:
        mine, beside = child.pods // inner * inner, child.pods_beside // inner * inner
        pods += mine
        slices += child.slices
        if not wanted.leaders or child.leader:
            fewer = child.slices - child.slices_beside
            lost_slices = fewer if lost is None else min(lost_slices, fewer)
            lost = mine - beside if lost is None else min(lost, mine - beside)
        leader = max(leader, child.leader)
    domain.pods, domain.slices, domain.leader = pods, slices, leader
    domain.pods_beside = 0 if lost is None else pods - lost
    domain.slices_beside = 0 if lost is None else slices - lost_slices
    if domain.level == wanted.slice_level:
        domain.slices, domain.slices_beside = pods // wanted.size, domain.pods_beside // wanted.size


def _may_use(task: Task, node: Node, forest: Forest) -> bool:
    tolerations = [*(task.tolerations or ()), *forest.tolerations]
    return (
        kubernetes.untolerated(node.taints, tolerations) is None
        and kubernetes.selects(task.node_selector or {}, node.labels)
        and (not task.node_affinity or kubernetes.matches_any(task.node_affinity, node.labels))
    )


def _fit(requests: Sequence[tuple[str, int]], left: Amounts) -> int:
    """How many units of ``requests``, all above 0."""
    return max(0, min(left.get(name, 0) // amount for name, amount in requests))


def _order(wanted: _Wanted) -> Callable[[Domain], tuple[int, int, tuple[str, ...]]]:
    sign = 1 if wanted.least_free else -1
    return lambda domain: (sign * domain.slices, domain.pods, domain.values)


def _order_beside(wanted: _Wanted) -> Callable[[Domain], tuple[int, int, int, tuple[str, ...]]]:
    sign = 1 if wanted.least_free else -1
    return lambda domain: (-domain.leader, sign * domain.slices_beside, domain.pods_beside, domain.values)


def _capacity(domain: Domain, leaders: int, *, slices: bool) -> int:
    if slices:
        return domain.slices_beside if leaders else domain.slices
    return domain.pods_beside if leaders else domain.pods


def _best(domains: Sequence[Domain], need: int, leaders: int, *, slices: bool) -> Domain:
    """The first of the smallest that hold all of it; the first of all where none does."""
    enough = [d for d in domains if d.leader >= leaders and _capacity(d, leaders, slices=slices) >= need]
    return min(enough, key=lambda d: _capacity(d, leaders, slices=slices)) if enough else domains[0]


def _choose(forest: Forest, wanted: _Wanted, level: int) -> tuple[int, list[Domain]] | str:
    """Domains of ``level`` or above that hold everything (phase 2a)."""
    need, leaders = wanted.count // wanted.size, wanted.leaders
    domains = sorted(forest.by_level[level], key=_order_beside(wanted))
    top = domains[0]
    if not wanted.least_free and top.slices_beside >= need and top.leader >= leaders:
        top = _best(domains, need, leaders, slices=True)
    if wanted.least_free:
        for domain in domains:
            if domain.leader >= leaders and _capacity(domain, leaders, slices=True) >= need:
                return level, [domain]
        if wanted.required:
            return _short(wanted, max(domain.slices for domain in domains))
    if top.slices_beside >= need and top.leader >= leaders:
        return level, [top]
    if wanted.required:
        return _short(wanted, top.slices)
    if level > 0 and not wanted.least_free:
        return _choose(forest, wanted, level - 1)
    return _several(wanted, level, _prioritised(domains, wanted.count, leaders, wanted.size, slices=True))


def _several(wanted: _Wanted, level: int, domains: list[Domain]) -> tuple[int, list[Domain]] | str:
    need, leaders = wanted.count // wanted.size, wanted.leaders
    taken: list[Domain] = []
    rest, at = need, 0
    while leaders > 0 and at < len(domains) and domains[at].leader > 0:
        domain = domains[at]
        if not wanted.least_free and domain.slices_beside >= rest:
            domain = _best(domains[at:], rest, leaders, slices=True)
        taken.append(domain)
        leaders -= domain.leader
        rest -= domain.slices_beside
        at += 1
    if leaders > 0:
        return _short(wanted, 0)
    others = sorted(domains[at:], key=_order(wanted))
    for i, domain in enumerate(others):
        if rest <= 0:
            break
        if not wanted.least_free and domain.slices >= rest:
            domain = _best(others[i:], rest, 0, slices=True)  # noqa: PLW2901
        taken.append(domain)
        rest -= domain.slices
    return _short(wanted, need - rest) if rest > 0 else (level, taken)


def _short(wanted: _Wanted, fits: int) -> str:
    unit = "pods" if wanted.size == 1 else f"slices of {wanted.size} pods"
    return f"only {max(0, fits)} of {wanted.count // wanted.size} {unit} fit"


def _prioritised(domains: list[Domain], count: int, leaders: int, size: int, *, slices: bool) -> list[Domain]:
    """With a leader: the first domain goes first that can take it and still leaves room for all."""
    if not leaders or len(domains) < 2:
        return domains
    need = count // size if slices else count
    there = sum(domain.slices if slices else domain.pods for domain in domains)
    for i, domain in enumerate(domains):
        lost = domain.slices - domain.slices_beside if slices else domain.pods - domain.pods_beside
        if domain.leader >= leaders and there - lost >= need:
            return [domain, *domains[:i], *domains[i + 1 :]]
    return domains


def _descend(forest: Forest, wanted: _Wanted, level: int, chosen: list[Domain]) -> list[Domain]:
    """From the chosen domains down to leaves, as few as hold everything (phase 2b)."""
    order = _order(wanted)
    chosen = _fewest(chosen, wanted, wanted.count, wanted.leaders, wanted.size, slices=True)
    while level < wanted.slice_level:
        below = sorted((child for domain in chosen for child in domain.children), key=order)
        chosen = _fewest(below, wanted, wanted.count, wanted.leaders, wanted.size, slices=True)
        level += 1
    while level < len(forest.levels) - 1:
        size = wanted.inner.get(level + 1, 1)
        found: list[Domain] = []
        for domain in chosen:
            below = sorted(domain.children, key=order)
            if size > 1:
                for child in below:
                    child.slices, child.slices_beside = child.pods // size, child.pods_beside // size
            found += _fewest(below, wanted, domain.pods, domain.leader, size, slices=size > 1)
        chosen = found
        level += 1
    return chosen


def _fewest(
    domains: list[Domain], wanted: _Wanted, count: int, leaders: int, size: int, *, slices: bool
) -> list[Domain]:
    """Of ``domains`` in order as few as hold the pods; what each gets overwrites its counts. None where they don't."""
    domains = _prioritised(domains, count, leaders, size, slices=slices)
    rest, taken = count // size if slices else count, list[Domain]()
    for i, first in enumerate(domains):
        domain, beside = first, leaders > 0
        capacity = _capacity(domain, leaders, slices=slices)
        fits = capacity >= rest and (not beside or domain.leader >= leaders)
        if fits and not wanted.least_free:
            domain = _best(domains[i:], rest, leaders, slices=slices)
            capacity = _capacity(domain, leaders, slices=slices)
        if not beside:
            domain.leader = 0
        gets = min(capacity, rest)
        done = capacity >= rest and domain.leader >= leaders
        if beside:
            if not done and slices:
                domain.slices_beside = gets
            elif not done:
                domain.pods_beside = gets
            domain.leader = min(domain.leader, leaders)
            leaders -= domain.leader
        if slices:
            domain.slices = gets
            domain.pods = gets * size
        else:
            domain.pods = gets
        rest -= gets
        taken.append(domain)
        if done:
            return taken
    return []
