"""Backtests as those see them who ask for them."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from sqlalchemy import RowMapping
from sqlalchemy.orm import Session

from app.answering.comparison import refuse_duplicates
from app.answering.sources import Documents
from app.backtests.running import DIFFERENCES
from app.backtests.schemas import Backtest, BacktestOutcome, BacktestPage, BacktestProgress, BacktestRequest
from app.decoding import decode
from app.errors import BadInput, NotFound
from app.http.pages import decode_id, encode_cursor
from app.jobs.service import Jobs, New, outcome_of
from app.simulations.pinning import Pinning
from app.simulations.running import stream_of
from app.solver.model.base import Time
from app.solver.model.problems import Problem

KIND = "backtest"


class About(msgspec.Struct, frozen=True):
    """What is kept of a request to tell of it without reading it."""

    variants: list[str]
    since: Time | None
    until: Time


class Backtests:
    """Accepted, shown, read from, stopped. ``variants``: the most that one may have; ``settle``: waits until what was
    just answered is in the log."""

    def __init__(self, jobs: Jobs, documents: Documents, variants: int, settle: Callable[[], object]) -> None:
        self._jobs = jobs
        self._documents = documents
        self._variants = variants
        self._settle = settle

    def start(self, body: bytes) -> Backtest:
        """Accept a backtest. Raises InvalidInput, BadInput, NotFound, TooManyRequests, Unavailable."""
        request = decode(body, BacktestRequest)
        refuse_duplicates(request.variants)
        until = request.until or datetime.now(UTC)
        problems: list[Problem] = []
        if len(request.variants) > self._variants:
            detail = f"{len(request.variants)} variants; at most {self._variants} are allowed"
            problems.append(Problem(pointer="/variants", detail=detail))
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

        def made(_: Session) -> New:
            return new

        return self.get(self._jobs.add(KIND, made))

    def get(self, identity: UUID) -> Backtest:
        """Raises NotFound, Unavailable."""
        return _shown(self._jobs.row(identity, KIND))

    def page(self, cursor: str | None, limit: int) -> BacktestPage:
        """Raises BadRequest, Unavailable."""
        rows = self._jobs.page(KIND, None if cursor is None else decode_id(cursor), limit + 1)
        more = encode_cursor(str(rows[limit - 1]["id"])) if len(rows) > limit else None
        return BacktestPage(items=[_shown(row) for row in rows[:limit]], next_cursor=more)

    def stop(self, identity: UUID) -> None:
        """Raises NotFound, Unavailable."""
        self._jobs.stop(identity, KIND)

    def differences(self, identity: UUID, variant: str | None, first: int, most: int | None) -> Iterator[bytes]:
        """The lines of a variant from number ``first``, some at a time, as far as they are there. Raises NotFound."""
        names = self.get(identity).names
        if variant is not None and variant not in names:
            raise NotFound(f"backtest {identity} has no variant {variant!r}")
        number = 0 if variant is None else names.index(variant)
        return self._jobs.lines(identity, stream_of(number, DIFFERENCES), first, most)


def _shown(row: RowMapping) -> Backtest:
    about = msgspec.json.decode(row["about"], type=About)
    outcome: BacktestOutcome | None = outcome_of(row, BacktestOutcome) if "outcome" in row else None
    told = {} if outcome is None else msgspec.structs.asdict(outcome)
    return Backtest(
        id=row["id"], status=row["status"], created_at=row["created_at"], started_at=row["started_at"],
        ended_at=row["ended_at"], attempt=row["attempt"], since=about.since, until=about.until, names=about.variants,
        progress=None if row["progress"] is None else BacktestProgress(**row["progress"]), error=row["error"], **told,
    )  # fmt: skip
