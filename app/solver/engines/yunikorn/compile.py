"""A configuration compiled for YuniKorn: one tree named root, guarantees and limits, settings, guarantee cells.

A *cell* is one guaranteed resource of one queue. Whether a queue is over its guarantee is the sign of its
cells' slack (guaranteed - used), so a decision keeps one integer a cell instead of copying queues.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.solver.compiled.resources import ResourceIndex
from app.solver.compiled.tree import ROOTLESS, Tree, compile_tree
from app.solver.engines.yunikorn.rules import RuleSet
from app.solver.engines.yunikorn.settings import QueueSettings, effective
from app.solver.model import yunikorn as wire
from app.solver.model.configuration import Configuration, Queue, Quota
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.quantity import UNLIMITED, QuantityError, parse

ROOT = "root"
Amounts = dict[int, int]
"""Integer steps by resource index; a resource with 0 is named, one that is absent is not."""


@dataclass(frozen=True, slots=True)
class Queues:
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


def compile_configuration(configuration: Configuration) -> Queues:
    """Raises InvalidInput with every problem."""
    queues = configuration.queues
    tree = compile_tree(queues)
    resources = ResourceIndex()
    problems = list(_tree_problems(tree, queues))
    amounts = [_amounts(queue, i, resources, problems) for i, queue in enumerate(queues)]
    guaranteed, limit = [own[0] for own in amounts], [own[1] for own in amounts]
    if not problems:
        problems = list(_nesting_problems(tree, resources, guaranteed, limit))
    if problems:
        raise InvalidInput(problems)
    settings = configuration.settings.yunikorn
    rules: RuleSet = settings.rules if settings is not None else "documented"
    limit[tree.roots[0]] = None
    cells, path_cells, owner = cells_of(tree, guaranteed)
    by_path = sorted(range(len(tree)), key=tree.names.__getitem__)
    return Queues(
        rules=rules, tree=tree, resources=resources, guaranteed=guaranteed, limit=limit,
        blocks=[q.yunikorn for q in queues], settings=effective(tree, [q.yunikorn for q in queues], rules),
        leaf=[tree.is_leaf(i) and not (q.yunikorn is not None and q.yunikorn.parent) for i, q in enumerate(queues)],
        paths=[tree.path(i) for i in range(len(tree))],
        cells=cells, path_cells=path_cells, guarantee_of=[(guaranteed[q] or {})[r] for q, r in owner],
        cell_owner=owner, by_path=by_path, rank=sorted(range(len(tree)), key=by_path.__getitem__),
    )  # fmt: skip


def quotas_of(queue: Queue) -> Mapping[str, Quota]:
    """The quota of a queue, whichever way it is written; several flavors are a problem that ``compile`` reports."""
    if queue.quota is not None:
        return queue.quota
    return {
        name: quota for group in queue.resource_groups or () for of in group.flavors for name, quota in of.quota.items()
    }


def _amounts(
    queue: Queue, i: int, resources: ResourceIndex, problems: list[Problem]
) -> tuple[Amounts | None, Amounts | None]:
    """Guaranteed and limit of one queue. One that is 0 everywhere is dropped, as YuniKorn drops it."""
    at = ("configuration", "queues", i)
    for g, group in enumerate(queue.resource_groups or ()):
        if len(group.flavors) > 1:
            detail = "YuniKorn has no flavors: give one flavor a group"
            problems.append(Problem(pointer=pointer(*at, "resource_groups", g, "flavors"), detail=detail))
    guaranteed: Amounts = {}
    limit: Amounts = {}
    for name, quota in sorted(quotas_of(queue).items()):
        r = resources.add(name)
        try:
            if quota.guaranteed == UNLIMITED:
                detail = "a guarantee is an amount in YuniKorn"
                problems.append(Problem(pointer=pointer(*at, "quota", name, "guaranteed"), detail=detail))
            elif quota.guaranteed is not None:
                guaranteed[r] = parse(quota.guaranteed, resources.scales[r])
            if quota.limit is not None and quota.limit != UNLIMITED:
                limit[r] = parse(quota.limit, resources.scales[r])
        except QuantityError as error:
            problems.append(Problem(pointer=pointer(*at, "quota", name), detail=str(error)))
    return (guaranteed if any(guaranteed.values()) else None, limit if any(limit.values()) else None)


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
    tree: Tree, resources: ResourceIndex, guaranteed: list[Amounts | None], limit: list[Amounts | None]
) -> list[Problem]:
    """A guarantee above a limit, or a limit above a parent's: YuniKorn refuses such a configuration."""
    problems: list[Problem] = []
    ceilings: list[dict[int, tuple[int, int]]] = [{} for _ in guaranteed]
    for i in tree.top_down:
        above = tree.parent[i]
        ceiling = dict(ceilings[above]) if above != ROOTLESS else {}
        for r, amount in (limit[i] or {}).items() if above != ROOTLESS else ():
            held, by = ceiling.get(r, (amount, i))
            if amount > held:
                problems.append(_above(tree, resources, i, r, "limit", amount, held, by))
            ceiling[r] = min((held, by), (amount, i))
        ceilings[i] = ceiling
        for r, amount in (guaranteed[i] or {}).items():
            if r in ceiling and amount > ceiling[r][0]:
                problems.append(_above(tree, resources, i, r, "guaranteed", amount, *ceiling[r]))
    return problems


def _above(
    tree: Tree, resources: ResourceIndex, i: int, r: int, field: str, amount: int, held: int, by: int
) -> Problem:
    shown = resources.units({r: amount})[resources.names[r]]
    allowed = resources.units({r: held})[resources.names[r]]
    return Problem(
        pointer=pointer("configuration", "queues", i, "quota", resources.names[r], field),
        detail=f"{field} {shown} is above the limit {allowed} of {tree.names[by]}",
    )


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
