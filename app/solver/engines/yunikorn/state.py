"""A State compiled against YuniKorn's queues: task columns, usage by queue, free space by node.

Tasks are kept in one canonical order (queue path, application id, task name): the order in which maps are
walked, and therefore every tie. What only some decisions need is worked out when first asked for.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.solver import kubernetes
from app.solver.compiled import ResourceIndex, remember
from app.solver.engines.yunikorn.configuration import Amounts, CompiledConfiguration
from app.solver.engines.yunikorn.limits import MOST_RESOURCES, TOO_MANY, Tracked, naming_too_much
from app.solver.model.base import Quantity, micros
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Node, Reservation, State, Task, Workload

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Doubles = NDArray[np.float64]

ShapeKey = tuple[tuple[tuple[str, Quantity], ...], int]
"""Requests as they are written, and the count."""
OLDEST = -(2**62)
"""When no creation time is given: older than everything."""
ORIGINATOR, OPTED_OUT = 1, 2
"""Bits of ``flags``; sorting by them puts opted-in before opted-out, and others before originators."""
_SCORED = ("vcore", "memory")
_EXACT = 2**53
WIDEST = 2**61
NOWHERE = -1
"""Index of no node."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT_TIMES = 2**32
"""Seconds within which a double tells microseconds apart."""
_id = attrgetter("id")
_node = attrgetter("node")


@dataclass(slots=True)
class Lazy:
    """Columns that only some decisions need; computing one twice gives the same."""

    created: Ints | None = None
    by_node: tuple[Ints, Ints] | None = None
    passing: dict[object, frozenset[int]] = field(default_factory=dict)
    wanted: dict[object, tuple[ResourceIndex, Amounts, Amounts]] = field(default_factory=dict)
    tracked: Tracked | None = None
    use: Doubles | None = None
    asked: dict[str, Any] = field(default_factory=dict)
    """What rounds ask for, as ``overlay.in_turn`` has it."""
    limits: dict[int, dict[int, Amounts]] = field(default_factory=dict)
    """By queue, as ``candidates.path_limits`` has it."""
    columns: dict[int, Ints] = field(default_factory=dict)
    naming: dict[frozenset[int], Bools] = field(default_factory=dict)

    def after(self) -> "Lazy":
        """What holds of the next version as well, which has the same nodes and resources."""
        return Lazy(passing=self.passing, wanted=self.wanted, asked=self.asked, limits=self.limits)


class Behind(Protocol):
    """Task columns of an earlier version, and what has changed since."""

    def catch_up(self, state: "CompiledState") -> None:
        """Fill in the task columns of ``state``."""
        ...


COLUMNS = (
    "eligible", "flags", "node", "preempted", "priority", "queue", "rank", "shape", "starts", "tasks", "workload",
    "workloads",
)  # fmt: skip


class CompiledState:
    """Immutable but for ``lazy``. Task columns by canonical index; amounts in integer steps.

    ``behind``: where the columns of tasks and applications come from when they are first looked at, None once they are
    there; ``uses``: by shape, how many tasks have it.

    ``shape``: index into ``shapes``, the requests that occur (some perhaps no longer), numbered by ``shape_of``;
    ``eligible``: running, placed, not bound to its node; ``preempted``: by task, None where nobody is; ``allocated``,
    ``preempting``: by queue, subtrees included; ``slack``: by cell, guaranteed - (allocated - preempting); ``free``:
    nodes x resources, capacity - occupied - allocated, possibly negative. ``rank``: by workload, the place of its
    queue's path; ``starts``: its first task, and in the end their number; ``queue_of``: queue by application id.
    ``named``: resources that the configuration or a node names; ``room``, ``asked``: bounds of what sums up.
    ``in_order``: nodes are in the order of their names; ``scored``: resources by whose use plain scheduling chooses.
    """

    __slots__ = (
        "allocated", "asked", "behind", "capacity", "configuration", "eligible", "flags", "free", "in_order",
        "lazy", "limit", "named", "node", "node_index", "node_names", "node_rank", "nodes", "preempted",
        "preempting", "priority", "queue", "queue_of", "rank", "reservations", "resources", "room",
        "schedulable", "scored", "shape", "shape_of", "shapes", "slack", "starts", "tainted", "task_count", "tasks",
        "uses", "workload", "workloads",
    )  # fmt: skip

    def __init__(self, queues: CompiledConfiguration, state: State) -> None:
        self.configuration = queues
        self.behind: Behind | None = None
        self.lazy = Lazy()
        index = queues.tree.index
        rank = queues.rank
        self.workloads: list[Workload] = sorted(state.workloads, key=lambda w: (rank[index[w.queue]], w.id))
        of = [index[w.queue] for w in self.workloads]
        self.queue_of: dict[str, int] = dict(zip(map(_id, self.workloads), of, strict=True))
        self.rank: Ints = np.array(rank, dtype=np.int64)[of]
        self.tasks: list[Task] = list(chain.from_iterable(map(by_name, self.workloads)))
        self.task_count = len(self.tasks)
        self.tasks_of(np.array([len(w.tasks) for w in self.workloads], dtype=np.int64))
        self.place_nodes(state.nodes)
        places: dict[str | None, int] = {**self.node_index, None: NOWHERE}
        self.node: Ints = np.fromiter(map(places.__getitem__, map(_node, self.tasks)), np.int64, self.task_count)
        _refuse_parents(queues, state)
        keys, self.shape = _shapes(self.tasks)
        self.resources = resources_of(queues, state.nodes, keys)
        if len(self.resources) > MOST_RESOURCES:
            raise InvalidInput(naming_too_much(queues.resources.names, state))
        self.scored = [r for name in _SCORED if (r := self.resources.index.get(name)) is not None]
        self.shape_of: dict[ShapeKey, int] = keys
        self.shapes: list[Amounts] = [steps_of(key, self.resources) for key in keys]
        self.priority: Ints = _filled([t.priority for t in self.tasks], self, "priority", np.int64)
        self._protection()
        self.reservations: list[Reservation] = state.reservations
        self.uses: list[int] = np.bincount(self.shape, minlength=len(self.shapes)).tolist()
        self.asked: int = sum(n * sum(of.values()) for n, of in zip(self.uses, self.shapes, strict=True))
        self.capacities()
        self.take_room()
        self._usage()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A column that nobody has looked at."""
            if name in COLUMNS and (behind := self.behind) is not None:
                behind.catch_up(self)
            return object.__getattribute__(self, name)

    def with_configuration(self, queues: CompiledConfiguration, limit: list[Amounts | None]) -> "CompiledState":
        """The same state under other queues of the same tree; for questions of the kind "what if"."""
        twin = CompiledState.__new__(CompiledState)
        for name in CompiledState.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.configuration, twin.limit = queues, limit
        twin.slack = slack_of(queues, self.allocated, self.preempting)
        return twin

    def find(self, applications: Sequence[tuple[int, str]]) -> list[int]:
        """Of applications, given as (place of the queue's path, id): the canonical index, or where it would be."""
        ranks = [rank for rank, _ in applications]
        low: list[int] = np.searchsorted(self.rank, ranks).tolist()
        high: list[int] = np.searchsorted(self.rank, ranks, side="right").tolist()
        return [
            bisect_left(self.workloads, name, a, b, key=_id)
            for (_, name), a, b in zip(applications, low, high, strict=True)
        ]

    def application(self, name: str) -> int | None:
        """Canonical index of the application with this id, None when it does not run."""
        queue = self.queue_of.get(name)
        return None if queue is None else self.find([(self.configuration.rank[queue], name)])[0]

    def created(self, task: int) -> int:
        """Microseconds since 1970 when the task was created; its application's time where it gives none."""
        created = self.tasks[task].created_at or self.workloads[int(self.workload[task])].created_at
        return OLDEST if created is None else micros(created)

    def all_created(self) -> Ints:
        """``created`` of every task."""
        tasks = self.tasks  # looked at first, for columns bring along what is known of them
        if self.lazy.created is None:
            workloads = [OLDEST if w.created_at is None else micros(w.created_at) for w in self.workloads]
            own = [t.created_at for t in tasks]
            missing = [i for i, instant in enumerate(own) if instant is None] if None in own else []
            for i in missing:
                own[i] = _EPOCH
            times = np.array([instant.timestamp() for instant in own if instant is not None], dtype=np.float64)
            if len(times) and np.abs(times).max() < _EXACT_TIMES:
                created = np.rint(times * 1e6).astype(np.int64)
            else:
                created = np.array([micros(instant) for instant in own if instant is not None], dtype=np.int64)
            for i in missing:
                created[i] = workloads[int(self.workload[i])]
            self.lazy.created = created
        return self.lazy.created

    def tasks_on(self, node: int) -> Ints:
        """Canonical indices of the tasks on ``node``, ascending."""
        nodes = self.node  # looked at first, for columns bring along what is known of them
        by_node = self.lazy.by_node
        if by_node is None:
            order = np.argsort(nodes, kind="stable")
            starts = np.searchsorted(nodes[order], np.arange(len(self.node_names) + 1))
            by_node = self.lazy.by_node = (order, starts)
        order, starts = by_node
        return order[starts[node] : starts[node + 1]]

    def use(self) -> Doubles:
        """By node: what is used of its vcore and memory, as parts of what it has; the mean of both, or the one that it
        has (YuniKorn: absResourceUsage). Not to be changed."""
        if self.lazy.use is None:
            use = np.zeros(len(self.node_names), dtype=np.float64)
            known = np.zeros(len(self.node_names), dtype=np.int64)
            for r in self.scored:
                total, free = self.capacity[:, r].astype(np.float64), self.free[:, r].astype(np.float64)
                use += np.where(total > 0, 1 - free / np.where(total > 0, total, 1), 0)
                known += total > 0
            self.lazy.use = use / np.maximum(known, 1)
        return self.lazy.use

    def use_of(self, node: int, free: Ints) -> float:
        """The same of one node, with this free there, to the last bit."""
        use, known = 0.0, 0
        for r in self.scored:
            if (total := float(self.capacity[node, r])) > 0:
                use += 1 - float(free[r]) / total
                known += 1
        return use / max(known, 1)

    def amounts(self, task: int) -> Amounts:
        """What the task requests, all of its count."""
        return self.shapes[int(self.shape[task])]

    def column(self, resource: int) -> Ints:
        """By task: the requested amount of ``resource``, 0 where it names none. Not to be changed."""
        shape, columns = self.shape, self.lazy.columns
        if (known := columns.get(resource)) is None:
            values = np.array([of.get(resource, 0) for of in self.shapes], dtype=self.free.dtype)
            known = remember(columns, resource, values[shape])
        return known

    def shares_a_type(self, types: Iterable[int]) -> Bools:
        """By task: whether it names one of ``types``, whatever the amount. Not to be changed."""
        shape, naming, of_types = self.shape, self.lazy.naming, frozenset(types)
        if (known := naming.get(of_types)) is None:
            named = np.array([not of_types.isdisjoint(of) for of in self.shapes], dtype=bool)
            known = remember(naming, of_types, named[shape])
        return known

    def label(self, task: int) -> tuple[str, str]:
        """Application id and task name."""
        return self.workloads[int(self.workload[task])].id, self.tasks[task].name

    def queue_name(self, task: int) -> str:
        """Path of the task's queue."""
        return self.configuration.tree.names[int(self.queue[task])]

    def _protection(self) -> None:
        tasks, size = self.tasks, self.task_count
        flags = np.zeros(size, dtype=np.int8)
        opted_in = [t.preemptible for t in tasks]
        if opted_in.count(True) < size:
            flags[~_filled(opted_in, self, "preemptible", np.bool_)] = OPTED_OUT
        originators = [t.originator for t in tasks]
        if originators.count(False) < size:
            flags[np.array(originators, dtype=bool)] |= ORIGINATOR
        self.flags: NDArray[np.int8] = flags
        eligible = self.node >= 0
        states = [t.state for t in tasks]
        self.preempted: Bools | None = None
        if states.count("running") < size:
            eligible &= np.array([state == "running" for state in states], dtype=bool)
            preempted = np.array([state == "preempted" for state in states], dtype=bool)
            self.preempted = preempted if preempted.any() else None
        bound = [t.required_node for t in tasks]
        if bound.count(None) < size:
            eligible &= np.array([name is None for name in bound], dtype=bool)
        self.eligible: Bools = eligible

    def tasks_of(self, counts: Ints) -> None:
        """The columns that follow from the number of tasks of each workload."""
        self.starts: Ints = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
        self.workload: Ints = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        self.queue: Ints = np.array(self.configuration.by_path, dtype=np.int64)[self.rank][self.workload]

    def place_nodes(self, nodes: list[Node]) -> None:
        """Names, order and state of the nodes."""
        self.nodes = nodes
        self.node_names = [n.name for n in nodes]
        self.node_index = {name: i for i, name in enumerate(self.node_names)}
        by_name = sorted(range(len(nodes)), key=self.node_names.__getitem__)
        self.node_rank: Ints = np.empty(len(by_name), dtype=np.int64)
        self.node_rank[by_name] = np.arange(len(by_name))
        self.in_order = by_name == list(range(len(by_name)))
        self.schedulable: Bools = np.array([n.schedulable for n in nodes], dtype=bool)
        self.tainted: bool = any(kubernetes.untolerated(n.taints, ()) is not None for n in nodes)

    def capacities(self) -> None:
        """What the nodes have, with no task there. Raises QuantityError, InvalidInput."""
        kinds = _Numbered()
        kind: Ints = np.array([kinds[tuple(n.capacity.items())] for n in self.nodes], dtype=np.int64)
        offers = [self.resources.steps(dict(key)) for key in kinds]
        taken = [(i, self.resources.steps(n.occupied)) for i, n in enumerate(self.nodes) if n.occupied]
        if len(self.resources) > MOST_RESOURCES:
            raise InvalidInput([Problem(pointer="/state", detail=TOO_MANY)])
        total: Amounts = {}
        for of, count in zip(offers, np.bincount(kind, minlength=len(offers)).tolist(), strict=True):
            for r, amount in of.items():
                total[r] = total.get(r, 0) + count * amount
        self.limit: list[Amounts | None] = list(self.configuration.limit)
        self.limit[self.configuration.tree.roots[0]] = total
        self.named = frozenset(range(len(self.configuration.resources))).union(total, *(of for _, of in taken))
        self.room: int = sum(total.values()) + sum(sum(of.values()) for _, of in taken)
        # Sums stay exact: beyond int64, columns hold Python integers (slower, and nobody's cluster).
        dtype: Any = np.int64 if self.narrow else object
        table = np.zeros((len(offers), len(self.resources)), dtype=np.int64).astype(dtype)
        for i, of in enumerate(offers):
            for r, amount in of.items():
                table[i, r] = amount
        self.capacity: Ints = table[kind]
        self.free: Ints = self.capacity.copy()
        for i, of in taken:
            for r, amount in of.items():
                self.free[i, r] -= amount

    @property
    def narrow(self) -> bool:
        """Whether every sum of amounts fits into int64."""
        return self.room + self.asked < WIDEST

    def take_room(self) -> None:
        """Everybody takes what they request on their node."""
        placed = self.node >= 0
        for r in range(len(self.resources)):
            taken = sums(self.column(r)[placed], self.node[placed], len(self.node_names))
            self.free[:, r] -= np.array(taken, dtype=self.free.dtype)

    def _usage(self) -> None:
        queues, width = self.configuration, len(self.resources)
        depth = len(queues.tree)
        self.allocated: list[list[int]] = [[0] * width for _ in range(depth)]
        self.preempting: list[list[int]] = [[0] * width for _ in range(depth)]
        preempted = self.preempted
        for r in range(width):
            column = self.column(r)
            for i, amount in enumerate(sums(column, self.queue, depth)):
                self.allocated[i][r] = amount
            if preempted is not None:
                for i, amount in enumerate(sums(column[preempted], self.queue[preempted], depth)):
                    self.preempting[i][r] = amount
        _up(queues, self.allocated)
        if preempted is not None:
            _up(queues, self.preempting)
        self.slack: list[int] = slack_of(queues, self.allocated, self.preempting)


def compile_state(configuration: CompiledConfiguration, state: State) -> CompiledState:
    """Raises InvalidInput, QuantityError, or KeyError for a queue or node that is not there; the caller diagnoses."""
    return CompiledState(configuration, state)


def slack_of(queues: CompiledConfiguration, allocated: list[list[int]], preempting: list[list[int]]) -> list[int]:
    """By cell: guaranteed - (allocated - preempting)."""
    return [
        guaranteed - allocated[q][r] + preempting[q][r]
        for (q, r), guaranteed in zip(queues.cell_owner, queues.guarantee_of, strict=True)
    ]


def by_name(workload: Workload) -> Sequence[Task]:
    """The tasks in canonical order. Raises ValueError where two share a name."""
    tasks = workload.tasks
    names = [t.name for t in tasks]
    ordered = sorted(names)
    if len(set(names)) < len(names):
        raise ValueError(f"tasks of {workload.id!r}")
    return tasks if names == ordered else sorted(tasks, key=lambda t: t.name)


def _refuse_parents(queues: CompiledConfiguration, state: State) -> None:
    """Applications run in leaf queues. Pointers are into the request, so in its order."""
    index, leaf = queues.tree.index, queues.leaf
    if all(leaf[q] for q in {index[w.queue] for w in state.workloads}):
        return
    raise InvalidInput(
        Problem(
            pointer=pointer("state", "workloads", i, "queue"),
            detail=f"{w.queue!r} is a parent queue: applications run in leaf queues",
        )
        for i, w in enumerate(state.workloads)
        if not leaf[index[w.queue]]
    )


class _Numbered(dict[Any, int]):
    """Numbers its keys in the order of their first look-up."""

    __slots__ = ()

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number


_encode, _decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode


class _Encoded(dict[bytes, int]):
    """Numbers of requests by their encoding, which takes half as long to make as what requests are told apart by."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers = _Numbered()

    def __missing__(self, key: bytes) -> int:
        number = self[key] = self.numbers[tuple(_decode(key).items())]
        return number


def _shapes(tasks: Sequence[Task]) -> tuple[dict[ShapeKey, int], Ints]:
    """Distinct requests, numbered, and each task's number. Clusters repeat a few hundred."""
    encoded = _Encoded()
    column = [encoded[_encode(t.requests)] for t in tasks]
    first = encoded.numbers
    keys: dict[ShapeKey, int] = {(of, 1): number for of, number in first.items()}
    counts = [t.count for t in tasks]
    if counts.count(1) < len(counts):
        pairs = _Numbered()
        column = [pairs[pair] for pair in zip(column, counts, strict=True)]
        requests = list(first)
        keys = {(requests[of], count): number for (of, count), number in pairs.items()}
    return keys, np.array(column, dtype=np.int64)


def steps_of(key: ShapeKey, resources: ResourceIndex) -> Amounts:
    """What a task requests, all of its count, in the order of ``resources``. Raises QuantityError."""
    requests, count = key
    return {r: amount * count for r, amount in sorted(resources.steps(dict(requests)).items())}


def resources_of(queues: CompiledConfiguration, nodes: Iterable[Node], shapes: Iterable[ShapeKey]) -> ResourceIndex:
    """The configuration's resources, then what nodes and tasks name beside, by name: whoever has come or gone
    before, the same state has the same columns."""
    names = {name for requests, _ in shapes for name, _ in requests}
    for node in nodes:
        names.update(node.capacity, node.occupied)
    return ResourceIndex([*queues.resources.names, *sorted(names.difference(queues.resources.index))])


def _filled(values: list[Any], state: CompiledState, field: str, dtype: Any) -> NDArray[Any]:
    """A column of the tasks' own values, the application's where a task gives none."""
    if None in values:
        of = state.workload.tolist()
        default = [getattr(w, field) for w in state.workloads]
        values = [default[of[i]] if value is None else value for i, value in enumerate(values)]
    return np.array(values, dtype=dtype)


def sums(column: Ints, groups: Ints, size: int) -> list[int]:
    """Exact sums of ``column`` by group. Doubles are exact below 2^53, which is where every real cluster is."""
    if column.dtype != object and int(column.sum()) < _EXACT:
        return np.bincount(groups, weights=column, minlength=size).astype(np.int64).tolist()
    out = [0] * size
    for group, amount in zip(groups.tolist(), column.tolist(), strict=True):
        out[group] += amount
    return out


def _up(queues: CompiledConfiguration, usage: list[list[int]]) -> None:
    """Add every queue's usage to its parent's, children first."""
    tree = queues.tree
    for i in reversed(tree.top_down):
        above = tree.parent[i]
        if above >= 0:
            usage[above] = [a + b for a, b in zip(usage[above], usage[i], strict=True)]


SPARE_SHAPES = 64
"""So few are kept, whoever has them."""


def forget_shapes(old: CompiledState, new: CompiledState) -> None:
    """Drop shapes that no task of ``new`` has, once they are most of what is kept."""
    if new.shapes is old.shapes or len(new.shapes) < SPARE_SHAPES:
        return
    live = [uses > 0 for uses in new.uses]
    if sum(live) * 2 > len(live):
        return
    keys = [key for key, alive in zip(new.shape_of, live, strict=True) if alive]
    shapes: list[Amounts] = [of for of, alive in zip(new.shapes, live, strict=True) if alive]
    new.shape = (np.cumsum(live) - 1)[new.shape]
    new.shape_of, new.shapes = {key: i for i, key in enumerate(keys)}, shapes
    new.uses = [uses for uses in new.uses if uses]
