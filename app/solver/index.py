"""Where things stand in a state, by name; kept with it."""

from operator import attrgetter

from app.solver.model.state import State

_id, _name = attrgetter("id"), attrgetter("name")


class Index:
    """``workloads``: position by id, the last one where an id is there twice."""

    __slots__ = ("_nodes", "_state", "workloads")

    def __init__(self, state: State, workloads: dict[str, int] | None = None, nodes: frozenset[str] | None = None):
        """``workloads`` and ``nodes``: where they are known to be the same as in another state."""
        self._state = state
        self._nodes = nodes
        if workloads is None:
            workloads = dict(zip(map(_id, state.workloads), range(len(state.workloads)), strict=True))
        self.workloads = workloads

    @property
    def nodes(self) -> frozenset[str]:
        """The names of all nodes."""
        if self._nodes is None:
            self._nodes = frozenset(map(_name, self._state.nodes))
        return self._nodes
