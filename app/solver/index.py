"""Where things stand in a state, by name; kept with it."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from app.solver.model.state import State, Workload


class Positions(Mapping[str, int]):
    """Positions in a list by id, the last one where an id is there twice. Immutable.

    Each id has a serial number, ascending along the list; a position is the place of its number among those that are
    left. So the next version of a list from whose middle something went costs two copies, not a new dictionary."""

    __slots__ = ("_numbers", "_order")

    def __init__(self, numbers: dict[str, int], order: "array[int] | None" = None) -> None:
        """``order``: the numbers that are left, ascending; None: all of them, from 0."""
        self._numbers = numbers
        self._order = order

    @staticmethod
    def of(workloads: Sequence[Workload]) -> "Positions":
        """Those of a list."""
        return Positions({w.id: at for at, w in enumerate(workloads)})

    def after(self, gone: Sequence[str], added: Iterable[str]) -> "Positions":
        """Those of the next version: what is ``gone`` closes the gap, what is ``added`` comes last. No id may be there
        twice."""
        numbers, order = self._numbers.copy(), self._order
        if gone or order is not None:
            order = array("q", range(len(numbers))) if order is None else order[:]
            for place in sorted((self[name] for name in gone), reverse=True):
                del order[place]
        for name in gone:
            del numbers[name]
        following = len(numbers) if order is None else order[-1] + 1 if order else 0
        for name in added:
            numbers[name] = following
            if order is not None:
                order.append(following)
            following += 1
        return Positions(numbers, order)

    def __getitem__(self, name: str) -> int:
        number = self._numbers[name]
        return number if self._order is None else bisect_left(self._order, number)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class _Names:
    """Of the nodes of all states that have the same; each set is made when it is first asked for."""

    def __init__(self, state: State) -> None:
        self._nodes = state.nodes

    @cached_property
    def nodes(self) -> frozenset[str]:
        return frozenset(node.name for node in self._nodes)

    @cached_property
    def places(self) -> frozenset[str | None]:
        return frozenset([None, *self.nodes])

    @cached_property
    def node_places(self) -> dict[str, int]:
        return {node.name: i for i, node in enumerate(self._nodes)}


class Index:
    """``workloads``: position by id."""

    __slots__ = ("_names", "_state", "workloads")

    def __init__(self, state: State, workloads: Positions | None = None, names: _Names | None = None):
        """``workloads`` and ``names``: where they are known from another state."""
        self._state = state
        self._names = _Names(state) if names is None else names
        self.workloads = Positions.of(state.workloads) if workloads is None else workloads

    def after(
        self, state: State, gone: Sequence[str], added: Sequence[str], *, same_nodes: bool = False
    ) -> "Index":  # fmt: skip
        """That of the next version, ``state``: from the workloads these have gone, and these were added.
        ``same_nodes``: no node came or went, and each is where it was."""
        workloads = self.workloads
        names = self._names if same_nodes or state.nodes is self._state.nodes else None
        return Index(state, workloads.after(gone, added) if gone or added else workloads, names)

    @property
    def nodes(self) -> frozenset[str]:
        """The names of all nodes."""
        return self._names.nodes

    @property
    def node_places(self) -> dict[str, int]:
        """Position of each node by its name, the last one where a name is there twice."""
        return self._names.node_places

    @property
    def places(self) -> frozenset[str | None]:
        """Where a task may be: the names of all nodes, and None."""
        return self._names.places
