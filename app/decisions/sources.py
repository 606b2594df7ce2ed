"""Where a request's named documents come from, without a store: from nowhere, or as they were."""

import msgspec

from app.decisions.answer import Sources
from app.errors import Conflict, NotFound
from app.lru import Lru
from app.solver import solve
from app.solver.digest import digest
from app.solver.model.configuration import Configuration
from app.solver.model.decision import ConfigurationUsed, StateUsed
from app.solver.model.problems import Problem
from app.solver.solve import Configured, Loaded

_BYTES_OF_A_QUEUE = 8192
"""Of a compiled configuration, its document included; measured on Kueue and YuniKorn, and tripled."""


class AsWritten:
    """What a request writes out is compiled each time."""

    def compiled(self, document: Configuration, engine: str | None) -> Configured:
        return solve.configure(document, engine)


class Remembered:
    """What a request writes out is compiled once: callers that send their whole cluster send the same queues each time.

    Told apart by digest. ``most`` configurations are kept, of at most ``budget`` bytes as estimated.
    """

    def __init__(self, most: int = 32, budget: int = 64 << 20) -> None:
        self._kept: Lru[tuple[str, str | None], Configured] = Lru(most, budget)

    def compiled(self, document: Configuration, engine: str | None) -> Configured:
        key = (digest(document, "configuration"), engine)
        if (kept := self._kept.get(key)) is not None:
            return kept
        configured = solve.configure(document, engine)
        self._kept.put(key, configured, _BYTES_OF_A_QUEUE * (1 + len(document.queues)))
        return configured


class NoSources(AsWritten):
    """Nothing is stored: the request must bring everything along (the command line)."""

    def configured(self, reference: str, engine: str | None) -> Configured:
        raise unknown("configuration", f"nothing is stored here: write configuration {reference!r} out in full")

    def loaded(self, configured: Configured, snapshot: str) -> Loaded:
        raise unknown("state/snapshot", f"nothing is stored here: write the state of {snapshot!r} out in full")


class Used(msgspec.Struct, frozen=True):
    """The part of a recorded answer that says what it was based on."""

    configuration: ConfigurationUsed
    state: StateUsed


class Pinned:
    """Other sources as they were: the configuration in the revision used then, a snapshot only in its generation."""

    def __init__(self, sources: Sources, used: Used) -> None:
        self._sources = sources
        self._used = used

    def configured(self, reference: str, engine: str | None) -> Configured:
        used = self._used.configuration
        return self._sources.configured(f"{used.name}@{used.revision}", engine)

    def compiled(self, document: Configuration, engine: str | None) -> Configured:
        return self._sources.compiled(document, engine)

    def loaded(self, configured: Configured, snapshot: str) -> Loaded:
        found = self._sources.loaded(configured, snapshot)
        if found.generation != self._used.state.generation or found.used.digest != self._used.state.digest:
            raise Conflict(f"snapshot {snapshot!r} has moved on from generation {self._used.state.generation}")
        return found


def unknown(where: str, detail: str) -> NotFound:
    """The error for a name that means nothing here."""
    return NotFound(detail, problems=[Problem(pointer=f"/{where}", detail=detail)])
