"""Engine-neutral semantics of an input: unique names, references that resolve, quantities that parse.

Two speeds. ``quick_*`` answer yes or no with comprehensions (a few milliseconds at 50,000 workloads); only
when one says no, or an engine's compile step stumbles, do the ``*_problems`` walks list everything at once.
Native fields of a configuration are kept and never looked into, so they have bounds: they must stay small.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain
from math import inf
from operator import attrgetter
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from app.solver.apply import Index
from app.solver.delta import Changes
from app.solver.engine import all_facts
from app.solver.model.base import UNLIMITED, Native, Quantity, QuantityError, Resources, exact, parse_quantity, scale_of
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.problems import Nearest, Problem, pointer
from app.solver.model.state import Ask, QueueState, State, Task
from app.solver.question import safe_point

MAX_BYTES = 4 * 2**20
"""Of all native fields of a configuration together, as JSON: some ten thousand LocalQueues."""
MAX_DEPTH = 40
"""Levels of mappings and lists below one field."""

_encoder = msgspec.json.Encoder()


def native_problems(configuration: Configuration) -> Iterator[Problem]:
    """Native fields that are nested too deeply, or too large together; pointers start at /configuration."""
    size = 0
    for path, native in _natives(configuration):
        fields = [(name, getattr(native, name)) for name in native.__struct_fields__]
        deep = [name for name, value in fields if _too_deep(value)]
        for name in deep:
            yield Problem(pointer=pointer(*path, name), detail=f"nested deeper than {MAX_DEPTH} levels")
        if not deep:
            size += len(_encoder.encode(native))
    if size > MAX_BYTES:
        detail = f"native fields of {size} bytes in all: a configuration may have {MAX_BYTES}"
        yield Problem(pointer="/configuration", detail=detail)


def size_of(configuration: Configuration) -> int:
    """Bytes of all native fields as JSON. They must not be nested too deeply."""
    return sum(len(_encoder.encode(native)) for _, native in _natives(configuration))


def without_native(configuration: Configuration) -> Configuration:
    """The configuration that decides the same, and says nothing more."""
    return replace(
        configuration,
        native=None,
        flavors=[replace(flavor, native=None) for flavor in configuration.flavors],
        queues=[replace(queue, native=None) for queue in configuration.queues],
    )


def _natives(configuration: Configuration) -> Iterator[tuple[tuple[str | int, ...], Native]]:
    if configuration.native is not None:
        yield ("configuration", "native"), configuration.native
    for i, flavor in enumerate(configuration.flavors):
        if flavor.native is not None:
            yield ("configuration", "flavors", i, "native"), flavor.native
    for i, queue in enumerate(configuration.queues):
        if queue.native is not None:
            yield ("configuration", "queues", i, "native"), queue.native


def _too_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        mappings = [cast(dict[str, Any], value) for value in level if isinstance(value, dict)]
        lists = [cast(list[Any], value) for value in level if isinstance(value, list)]
        if not mappings and not lists:
            return False
        level = [inner for mapping in mappings for inner in mapping.values()] + [
            inner for listed in lists for inner in listed
        ]
    return True


_DEEPEST_TREE = 256
_name, _queue, _tasks, _node = map(attrgetter, ("name", "queue", "tasks", "node"))


def quick_state(names: set[str], state: State, index: Index, *, engine_looks: bool = False) -> bool:
    """Whether ids are unique and queue and node references resolve. ``names``: queues of the configuration.

    ``engine_looks``: the engine's own load stumbles over unknown queues and unsound tasks (``Engine.looks``)."""
    workloads = state.workloads
    if not index.is_distinct:
        return False
    if not _names_of(state.queues) <= names or not _sound_reservations(names, state, index):
        return False
    if engine_looks:
        return True
    if not names.issuperset(map(_queue, workloads)):
        return False
    tasks = list(map(_tasks, workloads))
    if any(len(set(map(_name, of))) != len(of) for of in tasks if len(of) > 1):
        return False
    return index.places.issuperset(map(_node, chain.from_iterable(tasks)))


def sound_tasks(tasks: Sequence[Task], nodes: Set[str | None]) -> bool:
    """Whether the names of one workload's tasks are unique and ``nodes`` has each node; None stands for no node."""
    if len(tasks) == 1:
        return tasks[0].node in nodes
    return len(set(map(_name, tasks))) == len(tasks) and nodes >= set(map(_node, tasks))


def quick_changes(names: set[str], old: State, new: State, index: Index, changes: Changes) -> bool:
    """``quick_state`` for the state after a delta, looking only at what changed where that is enough."""
    if not _names_of(new.queues) <= names or not _sound_reservations(names, new, index):
        return False
    if changes.nodes and changes.replaced is None:
        gone = not index.nodes.issuperset(map(_name, old.nodes))
        if gone or len(index.nodes) != len(new.nodes):
            return quick_state(names, new, index)
    touched = [w for _, _, w in changes.workloads if w is not None]
    return all(w.queue in names and sound_tasks(w.tasks, index.places) for w in touched)


def _names_of(queues: Mapping[str, QueueState]) -> Set[str]:
    """Those that must be queues of the configuration: LocalQueues of Kueue are in none."""
    if not queues:
        return queues.keys()
    return {name for name, of in queues.items() if of.kueue is None or of.ytsaurus is not None}


def _sound_reservations(names: set[str], state: State, index: Index) -> bool:
    for held in state.reservations:
        if held.node not in index.nodes:
            return False
        if any(True for _ in _ask_problems(held.ask, names, index.nodes, index.workloads, (), Nearest(()))):
            return False
    return True


def configuration_problems(configuration: Configuration, *, implicit_parents: bool = False) -> list[Problem]:
    """Everything that is wrong with the document on its own; pointers start at /configuration.

    ``implicit_parents``: a parent that is no queue of the document exists all the same."""
    base = ("configuration",)
    problems = list(_duplicates((f.name for f in configuration.flavors), (*base, "flavors"), "flavor"))
    problems += _duplicates((t.name for t in configuration.topologies), (*base, "topologies"), "topology")
    for i, topology in enumerate(configuration.topologies):
        problems += _duplicates(topology.levels, (*base, "topologies", i, "levels"), "level")
    problems += _duplicates((q.name for q in configuration.queues), (*base, "queues"), "queue")
    problems += _tree_problems(configuration.queues, implicit=implicit_parents)
    problems += native_problems(configuration)
    for i, queue in enumerate(configuration.queues):
        safe_point()
        path = (*base, "queues", i)
        if queue.weight != queue.weight or queue.weight < 0 or queue.weight == float("inf"):
            problems.append(Problem(pointer=pointer(*path, "weight"), detail="a weight is a finite number, 0 or more"))
        if not _plain_quotas(queue):
            problems += _quota_problems(queue, path)
    return problems


def state_problems(names: set[str], state: State) -> list[Problem]:
    """Everything that is wrong with a state; pointers start at /state."""
    problems = list(_duplicates((n.name for n in state.nodes), ("state", "nodes"), "node"))
    nodes = {n.name for n in state.nodes}
    for i, node in enumerate(state.nodes):
        path = ("state", "nodes", i)
        problems += _quantity_problems(node.capacity, (*path, "capacity"))
        problems += _quantity_problems(node.occupied, (*path, "occupied"))
    problems += _duplicates((w.id for w in state.workloads), ("state", "workloads"), "workload", field="id")
    workloads = {w.id for w in state.workloads}
    near = Nearest(names)
    for i, workload in enumerate(state.workloads):
        path = ("state", "workloads", i)
        problems += _reference(workload.queue, names, (*path, "queue"), "queue", near)
        problems += _quantity_problems(workload.limit or {}, (*path, "limit"))
        problems += _task_problems(workload.tasks, nodes, path)
    for i, reservation in enumerate(state.reservations):
        path = ("state", "reservations", i)
        problems += _reference(reservation.node, nodes, (*path, "node"), "node")
        problems += _ask_problems(reservation.ask, names, nodes, workloads, (*path, "ask"), near)
    for name in sorted(_names_of(state.queues)):
        problems += _reference(name, names, ("state", "queues", name), "queue", near)
    fields = [(facts, field) for facts in all_facts() for field in facts.exact_amounts]
    for name, of in state.queues.items():
        for facts, field in fields:
            amounts: Resources | None = getattr(getattr(of, facts.block), field, None)
            for resource, value in (amounts or {}).items():
                problems += _refused(exact, value, ("state", "queues", name, facts.block, field, resource))
    return problems


def ask_problems(names: set[str], index: Index, asks: list[Ask], where: str = "asks") -> list[Problem]:
    """Everything that is wrong with the asks; pointers start at /asks."""
    if plain_asks(names, asks, index):
        return []
    problems = list(_duplicates((a.id for a in asks), (where,), "ask", field="id"))
    near = Nearest(names)
    for i, ask in enumerate(asks):
        problems += _ask_problems(ask, names, index.nodes, index.workloads, (where, i), near)
    return problems


def plain_asks(names: set[str], asks: list[Ask], index: Index | None = None) -> bool:
    """Whether plain asks (no limit, no node named) are sound: yes is certain, no only means look closer. Without
    ``index``: whatever the state, for they name nothing in it."""
    seen = set[str]()
    for ask in asks:
        if ask.id in seen or ask.queue not in names or ask.limit or ask.required_node is not None:
            return False
        seen.add(ask.id)
        of, nodes = ask.workload, ask.feasible_nodes
        if of is not None and of != ask.id and (index is None or of not in index.workloads):
            return False
        if nodes and (index is None or not index.nodes.issuperset(nodes)):
            return False
        if len(ask.tasks) != 1 and len({task.name for task in ask.tasks}) != len(ask.tasks):
            return False
        for task in ask.tasks:
            if task.usage or task.node is not None or task.required_node is not None:
                return False
            if task.min_count is not None or task.full_count is not None:
                return False
            if not _sound(tuple(task.requests.items())):
                return False
    return True


@lru_cache(maxsize=4096)
def _sound(requests: tuple[tuple[str, Quantity], ...]) -> bool:
    return not any(True for _ in _quantity_problems(dict(requests), ()))


def one_ask_problems(names: set[str], index: Index, ask: Ask) -> list[Problem]:
    """The same for the single ask of a preemptibility request; pointers start at /ask."""
    return list(_ask_problems(ask, names, index.nodes, index.workloads, ("ask",), Nearest(names)))


def _ask_problems(
    ask: Ask, names: set[str], nodes: Set[str], workloads: Container[str], path: tuple[str | int, ...], near: Nearest
) -> Iterator[Problem]:
    yield from _reference(ask.queue, names, (*path, "queue"), "queue", near)
    if ask.workload is not None and ask.workload != ask.id:
        yield from _reference(ask.workload, workloads, (*path, "workload"), "workload")
    if ask.required_node is not None:
        yield from _reference(ask.required_node, nodes, (*path, "required_node"), "node")
    for i, name in enumerate(ask.feasible_nodes or ()):
        yield from _reference(name, nodes, (*path, "feasible_nodes", i), "node")
    yield from _quantity_problems(ask.limit or {}, (*path, "limit"))
    yield from _task_problems(ask.tasks, nodes, path)


def _task_problems(tasks: list[Task], nodes: Set[str], path: tuple[str | int, ...]) -> Iterator[Problem]:
    safe_point()
    yield from _duplicates((t.name for t in tasks), (*path, "tasks"), "task")
    for i, task in enumerate(tasks):
        here = (*path, "tasks", i)
        yield from _quantity_problems(task.requests, (*here, "requests"))
        yield from _quantity_problems(task.usage or {}, (*here, "usage"))
        if task.node is not None:
            yield from _reference(task.node, nodes, (*here, "node"), "node")
        if task.required_node is not None:
            yield from _reference(task.required_node, nodes, (*here, "required_node"), "node")
        whole, called = (task.count, "count") if task.full_count is None else (task.full_count, "full_count")
        if whole < task.count:
            detail = f"full_count {whole} is below count {task.count}"
            yield Problem(pointer=pointer(*here, "full_count"), detail=detail)
        if task.min_count is not None and task.min_count > whole:
            detail = f"min_count {task.min_count} is over {called} {whole}"
            yield Problem(pointer=pointer(*here, "min_count"), detail=detail)


def _tree_problems(queues: list[Queue], *, implicit: bool) -> Iterator[Problem]:
    parent = {q.name: q.parent for q in queues}
    above, circles = _above(parent)
    near = Nearest(parent)
    for i, queue in enumerate(queues):
        path = ("configuration", "queues", i, "parent")
        if queue.parent is None:
            continue
        if queue.parent not in parent and not implicit:
            yield Problem(pointer=pointer(*path), detail=f"no queue {queue.parent!r}{near.meant(queue.parent)}")
        elif queue.name in circles:
            yield Problem(pointer=pointer(*path), detail=f"{queue.name!r} is its own ancestor")
        elif above[queue.name] > _DEEPEST_TREE:
            yield Problem(
                pointer=pointer(*path), detail=f"{queue.name!r} is deeper than {_DEEPEST_TREE} levels, or under a cycle"
            )


def _above(parent: Mapping[str, str | None]) -> tuple[dict[str, float], set[str]]:
    """How many queues stand above each one, infinitely many on a circle and below it; and those on circles. Each is
    passed once, however deep the tree is."""
    above: dict[str, float] = {}
    circles = set[str]()
    for name in parent:
        path: dict[str, int] = {}
        here: str | None = name
        while here is not None and here not in above and here not in path:
            path[here] = len(path)
            here = parent.get(here)
        way = list(path)
        if here in path:
            circles.update(way[path[here] :])
        depth = -1.0 if here is None else above.get(here, inf)
        for below in reversed(way):
            depth += 1
            above[below] = depth
    return above, circles


def _plain_quotas(queue: Queue) -> bool:
    """Whether the commonest kind of quotas (one flavor a group, no weights) is sound: yes is certain, no only means
    look closer."""
    if queue.quota is not None:
        return False
    for group in queue.resource_groups or ():
        if len(group.flavors) != 1:
            return False
        for resource, quota in group.flavors[0].quota.items():
            if resource not in group.resources or quota.limit is not None or quota.weight is not None:
                return False
            try:
                for value in (quota.guaranteed, quota.borrowing_limit, quota.lending_limit):
                    if value is not None:
                        parse_quantity(value, scale_of(resource))
            except QuantityError:
                return False
    return True


def _quota_problems(queue: Queue, path: tuple[str | int, ...]) -> Iterator[Problem]:
    if queue.quota and queue.resource_groups:
        yield Problem(
            pointer=pointer(*path, "quota"), detail="quota is a shorthand for resource_groups: give one of them"
        )
    for resource, quota in (queue.quota or {}).items():
        yield from _one_quota(resource, quota, (*path, "quota", resource))
    for g, group in enumerate(queue.resource_groups or ()):
        here = (*path, "resource_groups", g)
        yield from _duplicates((f.name for f in group.flavors), (*here, "flavors"), "flavor")
        for f, flavor in enumerate(group.flavors):
            for resource, quota in flavor.quota.items():
                place = (*here, "flavors", f, "quota", resource)
                if resource not in group.resources:
                    yield Problem(pointer=pointer(*place), detail=f"resource {resource!r} is not one of this group")
                yield from _one_quota(resource, quota, place)


def _one_quota(resource: str, quota: object, path: tuple[str | int, ...]) -> Iterator[Problem]:
    for field in ("guaranteed", "limit", "borrowing_limit", "lending_limit"):
        value: Quantity | None = getattr(quota, field)
        if value is not None and not (field in ("guaranteed", "limit") and value == UNLIMITED):
            yield from _one_quantity(resource, value, (*path, field))
    weight: float | None = getattr(quota, "weight", None)
    if weight is not None and not 0 <= weight < float("inf"):
        yield Problem(pointer=pointer(*path, "weight"), detail="a weight is a finite number, 0 or more")


def _quantity_problems(quantities: dict[str, Quantity], path: tuple[str | int, ...]) -> Iterator[Problem]:
    for resource, value in quantities.items():
        yield from _one_quantity(resource, value, (*path, resource))


def _one_quantity(resource: str, value: Quantity, path: tuple[str | int, ...]) -> Iterator[Problem]:
    yield from _refused(lambda given: parse_quantity(given, scale_of(resource)), value, path)


def _refused(read: Callable[[Quantity], object], value: Quantity, path: tuple[str | int, ...]) -> Iterator[Problem]:
    try:
        read(value)
    except QuantityError as error:
        yield Problem(pointer=pointer(*path), detail=str(error))


def _duplicates(
    names: Iterable[str], path: tuple[str | int, ...], kind: str, *, field: str = "name"
) -> Iterator[Problem]:
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            yield Problem(pointer=pointer(*path, i, field), detail=f"a second {kind} {name!r}")
        seen.add(name)


def _reference(
    name: str, known: Container[str], path: tuple[str | int, ...], kind: str, near: Nearest | None = None
) -> Iterator[Problem]:
    if name not in known:
        yield Problem(pointer=pointer(*path), detail=f"no {kind} {name!r}{near.meant(name) if near else ''}")
