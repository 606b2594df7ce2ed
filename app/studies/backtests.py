"""``/v1/backtests``: the decision log again, under other configurations."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import msgspec
from fastapi import Depends, Path, Request, Response
from sqlalchemy import RowMapping
from starlette.responses import StreamingResponse

from app.answering.comparison import refuse_duplicates, too_many
from app.answering.operations import Documents
from app.base.decoding import decode
from app.base.errors import BadInput
from app.http.openapi import NDJSON, lines, operation
from app.http.routing import service
from app.jobs.router import READ, Said, router_of
from app.jobs.service import First, Jobs, JobsOfKind, Most, New, Which, outcome_of, state_of
from app.simulations.accepting import Pinning
from app.simulations.running import stream_of
from app.solver.model.base import Time
from app.solver.model.problems import Problem
from app.studies.backtesting import (
    BACKTEST,
    DIFFERENCES,
    Backtest,
    BacktestOutcome,
    BacktestPage,
    BacktestProgress,
    BacktestRequest,
    DecisionDiffers,
)

KIND = "backtest"


class About(msgspec.Struct, frozen=True):
    """What is kept of a request to tell of it without reading it."""

    variants: list[str]
    since: Time | None
    until: Time


class Backtests(JobsOfKind[Backtest, BacktestPage]):
    """Backtests as those see them who ask for them: accepted, shown, read from, stopped. ``variants``: the most that
    one may have; ``settle``: waits until what was just answered is in the log."""

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


DOCUMENTED = (BacktestRequest, Backtest, BacktestPage, DecisionDiffers)

router = router_of(
    Backtests, KIND, request=BacktestRequest, shown=Backtest, page=BacktestPage, example=BACKTEST,
    errors=(404, 429, 503, 504),
    begin=Said("backtest", "Decide the log again, under other configurations", """
    Accepted at once, made by a worker: every logged request of the range is decided again under each variant, on the
    state and for the time that it was decided on. `Location` is where to look."""),
    listed=Said("list_backtests", "Backtests, newest first", "Without counts."),
    got=Said(
        "get_backtest", "Status, progress and, once done, counts by variant",
        "How many decisions each variant makes as they were logged, how many otherwise, and what they come to.",
    ),
    forgotten="forgotten with its results",
)  # fmt: skip


async def _service(request: Request) -> Backtests:
    return service(request, Backtests)


Service = Annotated[Backtests, Depends(_service)]
Id = Annotated[UUID, Path(description="`id` of a backtest")]


@router.get(
    "/{id}/differences",
    operation_id="list_backtest_differences",
    summary="Every decision that differs",
    **operation(needs="read", responses={200: lines(DecisionDiffers)}, errors=READ),
)
def differences(
    id: Id,  # noqa: A002
    backtests: Service,
    variant: Which = None,
    first: First = 0,
    limit: Most = None,
) -> Response:
    """One line a decision that the variant makes otherwise or refuses, oldest first, as far as it has come."""
    return StreamingResponse(backtests.differences(id, variant, first, limit), media_type=NDJSON)
