"""A Configuration as KAI reads it: queues by index in document order, their quotas in integers."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.solver.compiled.tree import Tree, compile_tree
from app.solver.engines.kai.compile.jobs import OLDEST
from app.solver.engines.kai.compile.min_runtime import MinRuntimes
from app.solver.engines.kai.compile.resources import KAI_UNLIMITED, Share, is_gpu
from app.solver.engines.kai.compile.settings import Policy, compile_min_runtimes, compile_policy
from app.solver.model.base import Quantity
from app.solver.model.configuration import Configuration, Queue, Quota
from app.solver.model.instant import micros
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.quantity import UNLIMITED, parse
from app.solver.quotas import quotas


@dataclass(frozen=True, slots=True)
class CompiledConfiguration:
    """Queues by index in document order; ``Share`` is (cpu, memory, gpu). ``weight`` is the over-quota weight."""

    policy: Policy
    min_runtimes: MinRuntimes
    tree: Tree
    queues: list[Queue]
    deserved: list[Share]
    limit: list[Share]
    weight: list[tuple[float, float, float]]
    priority: list[int]
    created: list[int]


def compile_configuration(configuration: Configuration) -> CompiledConfiguration:
    """Raises InvalidInput: a cycle, an unknown parent, bad settings, several flavors (KAI has none)."""
    tree = compile_tree(configuration.queues)
    policy = compile_policy(configuration.settings.kai)
    problems: list[Problem] = []
    deserved: list[Share] = []
    limit: list[Share] = []
    weight: list[tuple[float, float, float]] = []
    for i, queue in enumerate(configuration.queues):
        own = _quotas(queue, i, problems)
        deserved.append(_share([q.guaranteed for q in own], 0))
        limit.append(_share([q.limit for q in own], KAI_UNLIMITED))
        cpu, memory, gpu = (queue.weight if q.weight is None else q.weight for q in own)
        weight.append((cpu, memory, gpu))
    if problems:
        raise InvalidInput(problems)
    return CompiledConfiguration(
        policy=policy, min_runtimes=compile_min_runtimes(configuration, tree, policy), tree=tree,
        queues=configuration.queues,
        deserved=deserved, limit=limit, weight=weight, priority=[q.priority for q in configuration.queues],
        created=[OLDEST if q.created_at is None else micros(q.created_at) for q in configuration.queues],
    )  # fmt: skip


def _quotas(queue: Queue, i: int, problems: list[Problem]) -> tuple[Quota, Quota, Quota]:
    for g, group in enumerate(queue.resource_groups or ()):
        if len(group.flavors) > 1:
            at = pointer("configuration", "queues", i, "resource_groups", g, "flavors")
            problems.append(Problem(pointer=at, detail="KAI has no flavors: give one quota a resource"))
    named = {placed.resource: placed for placed in quotas(queue, ("configuration", "queues", i))}
    gpus = [placed for name, placed in named.items() if is_gpu(name)]
    if len(gpus) > 1:
        detail = "several GPU resources: KAI counts GPUs once"
        problems += [Problem(pointer=pointer(*placed.at), detail=detail) for placed in gpus]
    cpu, memory = (named[name].quota if name in named else Quota() for name in ("cpu", "memory"))
    return cpu, memory, gpus[0].quota if gpus else Quota()


def _share(values: Sequence[Quantity | None], absent: int) -> Share:
    cpu, memory, gpu = (
        absent if value is None else KAI_UNLIMITED if value == UNLIMITED else parse(value, scale)
        for value, scale in zip(values, (1000, 1, 1000), strict=True)
    )
    return cpu, memory, gpu
