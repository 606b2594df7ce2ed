"""What an administrator does during a run, compiled before it starts."""

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import asdict, replace

from app.answering.sources import Configurations
from app.simulations.core.times import moment
from app.simulations.schemas import Change, QueueAmendment
from app.solver import solve
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.duration import DurationError
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Node, NodeChanges
from app.solver.solve import Configured


@dataclass(frozen=True, slots=True)
class Prepared:
    """One change. ``configured``: what is in force from then on, None where that stays; ``queues``: whose queues
    change, in order of name. ``nodes``: None where none changes."""

    at: int
    nodes: NodeChanges | None
    configured: Configured | None
    queues: list[str]


def prepared(
    changes: list[Change], first: Configured, nodes: list[Node], start: int, configurations: Configurations
) -> list[Prepared]:
    """In order of time, else of the list. Raises InvalidInput with every problem; pointers start at /trace/changes."""
    problems: list[Problem] = []
    timed: list[tuple[int, int]] = []
    for i, change in enumerate(changes):
        try:
            timed.append((max(start, moment(change.at, start)), i))
        except DurationError as error:
            problems.append(Problem(pointer=pointer("trace", "changes", i, "at"), detail=str(error)))
    out: list[Prepared] = []
    current, names = first, {node.name for node in nodes}
    for at, i in sorted(timed):
        change = changes[i]
        try:
            after = _configured(change, current, configurations)
        except InvalidInput as invalid:
            where = pointer("trace", "changes", i)
            problems += [Problem(pointer=where + p.pointer, detail=p.detail) for p in invalid.problems]
            continue
        if change.nodes is not None:
            problems += _node_problems(change.nodes, names, i)
        out.append(Prepared(at, change.nodes, None if after is current else after, sorted(change.queues)))
        current = after
    if problems:
        raise InvalidInput(problems)
    return out


def every_node(nodes: list[Node], changes: Iterable[Prepared]) -> list[Node]:
    """All nodes that there ever are, the largest of each name last to come."""
    found = {node.name: node for node in nodes}
    for change in changes:
        if change.nodes is not None:
            found |= {node.name: node for node in (*change.nodes.add, *change.nodes.change)}
    return list(found.values())


def _configured(change: Change, current: Configured, configurations: Configurations) -> Configured:
    engine = current.engine.name
    after = current
    if change.configuration is not None:
        given = change.configuration
        named = isinstance(given, str)
        after = configurations.named(given, engine) if named else configurations.written(given, engine)
    if change.queues:
        after = solve.configure(_with_queues(after.configuration, change.queues), engine)
    return after


def _with_queues(configuration: Configuration, changes: dict[str, QueueAmendment]) -> Configuration:
    known = {queue.name for queue in configuration.queues}
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise InvalidInput(
            Problem(pointer=pointer("queues", name), detail=f"no queue {name!r}") for name in sorted(unknown)
        )
    queues = [_changed(queue, changes.get(queue.name)) for queue in configuration.queues]
    return replace(configuration, queues=queues)


def _changed(queue: Queue, change: QueueAmendment | None) -> Queue:
    if change is None:
        return queue
    given = {name: value for name, value in asdict(change).items() if value is not None}
    if "quota" in given:
        given.setdefault("resource_groups", None)
    elif "resource_groups" in given:
        given["quota"] = None
    return replace(queue, **given)


def _node_problems(nodes: NodeChanges, names: set[str], i: int) -> list[Problem]:
    """What is wrong with the names; ``names`` become those after the change."""
    problems: list[Problem] = []
    for kind, given in (("change", nodes.change), ("remove", nodes.remove)):
        for at, node in enumerate(given):
            name = node if isinstance(node, str) else node.name
            if name not in names:
                where = pointer("trace", "changes", i, "nodes", kind, at)
                problems.append(Problem(pointer=where, detail=f"no node {name!r} at that time"))
    names.difference_update(nodes.remove)
    for at, node in enumerate(nodes.add):
        if node.name in names:
            where = pointer("trace", "changes", i, "nodes", "add", at)
            problems.append(Problem(pointer=where, detail=f"a second node {node.name!r}"))
        names.add(node.name)
    return problems
