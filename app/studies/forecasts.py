"""``/v1/forecasts``: when will it start."""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from sqlalchemy import RowMapping

from app.answering.comparison import too_many
from app.answering.snapshots import FollowedAge
from app.answering.sources import Compiled, Documents
from app.base.decoding import decode
from app.base.errors import BadInput
from app.jobs.service import Jobs, JobsOfKind, New, Said, outcome_of, router_of, state_of
from app.simulations.accepting import Pinning
from app.solver.model.base import Time
from app.solver.model.request import StateOrReference
from app.studies.forecasting import FORECAST, Forecast, ForecastOutcome, ForecastPage, ForecastRequest, scenarios

KIND = "forecast"
KeptStates = Callable[[str], tuple[int, bytes]]
Ages = Callable[[str | None], FollowedAge | None]


class About(msgspec.Struct, frozen=True):
    """What is kept of a request to tell of it without reading it."""

    start: Time
    followed: FollowedAge | None = None


class Forecasts(JobsOfKind[Forecast, ForecastPage]):
    """Forecasts as those see them who ask for them: accepted, shown, stopped. ``states``: the generation and the JSON
    of the snapshot of a name, as it is now; ``ages``: how old one is, where it follows a cluster; ``variants``: the
    most that one may have; ``days``: how far ahead one may look."""

    def __init__(
        self, jobs: Jobs, documents: Documents, states: KeptStates, ages: Ages, variants: int, days: float
    ) -> None:
        super().__init__(jobs, KIND, _shown, ForecastPage)
        self._documents = documents
        self._states = states
        self._ages = ages
        self._configurations = Compiled(documents)
        self._variants = variants
        self._days = days

    def start(self, body: bytes) -> Forecast:
        """Accept a forecast. Raises InvalidInput, BadInput, NotFound, TooManyRequests, Unavailable."""
        request = decode(body, ForecastRequest)
        if problems := too_many(request.variants, self._variants):
            raise BadInput(problems)
        pins = Pinning(self._documents)
        start, followed = request.start or datetime.now(UTC), self._ages(request.state.snapshot)
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
        new = New(msgspec.json.encode(About(start, followed)), msgspec.json.encode(pinned))
        return self._accept(lambda _: new)

    def _state(self, state: StateOrReference) -> StateOrReference:
        """Written out, so that what the worker reads is what was meant. Raises NotFound."""
        if state.snapshot is None:
            return state
        return decode(self._states(state.snapshot)[1], StateOrReference)


def _shown(row: RowMapping) -> Forecast:
    outcome = outcome_of(row, ForecastOutcome)
    about = msgspec.json.decode(row["about"], type=About)
    return Forecast(
        **state_of(row), start=about.start, followed=about.followed,
        end=None if outcome is None else outcome.end, rounds=None if outcome is None else outcome.rounds,
        asks=[] if outcome is None else outcome.asks, findings=None if outcome is None else outcome.findings,
    )  # fmt: skip


DOCUMENTED = (ForecastRequest, Forecast, ForecastPage)

router = router_of(
    Forecasts, KIND, request=ForecastRequest, shown=Forecast, page=ForecastPage, example=FORECAST,
    begin=Said("forecast", "When will it start?", """
    Accepted at once, made by a worker: what waits and what runs is played on, round by round, until every ask has
    started; then again under each variant. `Location` is where to look."""),
    listed=Said("list_forecasts", "Forecasts, newest first", "Without asks."),
    got=Said(
        "get_forecast", "Status and, once done, the first start of each ask",
        "When each ask first starts, what it waits for until then, and how each variant moves that.",
    ),
)  # fmt: skip
