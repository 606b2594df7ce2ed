"""Names of resources and queues as indices, so that quantities are integer vectors and the queue tree is arrays; the
journal through which what is compiled is changed and taken back.
"""

from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from typing import TypeVar, cast

from app.solver.model.base import Quantity, parse_quantity, scale_of, units
from app.solver.model.configuration import Queue
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.question import safe_point

K = TypeVar("K")
V = TypeVar("V")


class ResourceIndex:
    """Resource names in a fixed order, with the integer scale of each (1000 steps a unit for cpu, gpu)."""

    __slots__ = ("index", "names", "scales")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        self.scales: list[int] = []
        self.index: dict[str, int] = {}
        for name in names:
            self.add(name)

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str) -> int:
        """Index of ``name``, given one if it has none."""
        index = self.index.get(name)
        if index is None:
            index = self.index[name] = len(self.names)
            self.names.append(name)
            self.scales.append(scale_of(name))
        return index

    def steps(self, quantities: Mapping[str, Quantity]) -> dict[int, int]:
        """Parsed quantities by resource index. Raises QuantityError; names not yet known are added."""
        return {(r := self.add(name)): parse_quantity(value, self.scales[r]) for name, value in quantities.items()}

    def vector(self, quantities: Mapping[str, Quantity]) -> list[int]:
        """Parsed quantities of known resources as a dense vector; missing is 0. Raises KeyError, QuantityError."""
        out = [0] * len(self.names)
        for name, value in quantities.items():
            r = self.index[name]
            out[r] = parse_quantity(value, self.scales[r])
        return out

    def units(self, steps: Mapping[int, int]) -> dict[str, int | float]:
        """Integer steps by index as answers show them."""
        return {self.names[r]: units(value, self.names[r]) for r, value in steps.items()}


ROOTLESS = -1
_MOST_COLUMNS = 32


def remember(columns: dict[K, V], key: K, column: V) -> V:
    """``column``, known under ``key`` from now on. All are forgotten once they are many: one may be large."""
    if len(columns) >= _MOST_COLUMNS:
        columns.clear()
    columns[key] = column
    return column


class Tree:
    """The queue tree as indices: one type for ClusterQueue, cohort, leaf and pool.

    ``parent[i]`` is -1 at a root. ``top_down`` lists parents before children; children keep document order.
    """

    __slots__ = ("children", "depth", "index", "names", "parent", "roots", "top_down")

    def __init__(self, names: list[str], parent: list[int]) -> None:
        self.names = names
        self.parent = parent
        self.index = {name: i for i, name in enumerate(names)}
        self.children: list[list[int]] = [[] for _ in names]
        self.roots: list[int] = []
        for i, above in enumerate(parent):
            (self.roots if above == ROOTLESS else self.children[above]).append(i)
        self.depth = [0] * len(names)
        self.top_down: list[int] = list(self.roots)
        for i in self.top_down:
            for child in self.children[i]:
                self.depth[child] = self.depth[i] + 1
                self.top_down.append(child)

    def __len__(self) -> int:
        return len(self.names)

    def path(self, i: int) -> list[int]:
        """From ``i`` up to its root, both included."""
        out: list[int] = []
        while i != ROOTLESS:
            out.append(i)
            i = self.parent[i]
        return out

    def above(self, nodes: Iterable[int]) -> set[int]:
        """Every node that is above one of ``nodes``."""
        parent, out = self.parent, set[int]()
        for i in nodes:
            ancestor = parent[i]
            while ancestor != ROOTLESS and ancestor not in out:
                out.add(ancestor)
                ancestor = parent[ancestor]
        return out

    def root(self, i: int) -> int:
        """The root above ``i``."""
        while self.parent[i] != ROOTLESS:
            i = self.parent[i]
        return i

    def is_leaf(self, i: int) -> bool:
        """No children."""
        return not self.children[i]

    def is_ancestor(self, above: int, below: int) -> bool:
        """Whether ``above`` is ``below`` or one of its ancestors."""
        while below != ROOTLESS:
            if below == above:
                return True
            below = self.parent[below]
        return False

    def lowest_common_ancestor(self, a: int, b: int) -> int:
        """-1 when they are in different trees."""
        while a != b:
            if self.depth[a] >= self.depth[b]:
                a = self.parent[a]
            else:
                b = self.parent[b]
            if ROOTLESS in (a, b):
                return ROOTLESS
        return a

    def under(self, i: int) -> list[int]:
        """``i`` and everything below it, parents first."""
        out = [i]
        for node in out:
            out.extend(self.children[node])
        return out


def compile_tree(queues: Sequence[Queue], *, implicit_parents: bool = False) -> Tree:
    """The tree of ``queues``. With ``implicit_parents`` a parent that is only referenced exists (Kueue: an
    implicit cohort) and comes after the listed ones. Raises InvalidInput for a cycle or an unknown parent."""
    names = [q.name for q in queues]
    index = {name: i for i, name in enumerate(names)}
    parent: list[int] = []
    problems: list[Problem] = []
    for i, queue in enumerate(queues):
        safe_point()
        if queue.parent is None:
            parent.append(ROOTLESS)
        elif queue.parent in index:
            parent.append(index[queue.parent])
        elif implicit_parents:
            index[queue.parent] = len(names)
            parent.append(len(names))
            names.append(queue.parent)
        else:
            problems.append(
                Problem(pointer=pointer("configuration", "queues", i, "parent"), detail=f"no queue {queue.parent!r}")
            )
            parent.append(ROOTLESS)
    parent += [ROOTLESS] * (len(names) - len(parent))
    tree = Tree(names, parent)
    if len(tree.top_down) < len(names):
        reached = set(tree.top_down)
        problems += [
            Problem(pointer=pointer("configuration", "queues", i, "parent"), detail=f"{names[i]!r} is its own ancestor")
            for i in range(len(queues))
            if i not in reached
        ]
    if problems:
        raise InvalidInput(problems)
    return tree


T = TypeVar("T")


class Journal:
    """A journal of writes to integer tables."""

    __slots__ = ("_log",)

    def __init__(self) -> None:
        self._log: list[tuple[MutableSequence[int], int, int]] = []

    def add(self, table: MutableSequence[int], index: int, delta: int) -> None:
        """``table[index] += delta``, remembered."""
        old = table[index]
        self._log.append((table, index, old))
        table[index] = old + delta

    def spread(self, tables: Sequence[MutableSequence[int]], index: int, deltas: Sequence[int], sign: int) -> None:
        """``tables[i][index] += sign * deltas[i]`` for every i, remembered."""
        log = self._log
        for table, delta in zip(tables, deltas, strict=False):
            if delta:
                old = table[index]
                log.append((table, index, old))
                table[index] = old + sign * delta

    def put(self, table: MutableSequence[int], index: int, value: int) -> None:
        """``table[index] = value``, remembered."""
        self._log.append((table, index, table[index]))
        table[index] = value

    def put_any(self, table: list[T], index: int, value: T) -> None:
        """``put`` for a table of anything."""
        self._log.append((cast(list[int], table), index, cast(int, table[index])))
        table[index] = value

    def checkpoint(self) -> int:
        """A mark to roll back to."""
        return len(self._log)

    def rollback(self, mark: int) -> None:
        """Undo every write since ``mark``, newest first."""
        log = self._log
        while len(log) > mark:
            table, index, old = log.pop()
            table[index] = old


class Unlogged(Journal):
    """Writes that no rollback undoes: whoever keeps books by it takes every step back himself."""

    def add(self, table: MutableSequence[int], index: int, delta: int) -> None:
        table[index] += delta

    def put(self, table: MutableSequence[int], index: int, value: int) -> None:
        table[index] = value
