"""The state of a run, compiled, and followed change by change: one delta before each round that needs it."""

from app.solver import solve
from app.solver.delta import apply_delta
from app.solver.model.delta import Delta, NodeChanges, ReservationChanges, ReservationName, WorkloadChanges
from app.solver.model.state import Node, QueueState, Reservation, State, Workload
from app.solver.rounds import Turn
from app.solver.solve import Configured, Loaded

NO_NODES = NodeChanges()


class Kept:
    """What runs now, and the same compiled as of the last round."""

    def __init__(self, configured: Configured, state: State) -> None:
        self._loaded = solve.load(configured, state)
        self._pending: dict[str, Workload | None] = {}
        self._nodes = NO_NODES
        self._queues: dict[str, QueueState] = {}
        self._reservations: list[Reservation] | None = None

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
        """Nodes come, change and go."""
        self._follow()
        self._nodes = nodes
        self._follow()

    def note(self, turn: Turn) -> None:
        """What an answer carries over: of nodes, queues and reservations."""
        if turn.nodes:
            self._nodes = NodeChanges(change=turn.nodes)
        self._queues |= turn.queues
        if turn.reservations is not None:
            self._reservations = turn.reservations

    def configure(self, configured: Configured) -> None:
        """Another configuration is in force. Raises InvalidInput where what runs has no place in it."""
        self._follow()
        self._loaded = solve.load(configured, self._loaded.state)

    def loaded(self) -> Loaded:
        """The state as it is, compiled."""
        if self._pending or self._queues or self._nodes is not NO_NODES or self._reservations is not None:
            self._follow()
        return self._loaded

    def _follow(self) -> None:
        state, index = self._loaded.state, self._loaded.index
        pending = self._pending.items()
        delta = Delta(
            generation=0,
            nodes=self._nodes,
            workloads=WorkloadChanges(
                add=[w for name, w in pending if w is not None and name not in index.workloads],
                change=[w for name, w in pending if w is not None and name in index.workloads],
                remove=[name for name, w in pending if w is None and name in index.workloads],
            ),
            reservations=_reservation_changes(state.reservations, self._reservations),
            queues=self._queues,
        )
        after, index, changes = apply_delta(state, index, delta)
        self._loaded = solve.update(self._loaded, after, index, changes, generation=None)
        self._pending, self._queues, self._nodes, self._reservations = {}, {}, NO_NODES, None


def _reservation_changes(before: list[Reservation], after: list[Reservation] | None) -> ReservationChanges:
    """All that there were go, and all that there are come, so that their order is that of ``after``."""
    if after is None or after == before:
        return ReservationChanges()
    return ReservationChanges(add=after, remove=[ReservationName(node=held.node, ask=held.ask.id) for held in before])
