"""The state of a run, compiled, and followed change by change: one delta before each round that needs it."""

from app.solver import solve
from app.solver.delta import apply_delta
from app.solver.model.delta import Delta, NodeChanges, WorkloadChanges
from app.solver.model.state import Node, State, Workload
from app.solver.solve import Configured, Loaded


class Kept:
    """What runs now, and the same compiled as of the last round."""

    def __init__(self, configured: Configured, state: State) -> None:
        self._loaded = solve.load(configured, state)
        self._pending: dict[str, Workload | None] = {}

    @property
    def configured(self) -> Configured:
        """The configuration in force."""
        return self._loaded.configured

    @property
    def nodes(self) -> list[Node]:
        """The nodes there are."""
        return self._loaded.state.nodes

    def workload(self, name: str) -> Workload | None:
        """One that runs, or None."""
        if name in self._pending:
            return self._pending[name]
        at = self._loaded.index.workloads.get(name)
        return None if at is None else self._loaded.state.workloads[at]

    def set(self, workload: Workload) -> None:
        """It runs from now on, or runs otherwise."""
        self._pending[workload.id] = workload

    def remove(self, name: str) -> None:
        """It runs no longer."""
        self._pending[name] = None

    def change_nodes(self, nodes: NodeChanges) -> None:
        """Nodes come, change and go. Raises InvalidInput."""
        self._follow(nodes)

    def configure(self, configured: Configured) -> None:
        """Another configuration is in force. Raises InvalidInput where what runs has no place in it."""
        self._follow(NodeChanges())
        self._loaded = solve.load(configured, self._loaded.state)

    def loaded(self) -> Loaded:
        """The state as it is, compiled."""
        if self._pending:
            self._follow(NodeChanges())
        return self._loaded

    def _follow(self, nodes: NodeChanges) -> None:
        known = self._loaded.index.workloads
        pending = self._pending.items()
        workloads = WorkloadChanges(
            add=[w for name, w in pending if w is not None and name not in known],
            change=[w for name, w in pending if w is not None and name in known],
            remove=[name for name, w in pending if w is None and name in known],
        )
        delta = Delta(generation=0, nodes=nodes, workloads=workloads)
        state, index, changes = apply_delta(self._loaded.state, self._loaded.index, delta)
        self._loaded = solve.update(self._loaded, state, index, changes, generation=None)
        self._pending = {}
