"""The configurations of the service as sources of decisions."""

from collections import OrderedDict
from threading import Lock

from app.configurations.service import Configurations
from app.decisions.sources import unknown
from app.decoding import decode
from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.solve import Configured, Loaded

_KEPT = 64


class StoredSources:
    """The service's configurations; compiled ones are kept, the least used goes first."""

    def __init__(self, configurations: Configurations) -> None:
        self._configurations = configurations
        self._kept: OrderedDict[tuple[str, int, str | None], Configured] = OrderedDict()
        self._lock = Lock()

    def configured(self, reference: str, engine: str | None) -> Configured:
        """Raises NotFound, BadInput for what is no reference, Unavailable."""
        revision = self._configurations.resolve(reference)
        key = (revision.name, revision.revision, engine)
        with self._lock:
            if (kept := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return kept
        document = decode(revision.document, Configuration)
        configured = solve.configure(document, engine, name=revision.name, revision=revision.revision)
        with self._lock:
            self._kept[key] = configured
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return configured

    def head(self, reference: str) -> tuple[str, int]:
        """Name and revision that a worker's reference means now. Raises NotFound, BadInput, Unavailable."""
        revision = self._configurations.resolve(reference)
        return revision.name, revision.revision

    def document(self, name: str, revision: int) -> bytes:
        """The JSON of a revision, for a worker. Raises NotFound, Unavailable."""
        return self._configurations.resolve(f"{name}@{revision}").document

    def loaded(self, configured: Configured, snapshot: str) -> Loaded:
        raise unknown("state/snapshot", f"no snapshot {snapshot!r}")
