"""A Configuration compiled for Kueue: cohort tree, quota tables, policies of queues with Kueue's defaults in place."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from app.solver.compiled import ROOTLESS, Tree, compile_tree
from app.solver.model import kueue as model
from app.solver.model.base import UNLIMITED, Quantity, parse_quantity, scale_of
from app.solver.model.configuration import Configuration, Flavor, Queue, Quota
from app.solver.model.problems import InvalidInput, Problem, pointer

FlavorResource = tuple[str, str]
"""(flavor, resource)."""

Field = Literal["nominal", "borrowing", "lending"]

NOWHERE = -1
MAX_INT64 = 2**63 - 1
"""Kueue's quantities are int64; as many steps or more are no limit."""
MAX_CELLS = 4_000_000


class Limits:
    """What one node says of one flavor-resource, in steps; ``None``: no such limit."""

    __slots__ = ("borrowing", "lending", "nominal")

    def __init__(self, nominal: int, borrowing: int | None, lending: int | None) -> None:
        self.nominal = nominal
        self.borrowing = borrowing
        self.lending = lending


class Quotas:
    """The quota side of the tree; immutable once built. Indexed by cell:

    ``nominal``  own quota; ``subtree``  own plus what children lend; ``local``  the part of ``subtree`` that is
    never lent; ``borrowing``  own borrowing limit or None; ``lending`` likewise; ``potential``  available with
    nothing used; ``above``  the parent's cell, NOWHERE at a root; ``node`` and ``fr``  what the cell is of.

    ``frs``: flavor-resources by index; ``cells[node]``: its cells by flavor-resource; ``own[node]``: the
    flavor-resources with quota in its subtree, in a fixed order (Kueue's SubtreeQuota keys). ``lendable`` and
    ``share_terms`` remember what ``share`` has worked out from the quotas alone.
    """

    __slots__ = (
        "above", "borrowing", "cells", "fr", "fr_index", "frs", "lendable", "lending", "local", "node", "nominal",
        "own", "potential", "share_terms", "subtree", "tree",
    )  # fmt: skip

    def __init__(self, tree: Tree, frs: list[FlavorResource], limits: list[dict[int, Limits]]) -> None:
        self.tree = tree
        self.frs = frs
        self.fr_index: dict[FlavorResource, int] = {fr: i for i, fr in enumerate(frs)}
        self.cells: list[dict[int, int]] = [{} for _ in tree.names]
        self.nominal: list[int] = []
        self.subtree: list[int] = []
        self.local: list[int] = []
        self.borrowing: list[int | None] = []
        self.lending: list[int | None] = []
        self.potential: list[int] = []
        self.above: list[int] = []
        self.node: list[int] = []
        self.fr: list[int] = []
        self.lendable: dict[int, dict[str, int]] = {}
        self.share_terms: dict[int, list[tuple[int, list[int]]]] = {}
        self._build(limits)
        self.own: list[tuple[int, ...]] = [tuple(of) for of in self.cells]

    def _build(self, limits: list[dict[int, Limits]]) -> None:
        tree = self.tree
        present: list[set[int]] = [set(of) for of in limits]
        for node in reversed(tree.top_down):
            if tree.parent[node] != ROOTLESS:
                present[tree.parent[node]] |= present[node]
        if sum(map(len, present)) > MAX_CELLS:
            detail = f"more than {MAX_CELLS} pairs of queue and flavor-resource"
            raise InvalidInput([Problem(pointer="/configuration/queues", detail=detail)])
        for node in tree.top_down:
            for fr in sorted(present[node]):
                self._new_cell(node, fr, limits[node].get(fr))
        for cell in reversed(range(len(self.node))):  # every cell after those of its children
            self._close(cell)
        for cell in range(len(self.node)):
            self.potential[cell] = self._potential(cell)

    def _new_cell(self, node: int, fr: int, of: Limits | None) -> int:
        cell = len(self.node)
        parent = self.tree.parent[node]
        self.cells[node][fr] = cell
        self.node.append(node)
        self.fr.append(fr)
        self.above.append(NOWHERE if parent == ROOTLESS else self.cells[parent][fr])
        nominal = of.nominal if of else 0
        self.nominal.append(nominal)
        self.subtree.append(nominal)
        self.local.append(0)
        self.borrowing.append(of.borrowing if of else None)
        self.lending.append(of.lending if of else None)
        self.potential.append(0)
        return cell

    def _close(self, cell: int) -> None:
        """Children are done: settle what is never lent, and give the rest to the parent."""
        lending = self.lending[cell]
        self.local[cell] = 0 if lending is None else max(0, self.subtree[cell] - lending)
        if self.above[cell] != NOWHERE:
            self.subtree[self.above[cell]] += self.subtree[cell] - self.local[cell]

    def _potential(self, cell: int) -> int:
        above = self.above[cell]
        if above == NOWHERE:
            return self.subtree[cell]
        most = self.local[cell] + self.potential[above]
        limit = self.borrowing[cell]
        return most if limit is None else min(most, self.subtree[cell] + limit)

    def missing(self, pairs: Iterable[tuple[int, int]]) -> bool:
        """Whether some (node, flavor-resource) pair has no cell yet."""
        return any(fr not in self.cells[node] for node, fr in pairs)

    def extended(self, frs: list[FlavorResource], pairs: Iterable[tuple[int, int]]) -> "Quotas":
        """A copy with a cell for each pair and every ancestor, without quota. Existing cells keep their index.

        ``frs`` must start with the present ones."""
        new = object.__new__(Quotas)
        new.tree, new.own = self.tree, self.own
        new.lendable, new.share_terms = self.lendable, self.share_terms
        new.frs, new.fr_index = frs, {fr: i for i, fr in enumerate(frs)}
        new.cells = [dict(of) for of in self.cells]
        for name in ("nominal", "subtree", "local", "borrowing", "lending", "potential", "above", "node", "fr"):
            setattr(new, name, list(getattr(self, name)))
        for node, fr in pairs:
            for above in reversed(self.tree.path(node)):
                if fr not in new.cells[above]:
                    cell = new._new_cell(above, fr, None)
                    new.potential[cell] = new._potential(cell)
        return new

    def changed(self, node: int, fr: int, field: Field, value: int) -> "Quotas":
        """A copy with one limit of one cell set to ``value``: another configuration, thought through to the end."""
        new = self.extended(self.frs, [(node, fr)])
        new.lendable, new.share_terms = {}, {}
        getattr(new, field)[new.cells[node][fr]] = value
        new.own = list(self.own)
        for above in self.tree.path(node):
            new.own[above] = tuple(sorted({*new.own[above], fr}))
        column = [of[fr] for member in new.tree.top_down if fr in (of := new.cells[member])]
        for cell in column:
            new.subtree[cell] = new.nominal[cell]
        for cell in reversed(column):
            new._close(cell)
        for cell in column:
            new.potential[cell] = new._potential(cell)
        return new

    def potential_available(self, node: int, fr: int) -> int:
        """The most that ``node`` could ever have of ``fr``, quotas and limits alone."""
        while node != ROOTLESS:
            cell = self.cells[node].get(fr)
            if cell is not None:
                return self.potential[cell]
            node = self.tree.parent[node]
        return 0


NO_FUNGIBILITY = model.FlavorFungibility()
NO_PREEMPTION = model.Preemption()
DEFAULT_STRATEGIES: tuple[model.Strategy, ...] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


@dataclass(frozen=True, slots=True)
class Policy:
    """What a ClusterQueue may preempt, with Kueue's defaults in place. ``threshold`` None: no threshold."""

    within_cluster_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: bool = False
    threshold: int | None = None
    fungibility: model.FlavorFungibility = NO_FUNGIBILITY
    strict_fifo: bool = False
    preemption: model.Preemption = NO_PREEMPTION


def policies(queues: list[Queue]) -> list[Policy]:
    """Queues share few policies between them: equal blocks are recognised by their encoding."""
    encode = msgspec.msgpack.Encoder().encode
    known: dict[bytes, Policy] = {}
    out: list[Policy] = []
    for queue in queues:
        key = encode(queue.kueue)
        policy = known.get(key)
        if policy is None:
            policy = known[key] = Policy() if queue.kueue is None else _policy(queue.kueue)
        out.append(policy)
    return out


def _policy(block: model.Queue) -> Policy:
    preemption = block.preemption or NO_PREEMPTION
    borrow = preemption.borrow_within_cohort or model.BorrowWithinCohort()
    return Policy(
        within_cluster_queue=preemption.within_cluster_queue,
        reclaim_within_cohort=preemption.reclaim_within_cohort,
        borrow_within_cohort=borrow.policy == "LowerPriority",
        threshold=borrow.max_priority_threshold,
        fungibility=block.flavor_fungibility or NO_FUNGIBILITY,
        strict_fifo=block.queueing_strategy == "StrictFIFO",
        preemption=preemption,
    )


DEFAULT_FLAVOR = "default"


@dataclass(frozen=True, slots=True)
class Group:
    """A resource group: all its resources take one flavor, tried in this order."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompiledConfiguration:
    """Immutable. Lists by node of ``tree``; implicit cohorts come after the listed queues.

    ``height``: the longest way down to a queue, 0 for a queue or a childless cohort. ``groups``: resource groups in
    order; ``covering``: for each covered resource its group's index. ``strategies``: fair sharing, in order.
    ``penalises``, ``has_costs``: whether some queue sets a long runner penalty, or disruption costs (KEP-83).
    ``inactive``: why a ClusterQueue admits nothing; it is in none of the lists of queues then, as it is not in Kueue's
    snapshot. ``drains``: nodes whose work is evicted.
    ``usage_based``: whether work of a ClusterQueue goes by what LocalQueues have consumed, which counts as
    ``admission_fair_sharing`` says; None where no queue does.
    ``topologies``: the levels of every flavor that has a topology; ``only_topologies``: whether all flavors of a queue
    do. ``refusals``: remembers which flavors pod sets can't use, by what they select.
    """

    source: Configuration
    tree: Tree
    quotas: Quotas
    is_cohort: list[bool]
    child_queues: list[list[int]]
    child_cohorts: list[list[int]]
    height: list[int]
    root: list[int]
    weight: list[float]
    policy: list[Policy]
    groups: list[tuple[Group, ...]]
    covering: list[dict[str, int]]
    flavors: dict[str, Flavor]
    flavor_names: frozenset[str]
    fair_sharing: bool
    strategies: tuple[model.Strategy, ...]
    release: model.Release
    tree_queues: dict[int, list[int]]
    penalises: bool
    has_costs: bool
    topologies: dict[str, tuple[str, ...]]
    only_topologies: list[bool]
    inactive: list[str | None]
    drains: frozenset[int]
    ignores_undeclared: bool
    admission_fair_sharing: model.AdmissionFairSharing | None
    usage_based: list[bool]
    refusals: dict[bytes, dict[str, str | None]] = field(default_factory=dict)

    def queues_of(self, node: int) -> list[int]:
        """The ClusterQueues of the tree that ``node`` is in."""
        return self.tree_queues[self.root[node]]


def compile_configuration(configuration: Configuration) -> CompiledConfiguration:
    """Compile. Raises InvalidInput or QuantityError."""
    queues = configuration.queues
    tree = compile_tree(queues, implicit_parents=True)
    implicit = len(tree) - len(queues)
    is_cohort = [_is_cohort(queue, tree, i) for i, queue in enumerate(queues)] + [True] * implicit
    inactive = [None if is_cohort[i] else _inactive(queue) for i, queue in enumerate(queues)] + [None] * implicit
    groups = [_groups(queue) for queue in queues] + [()] * implicit
    flavors = {f.name: f for f in configuration.flavors}
    named = {name for of in groups for group in of for name in group.flavors}
    topologies = _topologies(configuration)
    settings = configuration.settings.kueue or model.Settings()
    root = [-1] * len(tree)
    for node in tree.top_down:
        root[node] = node if tree.parent[node] < 0 else root[tree.parent[node]]
    tree_queues: dict[int, list[int]] = {}
    for node in range(len(tree)):
        if not is_cohort[node] and inactive[node] is None:
            tree_queues.setdefault(root[node], []).append(node)
    usage_based = [
        settings.admission_fair_sharing is not None and not is_cohort[i] and _usage_based(queue)
        for i, queue in enumerate(queues)
    ] + [False] * implicit
    return CompiledConfiguration(
        source=configuration,
        tree=tree,
        quotas=_quotas(queues, tree),
        is_cohort=is_cohort,
        child_queues=[[c for c in of if not is_cohort[c] and inactive[c] is None] for of in tree.children],
        child_cohorts=[[c for c in of if is_cohort[c]] for of in tree.children],
        height=_heights(tree, is_cohort, inactive),
        root=root,
        weight=[queue.weight for queue in queues] + [1.0] * implicit,
        policy=policies(queues) + [Policy()] * implicit,
        groups=groups,
        covering=[_covering(of) for of in groups],
        flavors=flavors,
        flavor_names=frozenset(flavors.keys() | named),
        fair_sharing=settings.fair_sharing,
        strategies=tuple(settings.preemption_strategies or DEFAULT_STRATEGIES),
        release=settings.release,
        tree_queues=tree_queues,
        penalises=any(_preemption(queue).long_runner_penalty is not None for queue in queues),
        has_costs=any(_preemption(queue).disruption_cost_milestones for queue in queues),
        topologies=topologies,
        only_topologies=[
            bool(topologies) and bool(of) and all(name in topologies for group in of for name in group.flavors)
            for of in groups
        ],
        inactive=inactive,
        drains=frozenset(
            i
            for i, queue in enumerate(queues)
            if inactive[i] and queue.kueue and queue.kueue.stop_policy == "HoldAndDrain"
        ),
        ignores_undeclared=settings.quota_check_strategy == "IgnoreUndeclared",
        admission_fair_sharing=settings.admission_fair_sharing if True in usage_based else None,
        usage_based=usage_based,
    )


def _usage_based(queue: Queue) -> bool:
    return queue.kueue is not None and queue.kueue.admission_mode == "UsageBasedAdmissionFairSharing"


def _inactive(queue: Queue) -> str | None:
    """Why the ClusterQueue admits nothing (Kueue: inactiveReason)."""
    block = queue.kueue
    if block is None or (block.stop_policy == "None" and block.inactive is None):
        return None
    if block.stop_policy == "None":
        return f"ClusterQueue {queue.name} is inactive: {block.inactive}"
    return f"ClusterQueue {queue.name} is stopped: its stop policy is {block.stop_policy}"


def _topologies(configuration: Configuration) -> dict[str, tuple[str, ...]]:
    """Raises InvalidInput where a flavor names a topology that is not there."""
    levels = {topology.name: tuple(topology.levels) for topology in configuration.topologies}
    missing = [(i, of.topology) for i, of in enumerate(configuration.flavors) if of.topology not in {None, *levels}]
    if missing:
        raise InvalidInput(
            Problem(pointer=pointer("configuration", "flavors", i, "topology"), detail=f"no topology {name!r}")
            for i, name in missing
        )
    return {of.name: levels[of.topology] for of in configuration.flavors if of.topology is not None}


def _preemption(queue: Queue) -> model.Preemption:
    return (queue.kueue.preemption if queue.kueue else None) or NO_PREEMPTION


def _is_cohort(queue: Queue, tree: Tree, node: int) -> bool:
    role = queue.kueue.role if queue.kueue else None
    return bool(tree.children[node]) if role is None else role == "cohort"


def _groups(queue: Queue) -> tuple[Group, ...]:
    if queue.quota:
        return (Group(tuple(sorted(queue.quota)), (DEFAULT_FLAVOR,)),)
    return tuple([Group(tuple(g.resources), tuple([f.name for f in g.flavors])) for g in queue.resource_groups or ()])


def _covering(groups: tuple[Group, ...]) -> dict[str, int]:
    """The first group that names a resource has it (Kueue: RGByResource)."""
    if len(groups) == 1:
        return dict.fromkeys(groups[0].resources, 0)
    return {resource: g for g in reversed(range(len(groups))) for resource in groups[g].resources}


def _heights(tree: Tree, is_cohort: list[bool], inactive: list[str | None]) -> list[int]:
    height = [0] * len(tree)
    for node in reversed(tree.top_down):
        for child in tree.children[node]:
            if inactive[child] is None:
                height[node] = max(height[node], height[child] + 1 if is_cohort[child] else 1)
    return height


def _quotas(queues: list[Queue], tree: Tree) -> Quotas:
    named = {(f.name, r) for q in queues for g in q.resource_groups or () for f in g.flavors for r in g.resources}
    named |= {(DEFAULT_FLAVOR, resource) for queue in queues for resource in queue.quota or ()}
    frs = sorted(named)
    index: dict[FlavorResource, int] = {fr: i for i, fr in enumerate(frs)}
    limits: list[dict[int, Limits]] = [{} for _ in tree.names]
    for node, queue in enumerate(queues):
        mine = limits[node]
        for resource, quota in (queue.quota or {}).items():
            mine[index[(DEFAULT_FLAVOR, resource)]] = _limits(quota, resource)
        for group in queue.resource_groups or ():
            for flavor in group.flavors:
                for resource in group.resources:
                    mine[index[(flavor.name, resource)]] = _limits(flavor.quota.get(resource), resource)
    return Quotas(tree, frs, limits)


def _limits(quota: Quota | None, resource: str) -> Limits:
    """``limit`` is what borrowing may not pass: nominal plus borrowing limit, in Kueue's terms."""
    if quota is None:
        return Limits(0, None, None)
    scale = scale_of(resource)
    nominal = _steps(quota.guaranteed, scale) or 0
    if quota.limit is None and quota.borrowing_limit is None and quota.lending_limit is None:
        return Limits(nominal, None, None)
    borrowing = _steps(quota.borrowing_limit, scale)
    limit = _steps(quota.limit, scale)
    if limit is not None and limit < MAX_INT64:
        most = max(0, limit - nominal)
        borrowing = most if borrowing is None else min(borrowing, most)
    return Limits(nominal, borrowing, _steps(quota.lending_limit, scale))


def _steps(value: Quantity | None, scale: int) -> int | None:
    if value is None:
        return None
    return MAX_INT64 if value == UNLIMITED else parse_quantity(value, scale)
