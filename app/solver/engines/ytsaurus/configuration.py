"""A configuration as a pool tree: who is whose child, what is guaranteed, limited and inherited, which flags count."""

from collections.abc import Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.solver.compiled import ROOTLESS, Tree, compile_tree
from app.solver.engines.ytsaurus.reading import Steps, Where
from app.solver.engines.ytsaurus.settings import (
    OperationSettings,
    PoolSettings,
    TreeSettings,
    pool_settings,
    tree_settings,
)
from app.solver.model.base import UNLIMITED, QuantityError, parse_quantity, scale_of
from app.solver.model.configuration import Configuration, Place, Queue, quotas
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.question import safe_point

RESOURCES = ("user_slots", "cpu", "gpu", "memory", "network")
"""YTsaurus' own resources, in its fixed order; others follow in the order of their names."""


WEIGHTLESS = "YTsaurus takes no weight of 0: leave the weight out, or give a small one"


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a pool has in the end: its own setting, else its nearest ancestor's, else the tree's."""

    tolerance: float
    timeout: int
    enable_aggressive_starvation: bool
    allow_aggressive: bool
    allow_normal: bool
    non_preemptible: Steps


@dataclass(frozen=True, slots=True)
class PoolColumns:
    """What pools inherit, and where they stand, as columns. ``protects``: whether ``non_preemptible`` names any
    resource; ``parent``, ``depth``: with the implicit root as the last row, its own parent, at depth -1;
    ``left``: place of each pool among them in a depth-first walk that notes a pool when it leaves it."""

    tolerance: NDArray[np.float64]
    timeout: NDArray[np.int64]
    enable_aggressive_starvation: NDArray[np.bool_]
    allow_aggressive: NDArray[np.bool_]
    allow_normal: NDArray[np.bool_]
    protects: NDArray[np.bool_]
    parent: NDArray[np.int64]
    depth: NDArray[np.int64]
    left: NDArray[np.int64]

    @staticmethod
    def of(tree: Tree, inherited: list[Inherited]) -> "PoolColumns":
        root = len(tree)
        return PoolColumns(
            tolerance=np.array([pool.tolerance for pool in inherited], float),
            timeout=np.array([pool.timeout for pool in inherited], np.int64),
            enable_aggressive_starvation=np.array([pool.enable_aggressive_starvation for pool in inherited], bool),
            allow_aggressive=np.array([pool.allow_aggressive for pool in inherited], bool),
            allow_normal=np.array([pool.allow_normal for pool in inherited], bool),
            protects=np.array([bool(pool.non_preemptible) for pool in inherited], bool),
            parent=np.array([root if above == ROOTLESS else above for above in tree.parent] + [root], np.int64),
            depth=np.array([*tree.depth, -1], np.int64),
            left=_left(tree),
        )


def _left(tree: Tree) -> NDArray[np.int64]:
    walk: list[int] = []
    stack = [(pool, False) for pool in reversed(tree.roots)]
    while stack:
        pool, done = stack.pop()
        if done:
            walk.append(pool)
        else:
            stack.append((pool, True))
            stack.extend((child, False) for child in reversed(tree.children[pool]))
    out = np.empty(len(tree), np.int64)
    out[np.array(walk, np.int64)] = np.arange(len(walk))
    return out


@dataclass(frozen=True, slots=True)
class CompiledConfiguration:
    """A compiled configuration. Lists are indexed by pool, in document order; resource maps are in integer steps.

    ``weights``: None where none was given. ``resources``: every resource that the configuration names. ``places``: by
    pool and resource where the quota stands in the configuration.
    """

    settings: TreeSettings
    tree: Tree
    pools: list[PoolSettings]
    inherited: list[Inherited]
    columns: PoolColumns = field(compare=False, repr=False)
    weights: list[float | None]
    guaranteed: list[Steps]
    limits: list[Steps]
    resources: list[str]
    places: list[dict[str, Place]]

    def is_inner(self, pool: int) -> bool:
        """Whether ``pool`` has child pools."""
        return bool(self.tree.children[pool])


def compile_configuration(configuration: Configuration) -> CompiledConfiguration:
    """Compile. Raises InvalidInput with every problem."""
    queues = configuration.queues
    settings, problems = tree_settings(configuration.settings.ytsaurus)
    pools, more = pool_settings(queues)
    problems += more
    guaranteed: list[Steps] = []
    limits: list[Steps] = []
    for i, queue in enumerate(queues):
        safe_point()
        quota, limit = _quota(queue, ("configuration", "queues", i), problems)
        if queue.has_weight and queue.weight == 0:
            problems.append(Problem(pointer=pointer("configuration", "queues", i, "weight"), detail=WEIGHTLESS))
        guaranteed.append(quota)
        limits.append(_smallest(limit, pools[i].limits or {}))
    tree = compile_tree(queues)
    if problems:
        raise InvalidInput(problems)
    inherited = _inherit(tree, settings, pools)
    return CompiledConfiguration(
        settings=settings,
        tree=tree,
        pools=pools,
        inherited=inherited,
        columns=PoolColumns.of(tree, inherited),
        weights=[queue.weight if queue.has_weight else None for queue in queues],
        guaranteed=guaranteed,
        limits=limits,
        resources=_resources(settings, pools, guaranteed, limits),
        places=[
            {entry.resource: entry.where for entry in quotas(queue, ("queues", i))} for i, queue in enumerate(queues)
        ],
    )


MOST_RESOURCES = 64
"""Names: what an operation takes of a suggestion bends at most once for each, so that it is kept by their square."""


def ordered(names: Set[str], where: str) -> list[str]:
    """``names`` in YTsaurus' order, others after them by name: no answer depends on the order of a request. Raises
    InvalidInput where there are too many, ``where`` they come from."""
    if len(names) > MOST_RESOURCES:
        raise InvalidInput([Problem(pointer=where, detail=f"more than {MOST_RESOURCES} resource names")])
    return [name for name in RESOURCES if name in names] + sorted(names - set(RESOURCES))


def _inherit(tree: Tree, settings: TreeSettings, pools: list[PoolSettings]) -> list[Inherited]:
    root = Inherited(
        tolerance=settings.tolerance,
        timeout=settings.timeout,
        enable_aggressive_starvation=settings.enable_aggressive_starvation,
        allow_aggressive=True,
        allow_normal=True,
        non_preemptible=settings.non_preemptible,
    )
    out: list[Inherited] = [root] * len(tree)
    for i in tree.top_down:
        safe_point()
        above = root if tree.parent[i] == ROOTLESS else out[tree.parent[i]]
        own = pools[i]
        out[i] = Inherited(
            tolerance=above.tolerance if own.tolerance is None else own.tolerance,
            timeout=above.timeout if own.timeout is None else own.timeout,
            enable_aggressive_starvation=(
                above.enable_aggressive_starvation
                if own.enable_aggressive_starvation is None
                else own.enable_aggressive_starvation
            ),
            allow_aggressive=above.allow_aggressive if own.allow_aggressive is None else own.allow_aggressive,
            allow_normal=above.allow_normal and own.allow_normal,
            non_preemptible=above.non_preemptible if own.non_preemptible is None else own.non_preemptible,
        )
    return out


def _quota(queue: Queue, where: Where, problems: list[Problem]) -> tuple[Steps, Steps]:
    """Strong guarantees and resource limits of a pool."""
    guaranteed: Steps = {}
    limits: Steps = {}
    for g, group in enumerate(queue.resource_groups or ()):
        if len(group.flavors) > 1:
            here = pointer(*where, "resource_groups", g, "flavors", 1)
            problems.append(Problem(pointer=here, detail="pools of YTsaurus know no flavors: give one"))
    for _, resource, quota, here in quotas(queue, where):
        if quota.guaranteed == UNLIMITED:
            problems.append(Problem(pointer=pointer(*here, "guaranteed"), detail="a strong guarantee has an amount"))
        elif quota.guaranteed is not None:
            _add(guaranteed, resource, quota.guaranteed, (*here, "guaranteed"), problems)
        if quota.limit is not None and quota.limit != UNLIMITED:
            _add(limits, resource, quota.limit, (*here, "limit"), problems)
    return guaranteed, limits


def _add(into: Steps, resource: str, value: int | float | str, where: Where, problems: list[Problem]) -> None:
    try:
        into[resource] = parse_quantity(value, scale_of(resource))
    except QuantityError as error:
        problems.append(Problem(pointer=pointer(*where), detail=str(error)))


def _smallest(own: Steps, other: Steps) -> Steps:
    return own | {name: min(value, own.get(name, value)) for name, value in other.items()}


def _resources(
    settings: TreeSettings, pools: list[PoolSettings], guaranteed: list[Steps], limits: list[Steps]
) -> list[str]:
    names = {settings.main_resource, *settings.non_preemptible, *settings.min_spare}
    for steps in (*guaranteed, *limits):
        names.update(steps)
    for pool in pools:
        integral = pool.shares.integral
        names.update(pool.non_preemptible or (), pool.limits_tolerance or (), integral.flow, integral.burst)
    return ordered(names, "/configuration/queues")


def without_donor(config: CompiledConfiguration) -> set[int]:
    """Priority pools without a donor above: their priority does not count. Another priority pool in between counts
    for itself."""
    has_donor: dict[int, bool] = {ROOTLESS: False}
    out: set[int] = set()
    for i in config.tree.top_down:
        own, above = config.pools[i].shares, has_donor[config.tree.parent[i]]
        if own.priority and not above:
            out.add(i)
        has_donor[i] = own.donor or (above and not own.priority)
    return out


def nested_promises(config: CompiledConfiguration) -> set[int]:
    """Pools that ask for promised shares below another that does: the uppermost one counts."""
    inside: dict[int, bool] = {ROOTLESS: False}
    out: set[int] = set()
    for i in config.tree.top_down:
        above = inside[config.tree.parent[i]]
        if above and config.pools[i].shares.promised:
            out.add(i)
        inside[i] = above or config.pools[i].shares.promised
    return out


def promised_tops(config: CompiledConfiguration) -> list[int]:
    """The uppermost pools that ask for promised shares."""
    nested = nested_promises(config)
    return [i for i, pool in enumerate(config.pools) if pool.shares.promised and i not in nested]


def operation_tolerance(pool: Inherited, own: OperationSettings) -> float:
    """An operation may only be less demanding than its pool: the smaller tolerance."""
    return pool.tolerance if own.tolerance is None else min(own.tolerance, pool.tolerance)


def operation_timeout(pool: Inherited, own: OperationSettings) -> int:
    """An operation may only be more patient than its pool: the longer timeout, microseconds."""
    return pool.timeout if own.timeout is None else max(own.timeout, pool.timeout)


def operation_threshold(pool: Inherited, own: OperationSettings) -> Steps:
    """An operation may only lower its pool's threshold, or name a resource that the pool leaves out."""
    if not own.non_preemptible:
        return pool.non_preemptible
    return pool.non_preemptible | {
        name: min(value, pool.non_preemptible.get(name, value)) for name, value in own.non_preemptible.items()
    }
