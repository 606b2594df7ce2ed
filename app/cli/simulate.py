"""``arbiter simulate``: a trace of jobs through the engines' own decisions, on this machine, without a server."""

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from io import BufferedWriter
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic
from types import TracebackType
from typing import IO, Annotated, Literal

import msgspec
from cyclopts import Parameter

from app.answering.answers import encode
from app.answering.sources import Compiled
from app.base.decoding import decode
from app.cli.manifests import AS_IT_SAYS, Otherwise, changed, configuration_of, failed, stored_or_file
from app.cli.offline import Json
from app.cli.output import BAD_INPUT, as_json, hint, noticed, say, table
from app.cli.remote import guarded
from app.simulations.core.run import Parting
from app.simulations.core.run import simulate as run
from app.simulations.core.scenario import setting_of, variants_of
from app.simulations.core.sink import Amounts, Silence, time_of
from app.simulations.core.validation import check_jobs
from app.simulations.plots import (
    Drawing,
    Picture,
    drawn,
    evictions_of,
    free_of,
    require,
    resource_of,
    usage_of,
    waits_of,
)
from app.simulations.results import Level, levels_of, line_of, spare_line_of, spare_of
from app.simulations.schemas import Event, Job, JobLine, Parted, RoundLine, SimulationRequest, Summary, Totals, Trace
from app.solver.model.problems import InvalidInput, Problem, carried

_BLOCK = 4 << 20
_Kind = Literal["events", "jobs", "levels"]
_KINDS: tuple[_Kind, ...] = ("events", "jobs", "levels")


class Spool:
    """Lines of events, jobs and levels, for one run: what its pictures need, kept in files that are gone with it."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._files: dict[_Kind, IO[bytes]] = {}

    def __enter__(self) -> "Spool":
        for kind in _KINDS:
            self._files[kind] = self._open.enter_context(TemporaryFile())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def event(self, event: Event) -> None:
        if event.kind in ("submitted", "evicted"):
            self._files["events"].write(encode(event) + b"\n")

    def job(self, line: JobLine) -> None:
        self._files["jobs"].write(encode(line) + b"\n")

    def level(self, queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> None:
        self._files["levels"].write(line_of(queue, since, usage, waiting, guarantee) + b"\n")

    def spare(self, flavor: str, level: str, since: int, free: Amounts, largest: Amounts) -> None:
        self._files["levels"].write(spare_line_of(flavor, level, since, free, largest) + b"\n")

    def drawn(self, summary: Summary, variant: str) -> bytes:
        """All pictures in one, as SVG. Raises NotInstalled."""

        def levels(queue: str) -> Iterator[Level]:
            return levels_of(self._blocks("levels"), queue)

        pictures: list[Picture] = [
            usage_of(summary, resource_of(summary, None), levels),
            waits_of(self._lines("jobs")),
            evictions_of(self._lines("events")),
        ]
        if summary.fragmentation:
            pictures.append(free_of(summary, None, spare_of(self._blocks("levels"))))
        return drawn(Drawing(f"{summary.engine}: {variant}" if variant else str(summary.engine), pictures))

    def _lines(self, kind: _Kind) -> Iterator[bytes]:
        self._files[kind].seek(0)
        yield from self._files[kind]

    def _blocks(self, kind: _Kind) -> Iterator[bytes]:
        """Whole lines, some megabytes at a time."""
        file = self._files[kind]
        file.seek(0)
        while block := file.read(_BLOCK):
            yield block + file.readline()


_FILE_NAME = re.compile(r"[^\w.+-]")
_EVERY = 1.0
"""Seconds between two lines of progress."""

Body = Annotated[
    str,
    Parameter(
        allow_leading_hyphen=True,
        help="The body of POST /v1/simulations with its configuration written out, JSON or YAML; '-' reads standard "
        "input. A trace that is a string is a file of jobs, one JSON document a line, in order of submission.",
    ),
]
Output = Annotated[
    str | None,
    Parameter(help="Write them to this file, a JSON document a line; with variants each line says whose it is."),
]


def simulate(
    file: Body = "-",
    /,
    *,
    json: Json = False,
    events: Output = None,
    rounds: Output = None,
    jobs: Output = None,
    plot: Annotated[
        Path | None,
        Parameter(
            help="Draw usage, waits, evictions and fragmentation to this file, SVG; one a variant (extra `plot`)."
        ),
    ] = None,
    otherwise: Otherwise = AS_IT_SAYS,
) -> int:
    """Let a trace of jobs run through an engine, round by round, on a virtual clock: waits, evictions, lost work.

    Exit code 0: done, 3: bad input, also where what it was read from has an error.
    """

    def play() -> int:
        if plot is not None:
            require()
        request = _request(file, otherwise)
        with ExitStack() as files:
            sinks = {
                name: files.enter_context(Path(path).open("wb"))
                for name, path in (("event", events), ("round", rounds), ("job", jobs))
                if path is not None
            }
            parting = Parting()
            summaries = dict(_runs(request, sinks, plot, parting))
        return _shown(summaries, parting.parted, json=json)

    return guarded(play, file)


def _request(file: str, otherwise: Otherwise) -> SimulationRequest:
    """The request in ``file``, no larger than a trace may be, with what is ``otherwise``; its ``--now`` is its start.
    Raises OSError, InvalidInput, TooLarge, Unreachable."""
    from app.traces.preparing import bounded, limits

    hint(file)
    most = limits()
    body = as_json(bounded(file, most.bytes))
    if otherwise.configuration is not None:
        document, _ = configuration_of(stored_or_file(otherwise.configuration, otherwise.remote))
        given = {"configuration": msgspec.Raw(msgspec.json.encode(document))}
        body = msgspec.json.encode({**decode(body, dict[str, msgspec.Raw]), **given})
    request = decode(changed(body, otherwise, "start"), SimulationRequest)
    if isinstance(request.trace, Trace) and len(request.trace.jobs) > most.jobs:
        raise InvalidInput([Problem(pointer="/trace/jobs", detail=most.too_many)])
    return request


def _runs(
    request: SimulationRequest, files: dict[str, BufferedWriter], plot: Path | None, parting: Parting
) -> Iterator[tuple[str, Summary]]:
    configurations = Compiled(None)
    path = request.trace if isinstance(request.trace, str) else None
    for number, (name, variant) in enumerate(list(variants_of(request, configurations))):
        course = None if not name else parting.other(name) if number else parting.first(name)
        total: int | None = None
        if path is not None:
            total = _checked(path, variant, configurations)
        with ExitStack() as spools:
            spool = None if plot is None else spools.enter_context(Spool())
            sink = _Files(name, files, spool)
            listed = None if path is None else _jobs(path)
            summary = run(variant, configurations, sink, lambda: False, listed, total, course)
            sink.close()
            if plot is not None and spool is not None:
                of = plot.with_stem(f"{plot.stem}-{_FILE_NAME.sub('_', name)}") if name else plot
                of.write_bytes(spool.drawn(summary, name))
        yield name, summary


def _checked(path: str, request: SimulationRequest, configurations: Compiled) -> int:
    """How many jobs a file has. Raises OSError, TooLarge, InvalidInput with what is wrong with them, by line."""
    from app.traces.preparing import limits, lines_within

    most = limits()
    count = lines_within(path, most)
    if count > most.jobs:
        raise InvalidInput([Problem(pointer=f"{path}:{most.jobs + 1}", detail=most.too_many)])
    located = ((f"{path}:{number}", job) for number, job in enumerate(_jobs(path), 1))
    check_jobs(located, setting_of(request, configurations))
    return count


def _jobs(path: str) -> Iterator[Job]:
    """The jobs of a file. Raises OSError, InvalidInput that names the line."""
    decoder = msgspec.json.Decoder(Job)
    with Path(path).open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as refusal:
                raise InvalidInput([Problem(pointer=f"{path}:{number}", detail=str(refusal))]) from None


class _Files(Silence):
    """Writes what it is told to files, and progress to a terminal."""

    def __init__(self, variant: str, files: dict[str, BufferedWriter], spool: Spool | None) -> None:
        self._variant = variant
        self._spool = spool
        self.leveled, self.digested = spool is not None, "round" in files
        used = set(files) if spool is None else {*files, "event", "job"}
        self.unheard = {"event", "round", "job"} - used
        self._files = files
        self._shows = sys.stderr.isatty()
        self._shown = monotonic()

    def event(self, event: Event) -> None:
        self._write("event", event)
        if self._spool is not None:
            self._spool.event(event)

    def round(self, line: RoundLine) -> None:
        self._write("round", line)

    def job(self, line: JobLine) -> None:
        self._write("job", line)
        if self._spool is not None:
            self._spool.job(line)

    def level(self, queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> None:
        if self._spool is not None:
            self._spool.level(queue, since, usage, waiting, guarantee)

    def spare(self, flavor: str, level: str, since: int, free: Amounts, largest: Amounts) -> None:
        if self._spool is not None:
            self._spool.spare(flavor, level, since, free, largest)

    def progress(self, now: int, ended: int, total: int | None, rounds: int) -> None:
        if self._shows and (shown := monotonic()) - self._shown >= _EVERY:
            self._shown = shown
            of = "" if total is None else f" of {total} ({100 * ended // max(1, total)} %)"
            text = (
                f"{self._variant or 'run'}: {time_of(now):%Y-%m-%d %H:%M:%S}, {ended} jobs ended{of}, {rounds} rounds"
            )
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def close(self) -> None:
        """Take the line of progress away."""
        if self._shows:
            sys.stderr.write("\r\x1b[K")

    def _write(self, kind: str, line: msgspec.Struct) -> None:
        file = self._files.get(kind)
        if file is not None:
            whose = {"variant": self._variant} if self._variant else {}
            file.write(encode(whose | msgspec.to_builtins(line)) + b"\n")


def _shown(summaries: dict[str, Summary], parted: dict[str, Parted], *, json: bool) -> int:
    findings = carried(*(summary.findings or () for summary in summaries.values())) or []
    noticed(findings)
    _lines(summaries, parted, json=json)
    return BAD_INPUT if failed(findings) else 0


def _lines(summaries: dict[str, Summary], parted: dict[str, Parted], *, json: bool) -> None:
    if json:
        more = {"parted": parted} if parted else {}
        say(encode(summaries[""] if list(summaries) == [""] else {"variants": summaries, **more}).decode())
        return
    for name, summary in summaries.items():
        if name:
            say(f"{name}:")
        days = (summary.end - summary.start).total_seconds() / 86400
        spun = f", orbits: {summary.orbits}" if summary.orbits else ""
        say(f"{summary.engine}: {days:.4g} days, {summary.rounds} rounds, loops: {summary.loops}{spun}")
        table(_HEADER, _rows(summary))
        for loop in summary.first_loops[:3]:
            say(f"  loop at {loop.at:%Y-%m-%d %H:%M:%S}, rounds {loop.first} and {loop.second}: {', '.join(loop.jobs)}")
        if (point := parted.get(name)) is not None:
            say(f"  parts from {next(iter(summaries))} in round {point.round}, at {point.at:%Y-%m-%d %H:%M:%S}:")
            for difference in point.differences:
                by = "" if difference.rules is None else f", by {', '.join(difference.rules) or 'chance'}"
                say(f"    {difference.ask or 'beside the asks'}: {difference.field}{by}")


_HEADER = (
    "queue", "jobs", "finished", "wait mean", "p50", "p90", "p99", "max", "slowdown p90", "evictions", "most",
    "lost", "utilisation",
)  # fmt: skip


def _rows(summary: Summary) -> Iterable[list[str]]:
    yield ["(all)", *_row(summary.total)]
    for name, totals in summary.queues.items():
        yield [name, *_row(totals)]


def _row(of: Totals) -> list[str]:
    wait, slow = of.wait, of.slowdown
    waits = ["-"] * 5 if wait is None else [_length(v) for v in (wait.mean, wait.p50, wait.p90, wait.p99, wait.max)]
    share = ", ".join(f"{name} {100 * part:.1f} %" for name, part in of.utilisation.items())
    lost = ", ".join(f"{name} {amount:.4g} s" for name, amount in of.work_lost.items())
    return [
        str(of.jobs), str(of.finished), *waits, "-" if slow is None else f"{slow.p90:.3g}", str(of.evictions),
        str(of.most_evictions), lost, share,
    ]  # fmt: skip


def _length(value: float) -> str:
    """Seconds as a person reads them."""
    if value < 120:
        return f"{value:.3g}s"
    return f"{value / 60:.3g}m" if value < 7200 else f"{value / 3600:.4g}h"
