"""``/v1/backtests``: what was decided, decided again under other configurations, as a job.

The log is read entry by entry, or a recording of a cluster preemption by preemption; each is decided again, and what
differs is stored as it comes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Protocol
from uuid import UUID

import msgspec
from fastapi import Path, Response
from sqlalchemy import RowMapping
from starlette.responses import StreamingResponse

from app.answering.answers import encode
from app.answering.comparison import (
    Again,
    Asked,
    Difference,
    VariantAnswer,
    differences_of,
    refuse_duplicates,
    ruled,
    too_many,
)
from app.answering.sources import Configurations, Documents, Sources
from app.base.decoding import decode
from app.base.errors import BadInput, Conflict, NotFound
from app.clusters.schemas import ShadowOutcome, ShadowReport
from app.db.database import Database
from app.decisions import repository
from app.decisions.kept import unsqueezed
from app.decisions.repository import Filters
from app.http.openapi import NDJSON, lines, operation
from app.http.routing import provided
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
)  # fmt: skip
from app.jobs.worker import Work
from app.simulations.accepting import Pinning
from app.simulations.service import stream_of
from app.solver.engine import example
from app.solver.engines import FIRST
from app.solver.model.base import Time, Wire, to_datetime
from app.solver.model.configuration import EngineName, Settings
from app.solver.model.decision import Answer, planned
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.request import DecisionRequest, Variant


class BacktestRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/backtests``. What is given must all hold for a decision to be decided again."""

    since: Time | None = None
    """Decisions logged, or preemptions seen, at this time or later. Absent: from the first."""
    until: Time | None = None
    """Those before this time. Absent: up to when the backtest is asked for; of a recording to its end."""
    engine: EngineName | None = None
    """Those that this engine decided. Absent: any. Of a recording: whose cluster it is; absent: as it says."""
    configuration: str | None = None
    """Those on the stored configuration of this name, in any revision. Absent: on any, stored or not. Not of a
    recording."""
    queue: str | None = None
    """Those with an ask or an eviction in this queue; of a recording, with an ask. Absent: any."""
    actor: str | None = None
    """Those that this one asked for. Absent: anybody. Not of a recording."""
    recording: bytes | None = None
    """A recording of a cluster (`arbiter follow --record`), as it stands, compressed or not, in base64: its preemptions
    are decided again, not the log."""
    settings: Settings | None = None
    """With which the recorded cluster ran. Absent: as it says, or as its preemptions tell. Only of a recording."""
    variants: Annotated[list[Variant], msgspec.Meta(min_length=1)]
    """What each changes in the requests, as in a comparison; names are unique."""


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
    """A decision that can't be made again."""

    decision: UUID | None = None
    """Its id in the log. Absent: it is of a recording."""
    ask: str | None = None
    """Of a recording: for whom somebody was evicted."""
    now: Time | None = None
    """Of a recording: when that was."""
    reason: str
    """Why, such as a state that the log has not kept, or a preemption in which Arbiter does not agree."""


class BacktestProgress(Wire, frozen=True, kw_only=True):
    """How far a backtest is."""

    decisions: int
    """Decisions that are done."""
    total: int | None = None
    """All of the range. Absent: it is not known, of a recording."""


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
    until: Time | None = None
    """Up to when. Absent: to the end of the recording."""
    recording: bool = False
    """Whether a recording is decided again, and not the log."""
    names: list[str]
    """The names of its variants."""
    progress: BacktestProgress | None = None
    """How far it is, or came. Absent: it has not begun, or only just."""
    decisions: int | None = None
    """Decisions in the range. Absent: it is not done."""
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
    """A decision that a variant makes otherwise, or refuses."""

    decision: UUID | None = None
    """Its id in the log. Absent: it is of a recording."""
    ask: str | None = None
    """Of a recording: for whom somebody was evicted."""
    created_at: Time
    """When it was logged, or seen."""
    now: Time
    """The time it was made for."""
    differences: list[Difference] = []
    """Where they differ; `values` are by `logged` and `variant` (of a recording `logged` is what was done), and `rules`
    those of the variant's release that make the difference, where it is another release and nothing else."""
    problems: list[Problem] = []
    """Why the engine refuses it under the variant."""


BACKTEST: dict[str, Any] = {"since": "2026-03-01T00:00:00Z", "engine": FIRST, "variants": [example().variant]}


class Tally:
    """What one variant has come to so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._same = self._differ = self._refused = 0
        self._asks: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        self._evictions = [0, 0]

    def add(
        self, logged: Answer, variant: VariantAnswer, asked: Callable[[], Sequence[Asked | None]]
    ) -> tuple[list[Difference], list[Problem]]:
        """The variant's answer to a request; where it differs, and why it is refused. ``asked``: what the log and the
        variant were asked."""
        if variant.answer is None:
            self._refused += 1
            return [], variant.problems
        for i, answer in enumerate((logged, variant.answer)):
            self._asks[i].update(decision.outcome for decision in answer.decisions)
            self._evictions[i] += len(planned(answer))
        both = [VariantAnswer(name="logged", answer=logged), msgspec.structs.replace(variant, name="variant")]
        differences = list(differences_of(both))
        if not differences:
            self._same += 1
            return [], []
        self._differ += 1
        return ruled(differences, both, asked()), []

    def outcome(self) -> BacktestVariant:
        """As the wire has it."""
        logged, here = (
            Decided(asks=dict(sorted(asks.items())), evictions=evictions)
            for asks, evictions in zip(self._asks, self._evictions, strict=True)
        )
        return BacktestVariant(
            name=self.name, same=self._same, differ=self._differ, refused=self._refused, logged=logged, here=here
        )


class BacktestTallies:
    """What the variants have come to so far. ``write`` takes what one makes otherwise, with its number."""

    def __init__(self, asked: BacktestRequest, write: Callable[[int, DecisionDiffers], None]) -> None:
        self._tallies = [Tally(variant.name) for variant in asked.variants]
        self._write = write
        self._skipped: list[Skipped] = []
        self._left_out = 0
        self.decisions = 0

    def skip(self, skipped: Skipped) -> None:
        """One can't be made again."""
        self.decisions, self._left_out = self.decisions + 1, self._left_out + 1
        if len(self._skipped) < _SHOWN:
            self._skipped.append(skipped)

    def add(self, decision: DecisionDiffers, logged: Answer, again: Again) -> None:
        """The answers of the variants to one, which are the last ``again`` has. ``decision``: what is told of it."""
        self.decisions += 1
        answers = again.answers[-len(self._tallies) :]
        for number, (tally, (answer, of)) in enumerate(zip(self._tallies, answers, strict=True)):
            differences, problems = tally.add(logged, answer, partial(again.logged, of))
            if differences or problems:
                self._write(number, msgspec.structs.replace(decision, differences=differences, problems=problems))

    def outcome(self) -> BacktestOutcome:
        """As the wire has it."""
        return BacktestOutcome(
            decisions=self.decisions, skipped=self._left_out, first_skipped=self._skipped,
            variants=[tally.outcome() for tally in self._tallies],
        )  # fmt: skip


DIFFERENCES = "differences"
AT_ONCE = 50
_SHOWN = 20


class Resolver(Protocol):
    """Writes into a logged request what it only names."""

    def resolved(self, row: RowMapping) -> bytes: ...


class Cycle(Protocol):
    """A preemption that a recording tells of, and whether Arbiter agrees in it."""

    @property
    def outcome(self) -> ShadowOutcome: ...
    @property
    def detail(self) -> str: ...
    @property
    def report(self) -> ShadowReport: ...


Cycles = Callable[[bytes, EngineName | None, Settings | None], Iterator[Cycle]]
"""Those of a recording, of whose cluster, with which settings, as far as that is given. Raises BadRequest."""


class Backtesting:
    """Does jobs of the kind ``backtest`` on the log in ``database``, or on recordings."""

    def __init__(self, database: Database, configurations: Configurations, resolver: Resolver, cycles: Cycles) -> None:
        self._database = database
        self._configurations = configurations
        self._resolver = resolver
        self._cycles = cycles

    def do(self, job: Claimed, request: bytes, work: Work) -> bytes:
        del job
        asked = decode(request, BacktestRequest)
        course = BacktestTallies(asked, lambda number, line: work.write(stream_of(number, DIFFERENCES), encode(line)))
        sources = Sources(self._configurations)
        if asked.recording is None:
            self._decide_the_log(asked, course, sources, work)
        else:
            decide_again(asked, self._cycles(asked.recording, asked.engine, asked.settings), course, sources, work)
        return encode(course.outcome())

    def _decide_the_log(self, asked: BacktestRequest, course: BacktestTallies, sources: Sources, work: Work) -> None:
        filters = Filters(
            engine=asked.engine, configuration=asked.configuration, queue=asked.queue, actor=asked.actor,
            since=asked.since, until=asked.until,
        )  # fmt: skip
        with self._database.session() as session:
            total = repository.count(session, filters)
        for row in self._rows(filters):
            work.check()
            work.progress = {"decisions": course.decisions, "total": max(total, course.decisions)}
            try:
                again = Again(decode(self._resolver.resolved(row), DecisionRequest), asked.variants, sources)
                logged = msgspec.json.decode(unsqueezed(row["answer"]), type=Answer)
            except (Conflict, NotFound) as gone:
                course.skip(Skipped(decision=row["id"], reason=gone.detail))
            except InvalidInput as invalid:
                course.skip(Skipped(decision=row["id"], reason=str(invalid)))
            except msgspec.ValidationError as other:
                course.skip(Skipped(decision=row["id"], reason=f"its answer is of another version: {other}"))
            else:
                differs = DecisionDiffers(decision=row["id"], created_at=row["created_at"], now=to_datetime(row["now"]))
                course.add(differs, logged, again)

    def _rows(self, filters: Filters) -> Iterator[Any]:
        last: UUID | None = None
        while True:
            with self._database.session() as session:
                rows = repository.oldest(session, filters, last, AT_ONCE)
            if not rows:
                return
            yield from rows
            last = rows[-1]["id"]


def decide_again(
    asked: BacktestRequest, cycles: Iterable[Cycle], course: BacktestTallies, sources: Sources, work: Work | None = None
) -> None:
    """The preemptions of a recording. Those in which Arbiter agrees are decided again; of the others what was done is
    not the answer to a question that it has, and they are skipped. Raises what ``cycles`` raises."""
    for cycle in cycles:
        if work is not None:
            work.check()
            work.progress = {"decisions": course.decisions}
        report = cycle.report
        request = report.requests[0] if report.requests else None
        if not _is_wanted(asked, report, request):
            continue
        if request is None or cycle.outcome not in ("agreed", "agreed_earlier"):
            course.skip(Skipped(ask=report.ask, now=report.seen_at, reason=cycle.detail))
            continue
        again = Again(request, [Variant(name=""), *asked.variants], sources)
        done = again.answers[0][0].answer
        assert done is not None
        course.add(DecisionDiffers(ask=report.ask, created_at=report.seen_at, now=report.seen_at), done, again)


def _is_wanted(asked: BacktestRequest, report: ShadowReport, request: DecisionRequest | None) -> bool:
    """Whether it is in the range. Of what waits in no question the queue is not known."""
    if report.seen_at < (asked.since or report.seen_at) or (asked.until and report.seen_at >= asked.until):
        return False
    asks = request.asks if request is not None and isinstance(request.asks, list) else []
    return asked.queue is None or any(ask.queue == asked.queue for ask in asks if ask.id == report.ask)


KIND = "backtest"


class About(msgspec.Struct, frozen=True):
    """What is kept of a request to tell of it without reading it."""

    variants: list[str]
    since: Time | None
    until: Time | None
    recording: bool = False


_ONLY_LOGGED = dict.fromkeys(("configuration", "actor"), "of the log: a recording has none")
_ONLY_RECORDED = {"settings": "of a recording: what is logged has its own"}


def refuse(request: BacktestRequest, problems: Iterable[Problem] = (), *, recording: bool) -> None:
    """Raises InvalidInput, BadInput, with ``problems`` too, where it can't be done; ``recording``: on one, not on the
    log."""
    refuse_duplicates(request.variants)
    problems = list(problems)
    if request.since is not None and request.until is not None and request.since >= request.until:
        problems.append(Problem(pointer="/since", detail="not before `until`: the range is empty"))
    for name, why in (_ONLY_LOGGED if recording else _ONLY_RECORDED).items():
        if getattr(request, name) is not None:
            problems.append(Problem(pointer=f"/{name}", detail=why))
    if problems:
        raise BadInput(problems)


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
        recording = request.recording is not None
        until = request.until or (None if recording else datetime.now(UTC))
        request = msgspec.structs.replace(request, until=until)
        refuse(request, too_many(request.variants, self._variants), recording=recording)
        pins = Pinning(self._documents)
        pinned = msgspec.structs.replace(request, variants=[pins.part(variant) for variant in request.variants])
        about = About([variant.name for variant in request.variants], request.since, until, recording)
        new = New(msgspec.json.encode(about), msgspec.json.encode(pinned))
        self._settle()
        return self._accept(lambda _: new)

    def differences(self, identity: UUID, variant: str | None, first: int, most: int | None) -> Iterator[bytes]:
        """The lines of a variant from number ``first``, some at a time, as far as they are there. Raises NotFound."""
        number = self._variant(identity, variant, self.get(identity).names)
        return self._jobs.lines(identity, stream_of(number, DIFFERENCES), first, most)


def _shown(row: RowMapping) -> Backtest:
    about = msgspec.json.decode(row["about"], type=About)
    outcome = outcome_of(row, BacktestOutcome)
    fields = {} if outcome is None else msgspec.structs.asdict(outcome)
    return Backtest(
        **state_of(row), since=about.since, until=about.until, recording=about.recording, names=about.variants,
        progress=None if row["progress"] is None else BacktestProgress(**row["progress"]), **fields,
    )  # fmt: skip


DOCUMENTED = (BacktestRequest, Backtest, BacktestPage, DecisionDiffers)

router = router_of(
    Backtests, KIND, request=BacktestRequest, shown=Backtest, page=BacktestPage, example=BACKTEST,
    errors=(404, 429, 503, 504),
    begin=Said("backtest", "Decide the log, or a recording, again under other configurations", """
    Accepted at once, made by a worker: every logged request of the range is decided again under each variant, on the
    state and for the time that it was decided on. With `recording` that is every preemption of a cluster that was
    recorded, on what its scheduler knew when it decided; where Arbiter does not agree with it, it is skipped.
    `Location` is where to look."""),
    listed=Said("list_backtests", "Backtests, newest first", "Without counts."),
    got=Said(
        "get_backtest", "Status, progress and, once done, counts by variant",
        "How many decisions each variant makes as they were logged, how many otherwise, and what they come to.",
    ),
    forgotten="forgotten with its results",
    otherwise="a recording of any length: arbiter follow ENGINE --replay FILE --backtest FILE",
)  # fmt: skip


Service = Annotated[Backtests, provided(Backtests)]
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
