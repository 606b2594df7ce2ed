"""A configuration compiled for YuniKorn: one tree named root, guarantees and limits, settings, guarantee cells.

A *cell* is one guaranteed resource of one queue. Whether a queue is over its guarantee is the sign of its
cells' slack (guaranteed - used), so a decision keeps one integer a cell instead of copying queues.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from app.solver.compiled.resources import ResourceIndex
from app.solver.compiled.tree import ROOTLESS, Tree, compile_tree
from app.solver.engines.yunikorn.compile.rule_sets import RuleSet
from app.solver.engines.yunikorn.compile.settings import QueueSettings, effective
from app.solver.model import yunikorn as wire
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.quantity import UNLIMITED, QuantityError, parse, units
from app.solver.quotas import Place, PlacedQuota, quotas

ROOT = "root"
Amounts = dict[int, int]
"""Integer steps by resource index; a resource with 0 is named, one that is absent is not."""


@dataclass(frozen=True, slots=True)
class CompiledConfiguration:
    """Immutable. Everything is by queue index, in the order of the document.

    ``guaranteed``, ``limit``: None where nothing is configured or all of it is 0; the root's limit comes with the
    state. ``cells``: by queue, resource -> cell, for its own guarantee; ``path_cells``: by queue, resource -> the
    cells of every queue from the root down to it. ``guarantee_of``: by cell, the amount.
    """

    rules: RuleSet
    tree: Tree
    resources: ResourceIndex
    guaranteed: list[Amounts | None]
    limit: list[Amounts | None]
    blocks: list[wire.Queue | None]
    settings: list[QueueSettings]
    leaf: list[bool]
    paths: list[list[int]]
    cells: list[dict[int, int]]
    path_cells: list[dict[int, list[int]]]
    guarantee_of: list[int]
    cell_owner: list[tuple[int, int]]
    by_path: list[int]
    """Queue indices in the order of their paths: the order in which maps are walked."""
    rank: list[int]
    """By queue, its place in that order."""
    levels: dict[int, list[dict[int, list[int]] | None]] = field(
        default_factory=dict[int, list[dict[int, list[int]] | None]], init=False
    )
    """By asking queue, what ``guarantee.levels`` has found lately; a changed copy starts without."""


def compile_configuration(configuration: Configuration) -> CompiledConfiguration:
    """Raises InvalidInput with every problem."""
    queues = configuration.queues
    tree = compile_tree(queues)
    resources = ResourceIndex()
    problems = list(_tree_problems(tree, queues))
    for i in tree.roots:
        problems += _root_problems(queues[i], ("configuration", "queues", i))
    amounts = [_amounts(queue, ("configuration", "queues", i), resources, problems) for i, queue in enumerate(queues)]
    guaranteed, limit = [own[0] for own in amounts], [own[1] for own in amounts]
    if not problems:
        problems = list(_nesting_problems(tree, queues, resources, guaranteed, limit))
    if problems:
        raise InvalidInput(problems)
    settings = configuration.settings.yunikorn
    rules: RuleSet = settings.rules if settings is not None else "documented"
    cells, path_cells, owner = cells_of(tree, guaranteed)
    by_path = sorted(range(len(tree)), key=tree.names.__getitem__)
    return CompiledConfiguration(
        rules=rules, tree=tree, resources=resources, guaranteed=guaranteed, limit=limit,
        blocks=[q.yunikorn for q in queues], settings=effective(tree, [q.yunikorn for q in queues], rules),
        leaf=[tree.is_leaf(i) and not (q.yunikorn is not None and q.yunikorn.parent) for i, q in enumerate(queues)],
        paths=[tree.path(i) for i in range(len(tree))],
        cells=cells, path_cells=path_cells, guarantee_of=[(guaranteed[q] or {})[r] for q, r in owner],
        cell_owner=owner, by_path=by_path, rank=sorted(range(len(tree)), key=by_path.__getitem__),
    )  # fmt: skip


def _amounts(
    queue: Queue, at: Place, resources: ResourceIndex, problems: list[Problem]
) -> tuple[Amounts | None, Amounts | None]:
    """Guaranteed and limit of one queue. One that is 0 everywhere is dropped, as YuniKorn drops it."""
    placed = sorted(quotas(queue, at), key=lambda one: one.resource)
    problems += _flavor_problems(queue, at, placed)
    guaranteed: Amounts = {}
    limit: Amounts = {}
    for _, name, quota, here in placed:
        r = resources.add(name)
        try:
            if quota.guaranteed == UNLIMITED:
                detail = "a guarantee is an amount in YuniKorn"
                problems.append(Problem(pointer=pointer(*here, "guaranteed"), detail=detail))
            elif quota.guaranteed is not None:
                guaranteed[r] = parse(quota.guaranteed, resources.scales[r])
            if quota.limit is not None and quota.limit != UNLIMITED:
                limit[r] = parse(quota.limit, resources.scales[r])
        except QuantityError as error:
            problems.append(Problem(pointer=pointer(*here), detail=str(error)))
    return (guaranteed if any(guaranteed.values()) else None, limit if any(limit.values()) else None)


def _flavor_problems(queue: Queue, at: Place, placed: Sequence[PlacedQuota]) -> Iterator[Problem]:
    """YuniKorn knows one quota a resource."""
    for g, group in enumerate(queue.resource_groups or ()):
        if len(group.flavors) > 1:
            detail = "YuniKorn has no flavors: give one flavor a group"
            yield Problem(pointer=pointer(*at, "resource_groups", g, "flavors"), detail=detail)
            return
    for one, other in pairwise(placed):
        if one.resource == other.resource:
            detail = f"a second quota of {one.resource!r}: YuniKorn has no flavors"
            yield Problem(pointer=pointer(*other.at), detail=detail)


def _root_problems(queue: Queue, at: Place) -> Iterator[Problem]:
    """YuniKorn refuses resources on the root (configvalidator.go): what it has is the sum of the nodes."""
    for _, _, quota, here in quotas(queue, at):
        if quota.guaranteed is not None:
            detail = "YuniKorn knows no guarantee on the root"
            yield Problem(pointer=pointer(*here, "guaranteed"), detail=detail)
        if quota.limit is not None and quota.limit != UNLIMITED:
            detail = "YuniKorn knows no limit on the root: its limit is the sum of the nodes"
            yield Problem(pointer=pointer(*here, "limit"), detail=detail)


def _tree_problems(tree: Tree, queues: Sequence[Queue]) -> list[Problem]:
    if not tree.roots:
        return [Problem(pointer="/configuration/queues", detail="a YuniKorn tree has a queue named root")]
    return [
        Problem(
            pointer=pointer("configuration", "queues", i, "parent"),
            detail=f"{queues[i].name!r} has no parent: a YuniKorn tree has one top queue, named root",
        )
        for i in tree.roots
        if queues[i].name.lower() != ROOT
    ]  # fmt: skip


def _nesting_problems(
    tree: Tree, queues: Sequence[Queue], resources: ResourceIndex,
    guaranteed: list[Amounts | None], limit: list[Amounts | None],
) -> Iterator[Problem]:  # fmt: skip
    """A guarantee above a limit, or a limit above a parent's: YuniKorn refuses such a configuration."""

    def above(i: int, r: int, field: str, amount: int, held: int, by: int) -> Problem:
        name = resources.names[r]
        at = next(one.at for one in quotas(queues[i], ("configuration", "queues", i)) if one.resource == name)
        shown, allowed = units(amount, name), units(held, name)
        detail = f"{field} {shown} is above the limit {allowed} of {tree.names[by]}"
        return Problem(pointer=pointer(*at, field), detail=detail)

    ceilings: list[dict[int, tuple[int, int]]] = [{} for _ in guaranteed]
    for i in tree.top_down:
        parent = tree.parent[i]
        ceiling = ceilings[i] = dict(ceilings[parent]) if parent != ROOTLESS else {}
        for r, amount in (limit[i] or {}).items():
            held, by = ceiling.get(r, (amount, i))
            if amount > held:
                yield above(i, r, "limit", amount, held, by)
            ceiling[r] = min((held, by), (amount, i))
        for r, amount in (guaranteed[i] or {}).items():
            if r in ceiling and amount > ceiling[r][0]:
                yield above(i, r, "guaranteed", amount, *ceiling[r])


def cells_of(
    tree: Tree, guaranteed: list[Amounts | None]
) -> tuple[list[dict[int, int]], list[dict[int, list[int]]], list[tuple[int, int]]]:
    """Own cells and cells of the path by queue, and the (queue, resource) that each cell belongs to."""
    own: list[dict[int, int]] = [{} for _ in guaranteed]
    path: list[dict[int, list[int]]] = [{} for _ in guaranteed]
    owner: list[tuple[int, int]] = []
    for i in tree.top_down:
        above = tree.parent[i]
        path[i] = dict(path[above]) if above != ROOTLESS else {}
        for r in guaranteed[i] or ():
            own[i][r] = len(owner)
            path[i][r] = [*path[i].get(r, ()), len(owner)]
            owner.append((i, r))
    return own, path, owner
