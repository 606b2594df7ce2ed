"""Where pods go: topologies of nodes, and the placement of pod sets in them. Here the nodes of a flavor as a forest:
domains by level, what is free in each of its leaves.

Source: Kueue ``pkg/cache/scheduler/tas_topology_tree.go``, ``tas_nodes_cache.go``, ``util/tas/node.go``. A leaf is a
domain of the lowest level: a host, known by its hostname alone, or all nodes with the same label values, added up.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.solver import kubernetes
from app.solver.kubernetes import HOSTNAME
from app.solver.model.base import parse_quantity, scale_of
from app.solver.model.configuration import Flavor, Toleration
from app.solver.model.state import Node, Task

Amounts = dict[str, int]
"""Steps by resource."""


class Domain:
    """``id``: its place among all domains; ``values``: label values from the highest level down to its own; ``leaf``:
    its place among the leaves, -1 where it is none."""

    __slots__ = ("above", "children", "id", "leaf", "level", "values")

    def __init__(self, id: int, values: tuple[str, ...], above: "Domain | None") -> None:  # noqa: A002
        self.id = id
        self.level = len(values) - 1
        self.values = values
        self.above = above
        self.children: list[Domain] = []
        self.leaf = -1


class Forest:
    """``levels``: node label keys, outermost first; ``by_level``: domains by level, each in order of their values;
    ``leaves``; ``free``: by leaf, steps that pods outside of Kueue leave; ``nodes``: by leaf, the host, None where
    leaves are no hosts; ``index``: leaves by the values that an assignment has."""

    def __init__(self, flavor: Flavor, levels: Sequence[str], nodes: Iterable[Node]) -> None:
        self.levels = tuple(levels)
        self.tolerations: tuple[Toleration, ...] = tuple(flavor.tolerations or ())
        self.hosts = self.levels[-1] == HOSTNAME
        self.by_level: list[list[Domain]] = [[] for _ in levels]
        self.leaves: list[Domain] = []
        self.free: list[Amounts] = []
        self.nodes: list[Node | None] = []
        self.index: dict[tuple[str, ...], int] = {}
        self._allowed: dict[tuple[object, ...], list[bool]] = {}
        known: dict[tuple[str, ...], Domain] = {}
        for node in nodes:
            values = _values(node, flavor.node_labels, self.levels)
            if values is not None:
                self._add(node, values, known)
        for domains in self.by_level:
            domains.sort(key=_values_of)
        for domain in known.values():
            domain.children.sort(key=_values_of)

    def _add(self, node: Node, values: tuple[str, ...], known: dict[tuple[str, ...], Domain]) -> None:
        place = self.index.get(self.key(values))
        if place is None:
            place = len(self.leaves)
            leaf = self._domain(values, known)
            leaf.leaf = place
            self.leaves.append(leaf)
            self.index[self.key(values)] = place
            self.free.append({})
            self.nodes.append(node if self.hosts else None)
        free = self.free[place]
        for resource, value in node.capacity.items():
            free[resource] = free.get(resource, 0) + parse_quantity(value, scale_of(resource))
        for resource, value in node.occupied.items():
            free[resource] = free.get(resource, 0) - parse_quantity(value, scale_of(resource))

    def _domain(self, values: tuple[str, ...], known: dict[tuple[str, ...], Domain]) -> Domain:
        domain = known.get(values)
        if domain is None:
            above = self._domain(values[:-1], known) if len(values) > 1 else None
            domain = known[values] = Domain(len(known), values, above)
            self.by_level[domain.level].append(domain)
            if above is not None:
                above.children.append(domain)
        return domain

    @cached_property
    def leaf_ids(self) -> list[int]:
        """By leaf, its place among all domains."""
        return [leaf.id for leaf in self.leaves]

    @cached_property
    def place_of(self) -> list[NDArray[np.int64]]:
        """By level, by leaf, the place of its domain among those of the level."""
        places: list[NDArray[np.int64]] = []
        for level, domains in enumerate(self.by_level):
            place = {domain.values: i for i, domain in enumerate(domains)}
            places.append(np.array([place[leaf.values[: level + 1]] for leaf in self.leaves], dtype=np.int64))
        return places

    def __len__(self) -> int:
        """Domains of all levels."""
        return sum(map(len, self.by_level))

    def allowed(self, task: Task) -> list[bool]:
        """By leaf, whether pods of ``task`` may run there at all: by taints and labels of hosts; elsewhere anywhere."""
        if not self.hosts:
            return [True] * len(self.leaves)
        demands = kubernetes.demands(task)
        by_leaf = self._allowed.get(demands)
        if by_leaf is None:
            tolerations = [*(task.tolerations or ()), *self.tolerations]
            by_leaf = self._allowed[demands] = [
                node is not None
                and kubernetes.untolerated(node.taints, tolerations) is None
                and kubernetes.selects(task.node_selector or {}, node.labels)
                and (not task.node_affinity or kubernetes.matches_any(task.node_affinity, node.labels))
                for node in self.nodes
            ]
        return by_leaf

    def key(self, values: tuple[str, ...]) -> tuple[str, ...]:
        """What an assignment calls a leaf with these values: its hostname alone, or all of them."""
        return values[-1:] if self.hosts else values

    @property
    def shown_levels(self) -> list[str]:
        """The levels that an assignment names."""
        return [HOSTNAME] if self.hosts else list(self.levels)


def _values(node: Node, labels: Mapping[str, str], levels: Sequence[str]) -> tuple[str, ...] | None:
    """The node's values of all levels; None where it is none of the flavor's, can't be used, or lacks one."""
    mine = node.labels
    if not node.schedulable or any(mine.get(key) != value for key, value in labels.items()):
        return None
    own = [mine.get(level) for level in levels]
    return None if None in own else tuple(value for value in own if value is not None)


def _values_of(domain: Domain) -> tuple[str, ...]:
    return domain.values
