"""The configurations of the service as sources of decisions."""

from app.configurations.service import Configurations, Pin
from app.decisions.sources import AsWritten, unknown
from app.decoding import decode
from app.lru import Lru
from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.solve import Configured, Loaded

_KEPT = 64


class StoredSources(AsWritten):
    """The service's configurations; compiled ones are kept, up to ``budget`` bytes of the documents they came from."""

    def __init__(self, configurations: Configurations, budget: int = 64 << 20) -> None:
        self._configurations = configurations
        self._kept: Lru[tuple[Pin, str | None], Configured] = Lru(_KEPT, budget)

    def configured(self, reference: str, engine: str | None) -> Configured:
        """Raises NotFound, BadInput for what is no reference, Unavailable."""
        pin = self._configurations.pin(reference)
        if (kept := self._kept.get((pin, engine))) is not None:
            return kept
        document = self._configurations.revision(pin).document
        configured = solve.configure(
            decode(document, Configuration), engine, name=pin.name, revision=pin.revision
        )  # fmt: skip
        self._kept.put((pin, engine), configured, len(document))
        return configured

    def head(self, reference: str) -> tuple[str, int]:
        """Name and revision that a worker's reference means now. Raises NotFound, BadInput, Unavailable."""
        return self._configurations.pin(reference)

    def document(self, name: str, revision: int) -> bytes:
        """The JSON of a revision, for a worker. Raises NotFound, Unavailable."""
        return self._configurations.revision(Pin(name, revision)).document

    def loaded(self, configured: Configured, snapshot: str) -> Loaded:
        raise unknown("state/snapshot", f"no snapshot {snapshot!r}")
