"""What of each snapshot is in the decision log, or on its way there."""

from threading import Lock

from app.answering.operations import Kept, Known

LONGEST = 1000
"""States that may build on one another: then one is kept whole again, so that the ones before can go some day, and
putting one together stays quick."""
_SNAPSHOTS = 10_000


class Ledger:
    """By name of snapshot the latest state that was taken into the log, its configuration, and how many states lie
    between the state and a whole one. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Known, int]] = {}
        self._lock = Lock()

    def known(self, snapshot: str) -> Known:
        """What changes may be told against; nothing where it is time for a whole state."""
        with self._lock:
            found = self._known.get(snapshot)
        if found is None:
            return Known()
        known, depth = found
        return known if depth < LONGEST else Known(configuration=known.configuration)

    def has(self, snapshot: str, state: str) -> bool:
        """Whether that state of the snapshot is in the log."""
        with self._lock:
            known = self._known.get(snapshot)
            return known is not None and known[0].state == state

    def taken(self, snapshot: str, state: str, configuration: str, documents: list[Kept]) -> None:
        """The log has taken a decision on that state, with ``documents``."""
        with self._lock:
            before, depth = self._known.pop(snapshot, (Known(), 0))
            for document in documents:
                if document.digest == state:
                    depth = 0 if document.base is None else depth + 1
            mine = any(document.digest == configuration for document in documents)
            self._known[snapshot] = Known(state, configuration if mine else before.configuration), depth
            while len(self._known) > _SNAPSHOTS:
                del self._known[next(iter(self._known))]

    def lost(self, digests: set[str]) -> None:
        """The database has not got these: nothing more is told against them."""
        with self._lock:
            for name in [n for n, (k, _) in self._known.items() if {k.state, k.configuration} & digests]:
                del self._known[name]
