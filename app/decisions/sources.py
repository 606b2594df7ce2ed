"""Where a request's named documents come from."""

from app.decisions.answer import Sources
from app.errors import NotFound
from app.solver.model.problems import Problem
from app.solver.solve import Configured, Loaded


class NoSources:
    """Nothing is stored: the request must bring everything along (the command line)."""

    def configured(self, reference: str, engine: str | None) -> Configured:
        raise _unknown("configuration", f"nothing is stored here: write configuration {reference!r} out in full")

    def loaded(self, configured: Configured, snapshot: str) -> Loaded:
        raise _unknown("state/snapshot", f"nothing is stored here: write the state of {snapshot!r} out in full")


class Pinned:
    """Other sources as they were: the configuration of a request in the revision that was used then."""

    def __init__(self, sources: Sources, name: str | None, revision: int | None) -> None:
        self._sources = sources
        self._reference = f"{name}@{revision}"

    def configured(self, reference: str, engine: str | None) -> Configured:
        return self._sources.configured(self._reference, engine)

    def loaded(self, configured: Configured, snapshot: str) -> Loaded:
        return self._sources.loaded(configured, snapshot)


def _unknown(where: str, detail: str) -> NotFound:
    return NotFound(detail, problems=[Problem(pointer=f"/{where}", detail=detail)])
