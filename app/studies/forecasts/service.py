"""Forecasts as those see them who ask for them."""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from sqlalchemy import RowMapping

from app.answering.comparison import too_many
from app.answering.sources import Compiled, Documents
from app.base.decoding import decode
from app.base.errors import BadInput
from app.jobs.kind import JobsOfKind
from app.jobs.schemas import state_of
from app.jobs.service import Jobs, New, outcome_of
from app.simulations.accepting import Pinning
from app.solver.model.base import Time
from app.solver.model.request import StateOrReference
from app.studies.forecasts.foretelling import scenarios
from app.studies.forecasts.schemas import Forecast, ForecastOutcome, ForecastPage, ForecastRequest

KIND = "forecast"
KeptStates = Callable[[str], tuple[int, bytes]]


class About(msgspec.Struct, frozen=True):
    """What is kept of a request to tell of it without reading it."""

    start: Time


class Forecasts(JobsOfKind[Forecast, ForecastPage]):
    """Accepted, shown, stopped. ``states``: the generation and the JSON of the snapshot of a name, as it is now;
    ``variants``: the most that one may have; ``days``: how far ahead one may look."""

    def __init__(self, jobs: Jobs, documents: Documents, states: KeptStates, variants: int, days: float) -> None:
        super().__init__(jobs, KIND, _shown, ForecastPage)
        self._documents = documents
        self._states = states
        self._configurations = Compiled(documents)
        self._variants = variants
        self._days = days

    def start(self, body: bytes) -> Forecast:
        """Accept a forecast. Raises InvalidInput, BadInput, NotFound, TooManyRequests, Unavailable."""
        request = decode(body, ForecastRequest)
        if problems := too_many(request.variants, self._variants):
            raise BadInput(problems)
        pins = Pinning(self._documents)
        start = request.start or datetime.now(UTC)
        pinned = msgspec.structs.replace(
            request,
            configuration=pins.reference(request.configuration),
            variants=[pins.part(variant) for variant in request.variants],
            changes=[pins.part(change) for change in request.changes],
            state=self._state(request.state),
            start=start,
        )
        for _ in scenarios(pinned, self._configurations, self._days):
            pass  # what is wrong is told now
        new = New(msgspec.json.encode(About(start)), msgspec.json.encode(pinned))
        return self._accept(lambda _: new)

    def _state(self, state: StateOrReference) -> StateOrReference:
        """Written out, so that what the worker reads is what was meant. Raises NotFound."""
        if state.snapshot is None:
            return state
        return decode(self._states(state.snapshot)[1], StateOrReference)


def _shown(row: RowMapping) -> Forecast:
    outcome: ForecastOutcome | None = outcome_of(row, ForecastOutcome) if "outcome" in row else None
    return Forecast(
        **state_of(row), start=msgspec.json.decode(row["about"], type=About).start,
        end=None if outcome is None else outcome.end, rounds=None if outcome is None else outcome.rounds,
        asks=[] if outcome is None else outcome.asks, error=row["error"],
    )  # fmt: skip
