"""The jobs of one kind, shown, listed and stopped alike whatever they do."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar
from uuid import UUID

from sqlalchemy import RowMapping
from sqlalchemy.orm import Session

from app.base.errors import NotFound
from app.http.pages import decode_id, encode_cursor
from app.jobs.service import Jobs, New

Shown = TypeVar("Shown")
Page = TypeVar("Page")


class JobsOfKind(Generic[Shown, Page]):
    """``shown``: a stored job as its kind tells it; ``paged``: makes a page of ``items`` and ``next_cursor``."""

    def __init__(self, jobs: Jobs, kind: str, shown: Callable[[RowMapping], Shown], paged: Callable[..., Page]) -> None:
        self._jobs = jobs
        self._kind = kind
        self._shown = shown
        self._paged = paged

    def get(self, identity: UUID) -> Shown:
        """Raises NotFound, Unavailable."""
        return self._shown(self._jobs.row(identity, self._kind))

    def page(self, cursor: str | None, limit: int) -> Page:
        """Raises BadRequest, Unavailable."""
        rows = self._jobs.page(self._kind, None if cursor is None else decode_id(cursor), limit + 1)
        more = encode_cursor(str(rows[limit - 1]["id"])) if len(rows) > limit else None
        return self._paged(items=[self._shown(row) for row in rows[:limit]], next_cursor=more)

    def stop(self, identity: UUID) -> None:
        """Raises NotFound, Unavailable."""
        self._jobs.stop(identity, self._kind)

    def _accept(self, made: Callable[[Session], New]) -> Shown:
        """``made`` is called in the transaction that accepts. Raises TooManyRequests, Unavailable, what it raises."""
        return self.get(self._jobs.add(self._kind, made))

    def _variant(self, identity: UUID, variant: str | None, names: Sequence[str]) -> int:
        """Which of the job's variants, by ``names``, that is. Raises NotFound."""
        if variant is None:
            return 0
        if variant not in names:
            raise NotFound(f"{self._kind} {identity} has no variant {variant!r}")
        return names.index(variant)
