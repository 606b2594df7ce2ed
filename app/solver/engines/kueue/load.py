"""A State compiled against a Kueue configuration: workload columns and the usage of every queue and cohort.

Fifty thousand workloads load in tens of milliseconds: columns are single-pass comprehensions, and what a
workload uses is resolved once for each distinct *shape* (its tasks' counts, requests and flavors). Whatever only
some decisions need (times, order, explanations) is computed when first asked for.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from datetime import datetime
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.solver.engines.kueue.compile import Configured
from app.solver.engines.kueue.quota import FlavorResource, Usage
from app.solver.model.base import Quantity
from app.solver.model.instant import micros
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.quantity import parse, scale_of
from app.solver.model.state import State, Task, Workload

Amounts = tuple[tuple[int, int], ...]
"""(flavor-resource, steps) pairs, each flavor-resource once, in ascending order; a zero amount is still "uses it"."""

OLDEST = -(2**62)
PODS = "pods"
_SAFE = 2**62
_NO_PRIORITY = 2**62
_MOST_KEPT = 64


class Loaded:
    """Immutable once built. Columns by workload index, in the order of the request.

    ``queue``: its node; ``shape``: index into ``shapes``, the amounts it uses; ``evicted``, ``protected``: indices of
    workloads being evicted, and of those marked not preemptible; ``by_queue(node)``: its workloads, ascending.
    ``quotas``: the configuration's, extended where running workloads use what has no quota; ``used``: usage by cell.
    """

    __slots__ = (
        "_fr_of_part", "_lowest", "_members", "_shape_of_part", "_starts", "_users", "configured", "evicted",
        "priority", "protected", "queue", "quotas", "shape", "shapes", "used", "workloads",
    )  # fmt: skip

    def __init__(self, configured: Configured, state: State) -> None:
        workloads = state.workloads
        self.configured = configured
        self.workloads = workloads
        index = configured.tree.index
        self.queue: NDArray[np.int64] = np.array([index[w.queue] for w in workloads], dtype=np.int64)
        self.priority: NDArray[np.int64] = np.array([w.priority for w in workloads], dtype=np.int64)
        self.evicted = frozenset([i for i, w in enumerate(workloads) if w.evicted])
        self.protected = frozenset([i for i, w in enumerate(workloads) if not w.preemptible])
        self._lowest: list[int] | None = None
        self._refuse_cohorts()
        shapes = _Shapes(configured, workloads, self.queue)
        self.shape: NDArray[np.int64] = np.array(shapes.column(), dtype=np.int64)
        self.shapes: list[Amounts] = shapes.found
        self._users: dict[frozenset[int], NDArray[np.bool_]] = {}
        sizes = np.array([len(of) for of in self.shapes], dtype=np.int64)
        self._shape_of_part: NDArray[np.int64] = np.repeat(np.arange(len(sizes)), sizes)
        self._fr_of_part: NDArray[np.int64] = np.array([fr for of in self.shapes for fr, _ in of], dtype=np.int64)
        self._members: NDArray[np.int64] = np.argsort(self.queue, kind="stable")
        self._starts: list[int] = np.searchsorted(
            self.queue[self._members], np.arange(len(configured.tree) + 1)
        ).tolist()
        totals = _totals(self.queue, self.shape, self.shapes, len(shapes.frs))
        quotas = configured.quotas
        self.quotas = quotas.extended(shapes.frs, totals) if quotas.missing(totals) else quotas
        self.used = self._usage(totals)

    def _refuse_cohorts(self) -> None:
        cohorts = np.array(self.configured.is_cohort, dtype=bool)
        if len(self.queue) and cohorts[self.queue].any():
            raise InvalidInput(
                Problem(pointer=pointer("state", "workloads", int(i), "queue"), detail="a cohort holds no workloads")
                for i in np.flatnonzero(cohorts[self.queue])
            )

    def _usage(self, totals: dict[tuple[int, int], int]) -> list[int]:
        """Sum by (queue, flavor-resource), then once up the tree: a cohort holds what each child cannot keep local."""
        quotas = self.quotas
        used = [0] * len(quotas.node)
        for (node, fr), total in totals.items():
            used[quotas.cells[node][fr]] = total
        for node in reversed(quotas.tree.top_down):
            for cell in quotas.cells[node].values():
                above = quotas.above[cell]
                if above >= 0 and used[cell] > quotas.local[cell]:
                    used[above] += used[cell] - quotas.local[cell]
        return used

    def by_queue(self, node: int) -> NDArray[np.int64]:
        """Indices of the workloads that run in ClusterQueue ``node``."""
        return self._members[self._starts[node] : self._starts[node + 1]]

    def lowest_priority(self, nodes: Iterable[int]) -> int | None:
        """The lowest priority that runs in these ClusterQueues; None when nothing runs there."""
        lowest = self._lowest
        if lowest is None:
            by_node = np.full(len(self.configured.tree), _NO_PRIORITY, dtype=np.int64)
            np.minimum.at(by_node, self.queue, self.priority)
            lowest = self._lowest = by_node.tolist()
        found = min((lowest[node] for node in nodes), default=_NO_PRIORITY)
        return None if found == _NO_PRIORITY else found

    def amounts(self, workload: int) -> Amounts:
        """What the workload uses."""
        return self.shapes[int(self.shape[workload])]

    def shapes_using(self, frs: frozenset[int]) -> NDArray[np.bool_]:
        """By shape: whether it has one of ``frs`` assigned."""
        known = self._users.get(frs)
        if known is None:
            if len(self._users) >= _MOST_KEPT:
                self._users.clear()
            known = self._users[frs] = np.zeros(len(self.shapes), dtype=bool)
            known[self._shape_of_part[np.isin(self._fr_of_part, list(frs))]] = True
        return known

    def with_priority(self, priority: NDArray[np.int64]) -> "Loaded":
        """The same state with other priorities in force (KEP-83: those of long runners fall)."""
        other = copy(self)
        other.priority = priority
        other._lowest = None
        return other

    def usage(self) -> Usage:
        """Fresh usage tables for one decision."""
        return Usage(self.quotas, self.used.copy())

    def started(self, workload: int, now: int) -> int:
        """When quota was reserved, in microseconds; ``now`` where unknown (Kueue: no QuotaReserved condition)."""
        at = self.workloads[workload].started_at
        return now if at is None else micros(at)

    def uid(self, workload: int) -> tuple[str, str]:
        """The last tie-break: the UID, then the id, so that the order of the request never decides."""
        of = self.workloads[workload]
        return (of.uid or "", of.id)


def load(configured: Configured, state: State) -> Loaded:
    """Compile. Raises InvalidInput, QuantityError or KeyError (an unknown queue)."""
    return Loaded(configured, state)


def instant(at: datetime | None) -> int:
    """Microseconds; absent is older than everything."""
    return OLDEST if at is None else micros(at)


class _Shapes:
    """Resolves tasks to amounts, once for each distinct shape.

    Equal tasks are recognised by their encoding, which costs a tenth of looking at them one by one."""

    def __init__(self, configured: Configured, workloads: Sequence[Workload], queue: NDArray[np.int64]) -> None:
        self._configured = configured
        self._workloads = workloads
        self._queue = queue
        self.found: list[Amounts] = []
        self.frs: list[FlavorResource] = list(configured.quotas.frs)
        self._index: dict[FlavorResource, int] = dict(configured.quotas.fr_index)
        self._by_amounts: dict[Amounts, int] = {}
        self._steps: dict[tuple[str, Quantity], int] = {}
        self.problems: list[Problem] = []
        self._pods = any(PODS in of for of in configured.covering)

    def column(self) -> list[int]:
        """The shape of every workload. Raises InvalidInput with every unknown flavor, QuantityError."""
        encode = msgspec.msgpack.Encoder().encode
        seen: dict[bytes, int] = {}
        out: list[int] = []
        for i, workload in enumerate(self._workloads):
            key = encode(workload.tasks)
            shape = seen.get(key)
            if shape is None:
                shape, everywhere = self._resolve(i, workload.tasks)
                if everywhere:
                    seen[key] = shape
            out.append(shape)
        if self.problems:
            raise InvalidInput(self.problems)
        return out

    def _resolve(self, i: int, tasks: Sequence[Task]) -> tuple[int, bool]:
        """The shape of workload ``i``, and whether it would be the same in any queue: every flavor is named."""
        totals: dict[int, int] = {}
        everywhere = True
        index, known = self._index, self._steps
        for t, task in enumerate(tasks):
            named, requests = task.flavors, task.requests
            if named is None or not requests.keys() <= named.keys() or (self._pods and PODS not in named):
                everywhere = False
                for (flavor, resource), amount in pinned(self._configured, int(self._queue[i]), task).items():
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
                    steps = known.get((resource, asked))
                    if steps is None:
                        steps = known[(resource, asked)] = parse(asked, scale_of(resource))
                    amount = steps * task.count
                totals[fr] = totals.get(fr, 0) + amount
        amounts: Amounts = tuple(totals.items()) if len(totals) == 1 else tuple(sorted(totals.items()))
        shape = self._by_amounts.get(amounts)
        if shape is None:
            shape = self._by_amounts[amounts] = len(self.found)
            self.found.append(amounts)
        return shape, everywhere

    def _fr(self, flavor: str, resource: str, i: int, t: int) -> int:
        fr = self._index.get((flavor, resource))
        if fr is None:
            if flavor not in self._configured.flavor_names:
                at = pointer("state", "workloads", i, "tasks", t, "flavors", resource)
                self.problems.append(Problem(pointer=at, detail=f"no flavor {flavor!r}"))
            fr = self._index[(flavor, resource)] = len(self.frs)
            self.frs.append((flavor, resource))
        return fr


def pinned(configured: Configured, node: int, task: Task) -> dict[FlavorResource, int]:
    """What ``task`` takes of each flavor-resource that it names a flavor for; where it names none, of the only
    flavor its queue has for that resource. Other resources are not under quota and count nowhere.

    "pods" counts one a pod without being requested. Amounts in steps, for all of ``count``. Raises QuantityError."""
    named = task.flavors or {}
    out: dict[FlavorResource, int] = {}
    resources = list(task.requests)
    resources += [r for r in named if r not in task.requests]
    if PODS in configured.covering[node] and PODS not in resources:
        resources.append(PODS)
    for resource in resources:
        flavor = named.get(resource) or only_flavor(configured, node, resource)
        if flavor is not None:
            asked = task.requests.get(resource)
            if asked is None:
                out[(flavor, resource)] = task.count if resource == PODS else 0
            else:
                out[(flavor, resource)] = parse(asked, scale_of(resource)) * task.count
    return out


def only_flavor(configured: Configured, node: int, resource: str) -> str | None:
    """The flavor of ``resource`` in this queue, where it has just one."""
    group = configured.covering[node].get(resource)
    if group is None:
        return None
    flavors = configured.groups[node][group].flavors
    return flavors[0] if len(flavors) == 1 else None


def _totals(
    queue: NDArray[np.int64], shape: NDArray[np.int64], shapes: list[Amounts], frs: int
) -> dict[tuple[int, int], int]:
    """Usage by (queue, flavor-resource). Exact: Python integers where a sum could pass int64."""
    amounts = [amount for of in shapes for _, amount in of]
    if not amounts:
        return {}
    kind = np.int64 if max(amounts) * max(1, len(queue)) < _SAFE else object
    keys: list[NDArray[np.int64]] = []
    values: list[NDArray[Any]] = []
    for k in range(max(map(len, shapes))):
        fr = np.array([of[k][0] if k < len(of) else -1 for of in shapes], dtype=np.int64)[shape]
        amount = np.array([of[k][1] if k < len(of) else 0 for of in shapes], dtype=kind)[shape]
        has = fr >= 0
        keys.append((queue * frs + fr)[has])
        values.append(amount[has])
    distinct, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    sums = np.zeros(len(distinct), dtype=kind)
    np.add.at(sums, inverse, np.concatenate(values))
    return {divmod(key, frs): total for key, total in zip(distinct.tolist(), sums.tolist(), strict=True)}
