"""What a workload uses, resolved once for each distinct *shape*: its tasks' counts, requests and flavors."""

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from app.solver.check import sound_tasks
from app.solver.engines.kueue.configuration import CompiledConfiguration, FlavorResource
from app.solver.kubernetes import PODS
from app.solver.model.base import parse_quantity, scale_of
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Task, Workload

Amounts = tuple[tuple[int, int], ...]
"""(flavor-resource, steps) pairs, each flavor-resource once, in ascending order; a zero amount is still "uses it"."""

Indices = NDArray[np.int64]

_MANY_SEEN = 10_000
_MOST_KEPT = 64
_encode = msgspec.msgpack.Encoder().encode
_NONE_YET = np.zeros(0, dtype=bool)
_BY_QUEUE = -1
"""Stands for a shape that depends on the queue: some flavor is not named."""


class Shapes:
    """Resolves tasks to amounts, once for each distinct shape. ``nodes``: that tasks may name, None among them.

    Equal tasks are recognised by their encoding, which costs a tenth of looking at them one by one. What is known is
    shared with the next version of a state until one of them learns something."""

    def __init__(self, configuration: CompiledConfiguration, nodes: frozenset[str | None]) -> None:
        self._configuration = configuration
        self.nodes = nodes
        self.amounts: list[Amounts] = []
        self.frs: list[FlavorResource] = list(configuration.quotas.frs)
        self._problems: list[Problem] = []
        self._index: dict[FlavorResource, int] = dict(configuration.quotas.fr_index)
        self._by_amounts: dict[Amounts, int] = {}
        self._seen: dict[bytes, int] = {}
        self._seen_in: dict[tuple[bytes, int], int] = {}
        self._users: dict[frozenset[int], NDArray[np.bool_]] = {}
        self._alike: dict[tuple[int, int], int] = {}
        self._pods = any(PODS in of for of in configuration.covering)
        self._shared = False

    def copy(self, nodes: frozenset[str | None]) -> "Shapes":
        """Another that knows the same shapes, for the next version of a state."""
        self._shared = True
        other = object.__new__(Shapes)
        other.__dict__.update(self.__dict__)
        other.nodes = nodes
        return other

    def _own(self) -> None:
        """Something is to be learnt: no other version may see it."""
        if not self._shared:
            return
        self._shared = False
        for name in ("amounts", "frs", "_index", "_by_amounts", "_users", "_alike"):
            setattr(self, name, getattr(self, name).copy())
        # Where few encodings repeat (every task with a name of its own) remembering them costs more than it saves.
        self._seen = self._seen.copy() if len(self._seen) < _MANY_SEEN else {}
        self._seen_in = self._seen_in.copy() if len(self._seen_in) < _MANY_SEEN else {}

    def using(self, frs: frozenset[int]) -> NDArray[np.bool_]:
        """By shape: whether it has one of ``frs`` assigned. Only shapes that are new since it was last asked are
        looked at."""
        known = self._users.get(frs, _NONE_YET)
        if len(known) < len(self.amounts):
            if len(self._users) >= _MOST_KEPT:
                self._users.clear()
            fresh = self.amounts[len(known) :]
            new = [of[0][0] in frs if len(of) == 1 else any(fr in frs for fr, _ in of) for of in fresh]
            known = self._users[frs] = np.concatenate((known, np.array(new, dtype=bool)))
        return known

    def alike(self, fr: int, other: int) -> bool:
        """Whether every shape uses as much of both. ``_alike``: how many shapes, from the first on, are known to."""
        known = self._alike.get((fr, other), 0)
        for of in self.amounts[known:]:
            uses = dict(of)
            if uses.get(fr) != uses.get(other):
                break
            known += 1
        self._alike[fr, other] = known
        return known == len(self.amounts)

    def column(self, workloads: Sequence[Workload], queues: Indices, indices: Sequence[int]) -> Indices:
        """The shape of each workload, given their queues and their indices in the state. Raises InvalidInput with
        every unknown flavor, QuantityError, ValueError for tasks that ``sound_tasks`` refuses."""
        if len(workloads) == 1 and (known := self._known(workloads[0], int(queues[0]))) is not None:
            return np.array([known], dtype=np.int64)
        self._problems = []  # a list of one's own: what is refused here is no problem of the version that was copied
        seen: dict[int, int] = {}
        first = [seen.setdefault(id(w.tasks), i) for i, w in enumerate(workloads)]
        firsts = list(seen.values())  # ascending; a list that many hold is looked at once
        of_firsts: list[int] = []
        by_queue: dict[int, bytes] = {}
        for i in firsts:
            tasks = workloads[i].tasks
            shape = self._simple(tasks)
            if shape is None:
                key = _encode(_undated(tasks))
                shape = self._seen.get(key)
                if shape is None:
                    shape = self._learn(key, workloads[i], int(queues[i]), indices[i])
                if shape == _BY_QUEUE:
                    by_queue[i] = key
            of_firsts.append(shape)
        shapes = np.empty(len(workloads), dtype=np.int64)
        shapes[firsts] = of_firsts
        out = shapes[np.fromiter(first, dtype=np.int64, count=len(first))]
        for i in np.flatnonzero(out == _BY_QUEUE).tolist() if by_queue else ():
            pair = (by_queue[first[i]], int(queues[i]))
            if pair not in self._seen_in:
                self._own()
                self._seen_in[pair] = self._resolve(indices[i], workloads[i].tasks, pair[1])[0]
            out[i] = self._seen_in[pair]
        if self._problems:
            raise InvalidInput(self._problems)
        return out

    def shape_of(self, workload: Workload, queue: int) -> int:
        """The shape of one workload in its queue. Raises what ``column`` raises."""
        known = self._known(workload, queue)
        return int(self.column([workload], np.array([queue]), [0])[0]) if known is None else known

    def _known(self, workload: Workload, queue: int) -> int | None:
        """Its shape, where tasks like its own were seen before, or it is told at once."""
        shape = self._simple(workload.tasks)
        if shape is None:
            key = _encode(_undated(workload.tasks))
            shape = self._seen.get(key)
            return self._seen_in.get((key, queue)) if shape == _BY_QUEUE else shape
        return shape

    def _learn(self, key: bytes, workload: Workload, queue: int, i: int) -> int:
        """Take note of tasks that nobody had so far. Raises ValueError, QuantityError."""
        if not sound_tasks(workload.tasks, self.nodes):
            raise ValueError(f"tasks of {workload.id!r}")
        self._own()
        shape, everywhere = self._resolve(i, workload.tasks, queue)
        self._seen_in[key, queue] = shape
        self._seen[key] = shape if everywhere else _BY_QUEUE
        return self._seen[key]

    def _resolve(self, i: int, tasks: Sequence[Task], queue: int) -> tuple[int, bool]:
        """The shape of workload ``i``, and whether it would be the same in any queue: every flavor is named."""
        totals: dict[int, int] = {}
        everywhere = True
        index = self._index
        for t, task in enumerate(tasks):
            named, requests = task.flavors, task.requests
            if named is None or not requests.keys() <= named.keys() or (self._pods and PODS not in named):
                everywhere = False
                for (flavor, resource), amount in pinned(self._configuration, queue, task).items():
                    fr = self._fr(flavor, resource, i, t)
                    totals[fr] = totals.get(fr, 0) + amount
                continue
            for resource, flavor in named.items():
                fr = index.get((flavor, resource))
                if fr is None:
                    fr = self._fr(flavor, resource, i, t)
                asked = requests.get(resource)
                if asked is None:
                    amount = task.count if resource == PODS else 0
                else:
                    amount = parse_quantity(asked, scale_of(resource)) * task.count
                totals[fr] = totals.get(fr, 0) + amount
        return self._shape(tuple(sorted(totals.items()))), everywhere

    def _simple(self, tasks: Sequence[Task]) -> int | None:
        """The shape of the commonest kind, which is told sooner than it is encoded: one task, one resource, with its
        flavor. None where it takes a closer look."""
        if len(tasks) != 1 or self._pods:
            return None
        task = tasks[0]
        named, requests = task.flavors, task.requests
        if named is None or len(named) != 1 or len(requests) != 1 or task.node not in self.nodes:
            return None
        ((resource, asked),) = requests.items()
        if resource not in named or (fr := self._index.get((named[resource], resource))) is None:
            return None
        amounts = ((fr, parse_quantity(asked, scale_of(resource)) * task.count),)
        shape = self._by_amounts.get(amounts)
        if shape is None:
            self._own()
            shape = self._shape(amounts)
        return shape

    def _shape(self, amounts: Amounts) -> int:
        shape = self._by_amounts.get(amounts)
        if shape is None:
            shape = self._by_amounts[amounts] = len(self.amounts)
            self.amounts.append(amounts)
        return shape

    def _fr(self, flavor: str, resource: str, i: int, t: int) -> int:
        fr = self._index.get((flavor, resource))
        if fr is None:
            if flavor not in self._configuration.flavor_names:
                where = pointer("state", "workloads", i, "tasks", t, "flavors", resource)
                self._problems.append(Problem(pointer=where, detail=f"no flavor {flavor!r}"))
            fr = self._index[(flavor, resource)] = len(self.frs)
            self.frs.append((flavor, resource))
        return fr


def _undated(tasks: list[Task]) -> list[Task]:
    """Without when they started, which is another for each and says nothing of what they use."""
    for task in tasks:
        if task.started_at is not None:
            return [replace(other, started_at=None) for other in tasks]
    return tasks


def pinned(configuration: CompiledConfiguration, node: int, task: Task) -> dict[FlavorResource, int]:
    """What ``task`` takes of each flavor-resource that it names a flavor for; where it names none, of the only
    flavor its queue has for that resource. Other resources are not under quota and count nowhere.

    "pods" counts one a pod without being requested. Amounts in steps, for all of ``count``. Raises QuantityError."""
    named = task.flavors or {}
    out: dict[FlavorResource, int] = {}
    for resource in dict.fromkeys((*task.requests, *named, PODS)):
        flavor = named.get(resource) or only_flavor(configuration, node, resource)
        if flavor is not None:
            asked = task.requests.get(resource)
            if asked is None:
                out[(flavor, resource)] = task.count if resource == PODS else 0
            else:
                out[(flavor, resource)] = parse_quantity(asked, scale_of(resource)) * task.count
    return out


def only_flavor(configuration: CompiledConfiguration, node: int, resource: str) -> str | None:
    """The flavor of ``resource`` in this queue, where it has just one."""
    group = configuration.covering[node].get(resource)
    if group is None:
        return None
    flavors = configuration.groups[node][group].flavors
    return flavors[0] if len(flavors) == 1 else None
