"""``/v1/forecasts`` and ``/v1/exposures``: when will it start, and who is next, as jobs that whoever asks can watch and
stop. What a question names is written out when it is accepted, so that the worker reads what was meant."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import RowMapping

from app.answering.comparison import too_many
from app.answering.snapshots import FollowedAge, PendingAsks, SnapshotStatus
from app.answering.sources import Compiled, Documents
from app.base.decoding import decode
from app.base.errors import BadInput
from app.http.openapi import Part
from app.jobs.service import Jobs, JobsOfKind, New, Said, outcome_of, router_of, state_of
from app.simulations.accepting import Pinning
from app.solver.model.base import Time
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.request import StateOrReference
from app.studies.exposing import prepared
from app.studies.exposure_schemas import (
    EXPOSURE,
    ExposureOutcome,
    ExposureProgress,
    ExposureRequest,
    Exposures,
    ExposuresPage,
)
from app.studies.forecasting import FORECAST, Forecast, ForecastOutcome, ForecastPage, ForecastRequest, scenarios

FORECASTS, EXPOSURES = "forecast", "exposure"
"""Kinds of jobs."""


class SnapshotReads(msgspec.Struct, frozen=True):
    """What is asked of a kept snapshot: its status, its state with its generation, and what waits beside it; each by
    name, as JSON. ``age``: how old it is, where it follows a cluster."""

    status: Callable[[str], bytes]
    state: Callable[[str], tuple[int, bytes]]
    asks: Callable[[str], bytes]
    age: Callable[[str | None], FollowedAge | None]

    def written_out(self, state: StateOrReference) -> StateOrReference:
        """With the state of the snapshot that it names. Raises NotFound."""
        return state if state.snapshot is None else decode(self.state(state.snapshot)[1], StateOrReference)


class AboutForecast(msgspec.Struct, frozen=True):
    """What is kept of a request to tell of it without reading it."""

    start: Time
    followed: FollowedAge | None = None


class Forecasts(JobsOfKind[Forecast, ForecastPage]):
    """Forecasts as those see them who ask for them: accepted, shown, stopped. ``variants``: the most that one may have;
    ``days``: how far ahead one may look."""

    def __init__(self, jobs: Jobs, documents: Documents, snapshots: SnapshotReads, variants: int, days: float) -> None:
        super().__init__(jobs, FORECASTS, _shown_forecast, ForecastPage)
        self._documents = documents
        self._snapshots = snapshots
        self._configurations = Compiled(documents)
        self._variants = variants
        self._days = days

    def start(self, body: bytes) -> Forecast:
        """Accept a forecast. Raises InvalidInput, BadInput, NotFound, TooManyRequests, Unavailable."""
        request = decode(body, ForecastRequest)
        if problems := too_many(request.variants, self._variants):
            raise BadInput(problems)
        pins = Pinning(self._documents)
        start, followed = request.start or datetime.now(UTC), self._snapshots.age(request.state.snapshot)
        pinned = msgspec.structs.replace(
            request,
            configuration=pins.reference(request.configuration),
            variants=[pins.part(variant) for variant in request.variants],
            changes=[pins.part(change) for change in request.changes],
            state=self._snapshots.written_out(request.state),
            start=start,
        )
        for _ in scenarios(pinned, self._configurations, self._days):
            pass  # what is wrong is told now
        new = New(msgspec.json.encode(AboutForecast(start, followed)), msgspec.json.encode(pinned))
        return self._accept(lambda _: new)


def _shown_forecast(row: RowMapping) -> Forecast:
    outcome = outcome_of(row, ForecastOutcome)
    about = msgspec.json.decode(row["about"], type=AboutForecast)
    return Forecast(
        **state_of(row), start=about.start, followed=about.followed,
        end=None if outcome is None else outcome.end, rounds=None if outcome is None else outcome.rounds,
        asks=[] if outcome is None else outcome.asks, findings=None if outcome is None else outcome.findings,
    )  # fmt: skip


forecasts = router_of(
    Forecasts, FORECASTS, request=ForecastRequest, shown=Forecast, page=ForecastPage, example=FORECAST,
    begin=Said("forecast", "When will it start?", """
    Accepted at once, made by a worker: what waits and what runs is played on, round by round, until every ask has
    started; then again under each variant. `Location` is where to look."""),
    listed=Said("list_forecasts", "Forecasts, newest first", "Without asks."),
    got=Said(
        "get_forecast", "Status and, once done, the first start of each ask",
        "When each ask first starts, what it waits for until then, and how each variant moves that.",
    ),
)  # fmt: skip
FORECASTS_PART = Part(forecasts, (ForecastRequest, Forecast, ForecastPage))


class AboutExposure(msgspec.Struct, frozen=True):
    """As `AboutForecast`."""

    configuration: str | None
    snapshot: str | None
    followed: FollowedAge | None = None


class ExposureJobs(JobsOfKind[Exposures, ExposuresPage]):
    """Accepted, shown, stopped."""

    def __init__(self, jobs: Jobs, documents: Documents, snapshots: SnapshotReads) -> None:
        super().__init__(jobs, EXPOSURES, _shown_exposure, ExposuresPage)
        self._documents = documents
        self._configurations = Compiled(documents)
        self._snapshots = snapshots

    def start(self, body: bytes) -> Exposures:
        """Accept a question; what it names is written out, so that the worker reads what was meant. Raises
        InvalidInput, NotFound, TooManyRequests, Unavailable."""
        request = decode(body, ExposureRequest)
        pins, snapshot = Pinning(self._documents), request.state.snapshot
        followed = self._snapshots.age(snapshot)
        pinned = msgspec.structs.replace(
            request, now=request.now or datetime.now(UTC),
            configuration=pins.reference(self._configuration(request)), asks=self._asks(request),
            state=self._snapshots.written_out(request.state),
        )  # fmt: skip
        prepared(pinned, self._configurations)  # what is wrong is told now
        named = pinned.configuration if isinstance(pinned.configuration, str) else None
        new = New(msgspec.json.encode(AboutExposure(named, snapshot, followed)), msgspec.json.encode(pinned))
        return self._accept(lambda _: new)

    def _configuration(self, request: ExposureRequest) -> Any:
        if request.configuration is not None:
            return request.configuration
        if request.state.snapshot is None:
            raise _missing("missing field: only a snapshot has a configuration of its own")
        used = msgspec.json.decode(self._snapshots.status(request.state.snapshot), type=SnapshotStatus).configuration
        if used.name is None:
            raise _missing("missing field: the snapshot was put with a document that has no name")
        return f"{used.name}@{used.revision}"

    def _asks(self, request: ExposureRequest) -> Any:
        if request.asks != "pending":
            return request.asks
        if request.state.snapshot is None:
            detail = "`pending` means what waits beside a snapshot: name one in `state`"
            raise InvalidInput([Problem(pointer="/asks", detail=detail)])
        return msgspec.json.decode(self._snapshots.asks(request.state.snapshot), type=PendingAsks).items


def _missing(detail: str) -> InvalidInput:
    return InvalidInput([Problem(pointer="/configuration", detail=detail)])


def _shown_exposure(row: RowMapping) -> Exposures:
    about = msgspec.json.decode(row["about"], type=AboutExposure)
    progress = row["progress"]
    return Exposures(
        **state_of(row), configuration=about.configuration, snapshot=about.snapshot, followed=about.followed,
        progress=None if not progress else msgspec.convert(progress, ExposureProgress, strict=False),
        outcome=outcome_of(row, ExposureOutcome),
    )  # fmt: skip


exposures = router_of(
    ExposureJobs, EXPOSURES, request=ExposureRequest, shown=Exposures, page=ExposuresPage, example=EXPOSURE,
    begin=Said("expose", "Who is next?", """
    Of every running workload what would evict it, now and next, and what keeps it; and the order in which what waits
    would go. Accepted at once, made by a worker; `Location` is where to look."""),
    listed=Said("list_exposures", "Questions who is next, newest first", "Without outcomes."),
    got=Said(
        "get_exposure", "How far it is and, once done, who is next",
        "Running work, most exposed first, and what waits, in the order in which it would go.",
    ),
)  # fmt: skip
EXPOSURES_PART = Part(exposures, (ExposureRequest, Exposures, ExposuresPage))
