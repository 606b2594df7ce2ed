"""Backtests as those see them who ask for them."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from sqlalchemy import RowMapping

from app.answering.comparison import refuse_duplicates, too_many
from app.answering.sources import Documents
from app.base.decoding import decode
from app.base.errors import BadInput
from app.jobs.kind import JobsOfKind
from app.jobs.schemas import state_of
from app.jobs.service import Jobs, New, outcome_of
from app.simulations.accepting import Pinning
from app.simulations.running import stream_of
from app.solver.model.base import Time
from app.solver.model.problems import Problem
from app.studies.backtests.running import DIFFERENCES
from app.studies.backtests.schemas import Backtest, BacktestOutcome, BacktestPage, BacktestProgress, BacktestRequest

KIND = "backtest"


class About(msgspec.Struct, frozen=True):
    """What is kept of a request to tell of it without reading it."""

    variants: list[str]
    since: Time | None
    until: Time


class Backtests(JobsOfKind[Backtest, BacktestPage]):
    """Accepted, shown, read from, stopped. ``variants``: the most that one may have; ``settle``: waits until what was
    just answered is in the log."""

    def __init__(self, jobs: Jobs, documents: Documents, variants: int, settle: Callable[[], object]) -> None:
        super().__init__(jobs, KIND, _shown, BacktestPage)
        self._documents = documents
        self._variants = variants
        self._settle = settle

    def start(self, body: bytes) -> Backtest:
        """Accept a backtest. Raises InvalidInput, BadInput, NotFound, TooManyRequests, Unavailable."""
        request = decode(body, BacktestRequest)
        refuse_duplicates(request.variants)
        until = request.until or datetime.now(UTC)
        problems = too_many(request.variants, self._variants)
        if request.since is not None and request.since >= until:
            problems.append(Problem(pointer="/since", detail="not before `until`: the range is empty"))
        if problems:
            raise BadInput(problems)
        pins = Pinning(self._documents)
        pinned = msgspec.structs.replace(
            request, until=until, variants=[pins.part(variant) for variant in request.variants]
        )
        about = About([variant.name for variant in request.variants], request.since, until)
        new = New(msgspec.json.encode(about), msgspec.json.encode(pinned))
        self._settle()
        return self._accept(lambda _: new)

    def differences(self, identity: UUID, variant: str | None, first: int, most: int | None) -> Iterator[bytes]:
        """The lines of a variant from number ``first``, some at a time, as far as they are there. Raises NotFound."""
        number = self._variant(identity, variant, self.get(identity).names)
        return self._jobs.lines(identity, stream_of(number, DIFFERENCES), first, most)


def _shown(row: RowMapping) -> Backtest:
    about = msgspec.json.decode(row["about"], type=About)
    outcome: BacktestOutcome | None = outcome_of(row, BacktestOutcome) if "outcome" in row else None
    told = {} if outcome is None else msgspec.structs.asdict(outcome)
    return Backtest(
        **state_of(row), since=about.since, until=about.until, names=about.variants,
        progress=None if row["progress"] is None else BacktestProgress(**row["progress"]), error=row["error"], **told,
    )  # fmt: skip
