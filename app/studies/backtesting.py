"""``/v1/backtests``: logged requests decided again under other configurations, as a job.

The log is read entry by entry, each is decided again, and what differs is stored as it comes.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Protocol
from uuid import UUID

import msgspec
from fastapi import Depends, Path, Request, Response
from sqlalchemy import RowMapping
from starlette.responses import StreamingResponse

from app.answering.answers import Stopwatch
from app.answering.comparison import (
    Asked,
    ComparisonRequest,
    Difference,
    VariantAnswer,
    differences_of,
    made_of,
    refuse_duplicates,
    ruled,
    too_many,
    unvaried,
)
from app.answering.operations import Configurations, Documents, Sources
from app.base.decoding import decode
from app.base.errors import BadInput, Conflict, NotFound
from app.db.database import Database
from app.decisions import repository
from app.decisions.kept import unsqueezed
from app.decisions.repository import Filters
from app.http.openapi import NDJSON, lines, operation
from app.http.routing import service
from app.jobs.repository import Claimed
from app.jobs.service import (
    READ,
    First,
    Jobs,
    JobsOfKind,
    JobState,
    Most,
    New,
    Said,
    Which,
    outcome_of,
    router_of,
    state_of,
)
from app.jobs.worker import Work
from app.simulations.accepting import Pinning
from app.simulations.service import stream_of
from app.solver.model.base import Time, Wire, at, micros
from app.solver.model.configuration import EngineName
from app.solver.model.decision import Answer, planned
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.request import DecisionRequest, Variant


class BacktestRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/backtests``. What is given must all hold for a logged decision to be decided again."""

    since: Time | None = None
    """Decisions logged at this time or later. Absent: from the first."""
    until: Time | None = None
    """Decisions logged before this time. Absent: up to when the backtest is asked for."""
    engine: EngineName | None = None
    """Those that this engine decided. Absent: any."""
    configuration: str | None = None
    """Those on the stored configuration of this name, in any revision. Absent: on any, stored or not."""
    queue: str | None = None
    """Those with an ask or an eviction in this queue. Absent: any."""
    actor: str | None = None
    """Those that this one asked for. Absent: anybody."""
    variants: Annotated[list[Variant], msgspec.Meta(min_length=1)]
    """What each changes in the logged requests, as in a comparison; names are unique."""


class Decided(Wire, frozen=True, kw_only=True):
    """What a number of decisions came to."""

    asks: dict[str, int] = {}
    """Asks by outcome."""
    evictions: int = 0
    """Evictions that they plan."""


class BacktestVariant(Wire, frozen=True, kw_only=True):
    """What one variant came to."""

    name: str
    """Its name."""
    same: int = 0
    """Decisions that it makes as they were logged: outcomes, nodes and evictions are the same."""
    differ: int = 0
    """Decisions that it makes otherwise."""
    refused: int = 0
    """Requests that its engine refuses."""
    logged: Decided = Decided()
    """What the log has for those that it does not refuse."""
    here: Decided = Decided()
    """What it decides on them."""


class Skipped(Wire, frozen=True, kw_only=True):
    """A logged decision that can't be made again."""

    decision: UUID
    """Its id."""
    reason: str
    """Why, such as a state that the log has not kept."""


class BacktestProgress(Wire, frozen=True, kw_only=True):
    """How far a backtest is."""

    decisions: int
    """Decisions that are done."""
    total: int
    """All of the range."""


class BacktestOutcome(Wire, frozen=True, kw_only=True):
    """What a backtest came to."""

    decisions: int
    skipped: int
    first_skipped: list[Skipped]
    variants: list[BacktestVariant]


class Backtest(JobState, frozen=True, kw_only=True):
    """``GET /v1/backtests/{id}``."""

    since: Time | None = None
    """From when. Absent: from the first entry."""
    until: Time
    """Up to when."""
    names: list[str]
    """The names of its variants."""
    progress: BacktestProgress | None = None
    """How far it is, or came. Absent: it has not begun, or only just."""
    decisions: int | None = None
    """Logged decisions in the range. Absent: it is not done."""
    skipped: int = 0
    """Of these, those that can't be made again."""
    first_skipped: list[Skipped] = []
    """The first 20 of them."""
    variants: list[BacktestVariant] = []
    """What each variant came to, in the order of the request. Empty until it is done."""
    error: str | None = None
    """Why it failed."""


class BacktestPage(Wire, frozen=True, kw_only=True):
    """``GET /v1/backtests``: newest first."""

    items: list[Backtest]
    """Newest first, without counts."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page. Absent: this is the last."""


class DecisionDiffers(Wire, frozen=True, kw_only=True):
    """A logged decision that a variant makes otherwise, or refuses."""

    decision: UUID
    """Its id in the log."""
    created_at: Time
    """When it was logged."""
    now: Time
    """The time it was made for."""
    differences: list[Difference] = []
    """Where they differ; `values` are by `logged` and `variant`, and `rules` those of the variant's release that make
    the difference, where it is another release and nothing else."""
    problems: list[Problem] = []
    """Why the engine refuses it under the variant."""


BACKTEST: dict[str, Any] = {
    "since": "2026-03-01T00:00:00Z",
    "engine": "kueue",
    "variants": [{"name": "fair", "settings": {"kueue": {"fair_sharing": True}}}],
}


class Tally:
    """What one variant has come to so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._same = self._differ = self._refused = 0
        self._asks: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        self._evictions = [0, 0]

    def add(
        self, logged: Answer, made: VariantAnswer, asked: Callable[[], Sequence[Asked | None]]
    ) -> tuple[list[Difference], list[Problem]]:
        """The variant's answer to a request; where it differs, and why it is refused. ``asked``: what the log and the
        variant were asked."""
        if made.answer is None:
            self._refused += 1
            return [], made.problems
        for i, answer in enumerate((logged, made.answer)):
            self._asks[i].update(decision.outcome for decision in answer.decisions)
            self._evictions[i] += len(planned(answer))
        both = [VariantAnswer(name="logged", answer=logged), msgspec.structs.replace(made, name="variant")]
        differences = list(differences_of(both))
        if not differences:
            self._same += 1
            return [], []
        self._differ += 1
        return ruled(differences, both, asked()), []

    def told(self) -> BacktestVariant:
        """As the wire has it."""
        logged, here = (
            Decided(asks=dict(sorted(asks.items())), evictions=evictions)
            for asks, evictions in zip(self._asks, self._evictions, strict=True)
        )
        return BacktestVariant(
            name=self.name, same=self._same, differ=self._differ, refused=self._refused, logged=logged, here=here
        )


class Again:
    """A logged request asked again. ``answers``: of each variant, with what it was asked. Pure."""

    def __init__(self, request: bytes, variants: Sequence[Variant], sources: Sources) -> None:
        """``request``: resolved. Raises InvalidInput where the request itself is no good any more, NotFound,
        Unavailable."""
        logged = decode(request, DecisionRequest)
        assert logged.now is not None
        fields: dict[str, Any] = {**msgspec.structs.asdict(logged), "explain": "none"}
        self._compared = ComparisonRequest(**fields, variants=list(variants))
        self._at, self._sources = micros(logged.now), sources
        self.answers = list(made_of(self._compared, self._at, sources, Stopwatch()))

    def logged(self, asked: Asked | None) -> list[Asked | None]:
        """What was asked when it was logged, beside what a variant of it is asked."""
        ruled = asked is not None and asked[0].configured.engine.changed is not None
        return [unvaried(self._compared, self._at, self._sources), asked] if ruled else []


DIFFERENCES = "differences"
_AT_ONCE = 50
_SHOWN = 20
_encode = msgspec.json.Encoder(order="deterministic").encode


class Resolver(Protocol):
    """Writes into a logged request what it only names."""

    def resolved(self, row: RowMapping) -> bytes: ...


class Backtesting:
    """Does jobs of the kind ``backtest`` on the log in ``database``."""

    def __init__(self, database: Database, configurations: Configurations, resolver: Resolver) -> None:
        self._database = database
        self._configurations = configurations
        self._resolver = resolver

    def do(self, job: Claimed, request: bytes, work: Work) -> bytes:
        """See ``app.jobs.worker.Doing``."""
        del job
        asked = decode(request, BacktestRequest)
        filters = filters_of(asked)
        with self._database.session() as session:
            total = repository.count(session, filters)
        tallies = [Tally(variant.name) for variant in asked.variants]
        skipped: list[Skipped] = []
        done = left_out = 0
        for row in self._rows(filters):
            work.check()
            work.progress = {"decisions": done, "total": max(total, done)}
            done += 1
            reason = self._one(row, asked, tallies, work)
            if reason is not None:
                left_out += 1
                if len(skipped) < _SHOWN:
                    skipped.append(Skipped(decision=row["id"], reason=reason))
        outcome = BacktestOutcome(
            decisions=done, skipped=left_out, first_skipped=skipped, variants=[tally.told() for tally in tallies]
        )
        return _encode(outcome)

    def _one(self, row: RowMapping, asked: BacktestRequest, tallies: list[Tally], work: Work) -> str | None:
        """Decide it again; why not, where that can't be."""
        try:
            again = Again(self._resolver.resolved(row), asked.variants, Sources(self._configurations))
            logged = msgspec.json.decode(unsqueezed(row["answer"]), type=Answer)
        except (Conflict, NotFound) as gone:
            return gone.detail
        except InvalidInput as invalid:
            return "; ".join(f"{problem.pointer}: {problem.detail}" for problem in invalid.problems[:3])
        except msgspec.ValidationError as other:
            return f"its answer is of another version: {other}"
        for number, (tally, (made, of)) in enumerate(zip(tallies, again.answers, strict=True)):
            differences, problems = tally.add(logged, made, partial(again.logged, of))
            if differences or problems:
                told = DecisionDiffers(
                    decision=row["id"], created_at=row["created_at"], now=at(row["now"]), differences=differences,
                    problems=problems,
                )  # fmt: skip
                work.write(stream_of(number, DIFFERENCES), _encode(told))
        return None

    def _rows(self, filters: Filters) -> Iterator[Any]:
        last: UUID | None = None
        while True:
            with self._database.session() as session:
                rows = repository.oldest(session, filters, last, _AT_ONCE)
            if not rows:
                return
            yield from rows
            last = rows[-1]["id"]


def filters_of(request: BacktestRequest) -> Filters:
    """Which entries of the log are decided again."""
    return Filters(
        engine=request.engine, configuration=request.configuration, queue=request.queue, actor=request.actor,
        since=request.since, until=request.until,
    )  # fmt: skip


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
