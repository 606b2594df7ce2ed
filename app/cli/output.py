"""What commands read and print: files, folders and standard input, JSON or YAML; answers as people read them.

Text is in aligned columns without colour, so that it pipes, greps and diffs well.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Annotated, Any, NamedTuple, cast

from cyclopts import Parameter

from app.answering.comparison import Comparison, VariantAnswer
from app.base.decoding import refuse_keys_twice, whole
from app.base.documents import Path, Unreadable
from app.base.documents import read as parsed
from app.base.errors import ArbiterError
from app.formats.ytsaurus.documents import read_any
from app.solver.model.decision import Answer, Decision, Explanation, Placement, Plan, PlannedEviction, label, planned
from app.solver.model.problems import Finding, InvalidInput, Problem
from app.solver.model.problems import pointer as to_pointer

NOTHING, EVICTS, CANNOT, BAD_INPUT, UNREACHABLE = range(5)
DIFFERENT = 1


class ReaderGone(Exception):
    """Nobody reads standard output any more. No OSError: it says nothing about a file that was asked for."""


def say(text: str = "") -> None:
    """A line for the reader. Raises ReaderGone."""
    try:
        print(text)
    except BrokenPipeError as error:
        raise ReaderGone from error


def announce(text: str) -> None:
    """A line that somebody waits for while this process goes on: it leaves at once, into a pipe too.

    Raises ReaderGone.
    """
    say(text)
    try:
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error


def complain(text: str) -> None:
    """A line on standard error."""
    print(text, file=sys.stderr)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "  ") -> None:
    """Columns as wide as they need to be; one that is empty in every row is left out."""
    listed = [list(row) for row in rows]
    shown = [i for i in range(len(header)) if any(row[i] for row in listed)]
    lines = [[header[i] for i in shown], *([row[i] for i in shown] for row in listed)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(shown))]
    for line in lines:
        say(indent + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def problems(source: str, listed: Sequence[Problem]) -> None:
    """Every problem of an input, on standard error."""
    complain(f"{source}: {len(listed)} problem{'s' if len(listed) != 1 else ''}")
    for problem in listed:
        complain(f"  {problem.pointer or '(document)'}: {problem.detail}")


def noticed(
    findings: Iterable[Finding], place: Callable[[str], tuple[str, str]] = lambda pointer: ("", pointer)
) -> None:
    """Every finding, on standard error. ``place``: the file that a pointer leads into, empty where it leads into none,
    and the pointer there."""
    for finding in findings:
        notice(finding.severity, finding.detail, finding.rule, *place(finding.pointer))


def notice(severity: str, detail: str, rule: str, file: str, pointer: str) -> None:
    """One finding as a line on standard error."""
    where = f"{file}: " if file else ""
    complain(f"  {where}{severity} {pointer or '(document)'}: {detail} [{rule}]")


class OfFiles(InvalidInput):
    """What is wrong with some of several files."""

    def __init__(self, placed: Iterable[tuple[str, Problem]]) -> None:
        self.by_file: dict[str, list[Problem]] = {}
        for file, problem in placed:
            self.by_file.setdefault(file, []).append(problem)
        super().__init__(problem for listed in self.by_file.values() for problem in listed)


@contextmanager
def of_file(name: str) -> Generator[None]:
    """What is wrong with what is read meanwhile is that file's. Raises OfFiles."""
    try:
        yield
    except InvalidInput as invalid:
        raise OfFiles((name, problem) for problem in invalid.problems) from None


def wrong(source: str, invalid: InvalidInput) -> None:
    """Every problem of an input, under the file that it is of."""
    for file, listed in (invalid.by_file if isinstance(invalid, OfFiles) else {source: invalid.problems}).items():
        problems(file, listed)


def tried(file: str, act: Callable[[], int]) -> int:
    """``act``'s exit code, or BAD_INPUT with everything that is wrong with ``file`` said on standard error."""
    try:
        return act()
    except OSError as error:
        complain(f"{error.filename or file}: {error.strerror or error}")
    except InvalidInput as invalid:
        wrong(file, invalid)
    except ArbiterError as refused:
        if refused.problems:
            problems(file, refused.problems)
        else:
            complain(f"{file}: {refused.detail}")
    return BAD_INPUT


def read(file: str) -> bytes:
    """The bytes of ``file``, or of standard input where it is ``-``. Raises OSError."""
    hint(file)
    return sys.stdin.buffer.read() if file == "-" else FilePath(file).read_bytes()


def hint(file: str) -> None:
    """Tell somebody at a terminal that standard input is read, where ``file`` says so."""
    if file == "-" and sys.stdin.isatty():
        complain("reading standard input; end it with Ctrl-D, or name a file")


Fields = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative=(),
        help="With this field of the configuration, as queues.research.quota.gpu.guaranteed=12; may be given several "
        "times.",
    ),
]


def fields_of(words: list[str]) -> dict[str, Any]:
    """``--set PATH=VALUE``, fields of a configuration to set, on the command line: each path with its value, JSON, or
    the text itself. Raises InvalidInput."""
    return dict(map(_field, words))


def _field(word: str) -> tuple[str, Any]:
    path, equals, text = word.partition("=")
    if not equals or not path:
        raise InvalidInput([Problem(pointer="", detail=f"--set {word!r}: a path, = and a value are expected")])
    try:
        return path, json.loads(text)
    except ValueError:
        return path, text


SUFFIXES = (".yaml", ".yml", ".json")

Files = Annotated[
    list[str] | None,
    Parameter(
        name=["--file", "-f"], negative=(), allow_leading_hyphen=True,
        help="Another file, or a folder of manifests; may be given several times.",
    ),
]  # fmt: skip


class Source(NamedTuple):
    """The bytes of a file, and what the reader calls it."""

    name: str
    body: bytes


def gathered(first: str, more: list[str] | None) -> list[Source]:
    """What ``first`` and ``more`` name; standard input where ``first`` is ``-`` and nothing else is named. A folder
    stands for its YAML and JSON files in order of name. Raises OSError."""
    names = [*([] if first == "-" and more else [first]), *(more or [])]
    sources: list[Source] = []
    for name in names:
        folder = FilePath(name)
        if name != "-" and folder.is_dir():
            files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
            if not files:
                raise FileNotFoundError(2, "no .yaml, .yml or .json file in this folder", name)
            sources += [Source(str(path), path.read_bytes()) for path in files]
        else:
            sources.append(Source(name, read(name)))
    return sources


def as_json(body: bytes) -> bytes:
    """``body`` where it is JSON; what one YAML document says as JSON. What is neither stays, for whoever decodes it to
    say so. Raises InvalidInput for YAML of several documents, and for a key that occurs twice in one object."""
    if body.lstrip()[:1] in (b"{", b"[", b""):
        refuse_keys_twice(body)
        return body
    documents = parsed(body)
    if len(documents) != 1:
        raise Unreadable(f"{len(documents)} documents: one is expected")
    document = documents[0][1]
    return json.dumps(document).encode() if isinstance(document, dict | list) else body


class Joined(NamedTuple):
    """All documents of several sources as one list, and where each is from: the source, and its place there."""

    body: bytes
    places: list[tuple[str, Path]]

    def place(self, pointer: str) -> tuple[str, str]:
        """The source that ``pointer`` into the list leads into, empty where it leads into none, and the pointer
        there."""
        number, slash, rest = pointer.removeprefix("/").partition("/")
        source = whole(number)
        if source is None or not 0 <= source < len(self.places):
            return "", pointer
        name, path = self.places[source]
        return name, to_pointer(*path) + slash + rest


def joined(sources: list[Source]) -> Joined:
    """Read several sources together. Raises OfFiles."""
    documents: list[object] = []
    places: list[tuple[str, Path]] = []
    for source in sources:
        with of_file(source.name):
            inner = read_any(source.body)
        documents += [document for _, document in inner]
        places += [(source.name, path) for path, _ in inner]
    return Joined(json.dumps(documents).encode(), places)


_MOST_ROWS = 200
_MOST_DOMAINS = 5
_MOST_MESSAGES = 5


def answer(result: Answer, *, why: bool) -> None:
    """Each ask with its outcome and victims, and ``why``; then what the plan has beyond them."""
    each_alone = len(result.decisions) > 1 and any(decision.plan is not None for decision in result.decisions)
    if why and result.release is not None:
        say(f"by the rules of {rules_of(result.engine, result.release)}")
    for decision in result.decisions:
        _decision(decision)
        if why and decision.explanation is not None:
            _explanation(decision.explanation)
        if each_alone and decision.plan is not None:
            _rest_of_plan(decision.plan, [decision])
        say()
    if each_alone:
        say("each ask as if it were alone: their plans exclude one another (--mode cycle decides them together)")
    _rest_of_plan(result.plan, result.decisions)


def _decision(decision: Decision) -> None:
    say(f"{decision.ask}: {decision.outcome}{_where(decision)}{_victim_count(decision)}")
    if decision.victims:
        table(
            ("VICTIM", "QUEUE", "NODE", "FREES", "REASON"),
            (
                (label(v.workload, v.task), v.queue, v.node or "", _quantities(v.freed), v.reason)
                for v in decision.victims[:_MOST_ROWS]
            ),
        )
        _more(len(decision.victims))
    for message in list(dict.fromkeys(v.message for v in decision.victims))[:_MOST_MESSAGES]:
        say(f"  {message}")
    for condition in decision.conditions:
        if condition.message:
            say(f"  {condition.reason}: {condition.message}")
    for short in decision.shortages or ():
        place = ", ".join(part for part in (short.queue, short.flavor, short.node) if part)
        requested, free = amount(short.requested), amount(short.available)
        say(f"  short of {amount(short.short)} {short.resource} ({requested} requested, {free} free; {place})")


def _where(decision: Decision) -> str:
    parts: list[str] = []
    if decision.node:
        parts.append(f" on {decision.node}")
    for task, flavors in (decision.assignment or {}).items():
        parts.append(f", {task} on {', '.join(f'{resource}={flavor}' for resource, flavor in flavors.items())}")
    for task, placed in (decision.topology_assignment or {}).items():
        domains = [f"{'/'.join(domain.values)} ({domain.count})" for domain in placed.domains[:_MOST_DOMAINS]]
        more = len(placed.domains) - len(domains)
        parts.append(f", {task} at {', '.join(domains)}{f' and {more} more' if more else ''}")
    if decision.borrowing:
        parts.append(", borrowing")
    return "".join(parts)


def _victim_count(decision: Decision) -> str:
    count = len(decision.victims)
    return f", evicts {count}" if count else ""


def _more(count: int) -> None:
    if count > _MOST_ROWS:
        say(f"  and {count - _MOST_ROWS} more; --json has all")


def _explanation(explained: Explanation) -> None:
    if explained.headline:
        say(f"  why: {explained.headline}")
    for step in explained.steps[:_MOST_ROWS]:
        say(f"  - {step.detail} [{step.rule}]")
    _more(len(explained.steps))
    if explained.candidates:
        table(
            ("CANDIDATE", "QUEUE", "NODE", "BECAME", "RULE", "DETAIL", "NUMBERS"),
            (
                (
                    label(c.workload, c.task),
                    c.queue or "",
                    c.node or "",
                    c.verdict,
                    c.rule,
                    c.detail,
                    _numbers(c.numbers),
                )
                for c in explained.candidates[:_MOST_ROWS]
            ),
        )
        _more(len(explained.candidates))
    if explained.groups:
        table(
            ("CANDIDATES", "BECAME", "RULE", "SUCH AS"),
            ((str(g.count), g.verdict, g.rule, ", ".join(g.examples)) for g in explained.groups),
        )
    if explained.blocker:
        say(f"  in the way: {explained.blocker}")
    for change in explained.smallest_change or ():
        of = f"{change.queue}{f' ({change.flavor})' if change.flavor else ''}"
        current = "none" if change.current is None else amount(change.current)
        needed = amount(change.needed)
        what = "would let it in" if explained.blocker else "would keep a budget"
        say(f"  {what}: {change.field} of {change.resource} in {of} from {current} to {needed}")


def _rest_of_plan(plan: Plan, decisions: list[Decision]) -> None:
    shown = {(v.workload, v.task) for decision in decisions for v in decision.victims}
    others = [e for e in plan.evictions if (e.workload, e.task) not in shown]
    if others:
        say("also evicted")
        table(("WORKLOAD", "QUEUE", "NODE", "REASON", "FOR"), (_eviction(e) for e in others[:_MOST_ROWS]))
        _more(len(others))
    if placements := plan.placements:
        say("placed")
        table(("WHAT", "NODE", "WHEN", "STAGE"), (_placement(p) for p in placements[:_MOST_ROWS]))
        _more(len(placements))


def _eviction(eviction: PlannedEviction) -> tuple[str, str, str, str, str]:
    what = label(eviction.workload, eviction.task)
    reason = f"{eviction.reason}, just placed" if eviction.just_placed else eviction.reason
    return what, eviction.queue, eviction.node or "", reason, eviction.for_ask or ""


def _placement(placement: Placement) -> tuple[str, str, str, str]:
    when = "once freed" if placement.pipelined else "now"
    what = label(placement.ask or placement.workload or "", placement.task)
    return what, placement.node, when, placement.stage or ""


def comparison(result: Comparison) -> None:
    """Each variant in a line, then where they differ."""
    table(("VARIANT", "ENGINE", "OUTCOMES", "EVICTIONS"), (_variant(variant) for variant in result.variants), indent="")
    for variant in result.variants:
        for problem in variant.problems[:_MOST_MESSAGES]:
            say(f"  {variant.name}: refused, {problem.pointer}: {problem.detail}")
        for finding in variant.findings:
            say(f"  {variant.name}: {finding.severity} {finding.pointer}: {finding.detail}")
    say()
    if not result.differences:
        say("no differences")
    for difference in result.differences[:_MOST_ROWS]:
        say(f"{difference.ask or 'beside the asks'}: {difference.field}")
        nothing = "none" if difference.field == "placements" else "nobody"
        table(("VARIANT", "SAYS"), ((name, _value(value, nothing)) for name, value in difference.values.items()))
        if difference.rules is not None:
            say(f"  by {', '.join(difference.rules) or 'chance'}")


def rules_of(engine: str, release: str | None) -> str:
    """Whose rules decided."""
    return engine if release is None else f"{engine} {release}"


def _variant(variant: VariantAnswer) -> tuple[str, str, str, str]:
    if variant.answer is None:
        return variant.name, "", "refused", ""
    tally = _tally(decision.outcome for decision in variant.answer.decisions)
    return (
        variant.name,
        rules_of(variant.answer.engine, variant.answer.release),
        tally,
        str(len(planned(variant.answer))),
    )


def _tally(outcomes: Iterable[str]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in Counter(outcomes).items())


def _value(value: Any, nothing: str) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or nothing  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return "-" if value is None else str(value)


def _quantities(quantities: dict[str, int | float]) -> str:
    return ", ".join(f"{resource} {amount(value)}" for resource, value in quantities.items())


def amount(value: float) -> str:
    """Whole mebibytes and more in the largest binary unit that divides them."""
    for exponent, unit in ((40, "Ti"), (30, "Gi"), (20, "Mi")):
        if value and value % (1 << exponent) == 0:
            return f"{int(value) >> exponent}{unit}"
    return str(value)


def _numbers(numbers: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in _flat(numbers, ""))


def _flat(numbers: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in numbers.items():
        if isinstance(value, dict):
            yield from _flat(cast(dict[str, Any], value), f"{prefix}{name} ")
        else:
            yield prefix + name, value
