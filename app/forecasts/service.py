"""Forecasts as those see them who ask for them."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
from sqlalchemy import RowMapping
from sqlalchemy.orm import Session

from app.answering.sources import Compiled, Documents
from app.decoding import decode
from app.errors import BadInput
from app.forecasts.foretelling import scenarios
from app.forecasts.schemas import Forecast, ForecastOutcome, ForecastPage, ForecastRequest
from app.http.pages import decode_id, encode_cursor
from app.jobs.service import Jobs, New, outcome_of
from app.simulations.pinning import Pinning
from app.solver.model.base import Time
from app.solver.model.problems import Problem

KIND = "forecast"


class About(msgspec.Struct, frozen=True):
    """What is kept of a request to tell of it without reading it."""

    start: Time


class Forecasts:
    """Accepted, shown, stopped. ``variants``: the most that one may have; ``days``: how far ahead one may look."""

    def __init__(self, jobs: Jobs, documents: Documents, variants: int, days: float) -> None:
        self._jobs = jobs
        self._documents = documents
        self._configurations = Compiled(documents)
        self._variants = variants
        self._days = days

    def start(self, body: bytes) -> Forecast:
        """Accept a forecast. Raises InvalidInput, BadInput, NotFound, TooManyRequests, Unavailable."""
        request = decode(body, ForecastRequest)
        if len(request.variants) > self._variants:
            detail = f"{len(request.variants)} variants; at most {self._variants} are allowed"
            raise BadInput([Problem(pointer="/variants", detail=detail)])
        pins = Pinning(self._documents)
        start = request.start or datetime.now(UTC)
        pinned = msgspec.structs.replace(
            request,
            configuration=pins.reference(request.configuration),
            variants=[pins.part(variant) for variant in request.variants],
            changes=[pins.part(change) for change in request.changes],
            start=start,
        )
        for _ in scenarios(pinned, self._configurations, self._days):
            pass  # what is wrong is told now
        new = New(msgspec.json.encode(About(start)), msgspec.json.encode(pinned))

        def made(_: Session) -> New:
            return new

        return self.get(self._jobs.add(KIND, made))

    def get(self, identity: UUID) -> Forecast:
        """Raises NotFound, Unavailable."""
        return _shown(self._jobs.row(identity, KIND))

    def page(self, cursor: str | None, limit: int) -> ForecastPage:
        """Raises BadRequest, Unavailable."""
        rows = self._jobs.page(KIND, None if cursor is None else decode_id(cursor), limit + 1)
        more = encode_cursor(str(rows[limit - 1]["id"])) if len(rows) > limit else None
        return ForecastPage(items=[_shown(row) for row in rows[:limit]], next_cursor=more)

    def stop(self, identity: UUID) -> None:
        """Raises NotFound, Unavailable."""
        self._jobs.stop(identity, KIND)


def _shown(row: RowMapping) -> Forecast:
    outcome: ForecastOutcome | None = outcome_of(row, ForecastOutcome) if "outcome" in row else None
    return Forecast(
        id=row["id"], status=row["status"], created_at=row["created_at"], started_at=row["started_at"],
        ended_at=row["ended_at"], attempt=row["attempt"], start=msgspec.json.decode(row["about"], type=About).start,
        end=None if outcome is None else outcome.end, rounds=None if outcome is None else outcome.rounds,
        asks=[] if outcome is None else outcome.asks, error=row["error"],
    )  # fmt: skip
