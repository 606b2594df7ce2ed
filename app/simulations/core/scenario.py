"""What one run needs: a request whose times are instants and whose trace is at hand, its changes compiled before."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import msgspec
from msgspec.structs import asdict, replace

from app.answering.answers import configure
from app.answering.comparison import with_settings
from app.answering.overrides import with_fields
from app.answering.sources import Configurations, Sources
from app.simulations.core.sink import FIRST, is_time, moment, span
from app.simulations.core.validation import Setting, problems_of_list
from app.simulations.schemas import Change, Job, QueueAmendment, SimulationRequest, Trace
from app.solver import solve
from app.solver.model.base import Duration, DurationError, micros
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.problems import Finding, InvalidInput, Problem, carried, pointer, repeated
from app.solver.model.request import Variant
from app.solver.model.state import Node, NodeChanges
from app.solver.solve import Configured


@dataclass(frozen=True, slots=True)
class Prepared:
    """One change, which an administrator makes during a run, compiled before it starts. ``configured``: what is in
    force from then on, None where that stays; ``queues``: whose queues change, in order of name. ``nodes``: None where
    none changes."""

    instant: int
    nodes: NodeChanges | None
    configured: Configured | None
    queues: list[str]


def prepared(
    changes: list[Change], first: Configured, nodes: list[Node], start: int, configurations: Configurations
) -> list[Prepared]:
    """In order of time, else of the list. Raises InvalidInput with every problem; pointers start at /trace/changes."""
    problems: list[Problem] = []
    timed: list[tuple[int, int]] = []
    for i, change in enumerate(changes):
        try:
            timed.append((max(start, moment(change.at, start)), i))
        except DurationError as error:
            problems.append(Problem(pointer=pointer("trace", "changes", i, "at"), detail=str(error)))
    out: list[Prepared] = []
    current, names = first, {node.name for node in nodes}
    for when, i in sorted(timed):
        change = changes[i]
        try:
            after = _configured(change, current, configurations)
        except InvalidInput as invalid:
            where = pointer("trace", "changes", i)
            problems += [Problem(pointer=where + p.pointer, detail=p.detail) for p in invalid.problems]
            continue
        if change.nodes is not None:
            problems += _node_problems(change.nodes, names, i)
        out.append(Prepared(when, change.nodes, None if after is current else after, sorted(change.queues)))
        current = after
    if problems:
        raise InvalidInput(problems)
    return out


def every_node(nodes: list[Node], changes: Iterable[Prepared]) -> list[Node]:
    """All nodes that there ever are, the largest of each name last to come."""
    by_name = {node.name: node for node in nodes}
    for change in changes:
        if change.nodes is not None:
            by_name |= {node.name: node for node in (*change.nodes.add, *change.nodes.change)}
    return list(by_name.values())


def _configured(change: Change, current: Configured, configurations: Configurations) -> Configured:
    engine = current.engine.name
    after = current
    if change.configuration is not None:
        given = change.configuration
        named = isinstance(given, str)
        after = configurations.named(given, engine) if named else configurations.written(given, engine)
    if change.queues:
        after = solve.configure(_with_queues(after.configuration, change.queues), engine)
    return after


def _with_queues(configuration: Configuration, changes: dict[str, QueueAmendment]) -> Configuration:
    known = {queue.name for queue in configuration.queues}
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise InvalidInput(
            Problem(pointer=pointer("queues", name), detail=f"no queue {name!r}") for name in sorted(unknown)
        )
    queues = [_changed(queue, changes.get(queue.name)) for queue in configuration.queues]
    return replace(configuration, queues=queues)


def _changed(queue: Queue, change: QueueAmendment | None) -> Queue:
    if change is None:
        return queue
    given = {name: value for name, value in asdict(change).items() if value is not None}
    if "quota" in given:
        given.setdefault("resource_groups", None)
    elif "resource_groups" in given:
        given["quota"] = None
    return replace(queue, **given)


def _node_problems(nodes: NodeChanges, names: set[str], i: int) -> list[Problem]:
    """What is wrong with the names; ``names`` become those after the change."""
    problems: list[Problem] = []
    for kind, given in (("change", nodes.change), ("remove", nodes.remove)):
        for index, node in enumerate(given):
            name = node if isinstance(node, str) else node.name
            if name not in names:
                where = pointer("trace", "changes", i, "nodes", kind, index)
                problems.append(Problem(pointer=where, detail=f"no node {name!r} at that time"))
    names.difference_update(nodes.remove)
    for index, node in enumerate(nodes.add):
        if node.name in names:
            where = pointer("trace", "changes", i, "nodes", "add", index)
            problems.append(Problem(pointer=where, detail=f"a second node {node.name!r}"))
        names.add(node.name)
    return problems


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run. Instants and lengths in microseconds; ``jobs`` in order of submission; ``total``: how many, where that
    is known; ``remaining``: what runs at the start must still run, by id of the workload."""

    request: SimulationRequest
    configured: Configured
    jobs: Iterable[Job]
    changes: list[Prepared]
    remaining: dict[str, int]
    total: int | None
    start: int
    until: int | None
    round_every: int
    grace: int

    @property
    def findings(self) -> list[Finding] | None:
        """What of the documents that its configurations and its state were read from is not in them."""
        every = (self.configured, *(change.configured for change in self.changes if change.configured is not None))
        return carried(self.request.state.findings, *(configured.configuration.findings for configured in every))

    def configuration(self, number: int) -> Configured:
        """The one that is in force from the beginning (0), or that change ``number - 1`` brings."""
        configured = self.configured if number == 0 else self.changes[number - 1].configured
        assert configured is not None, "a number is given to changes that have one"
        return configured


def scenario_of(
    request: SimulationRequest,
    configurations: Configurations,
    jobs: Iterable[Job] | None = None,
    total: int | None = None,
    *,
    hopeless: bool = False,
) -> Scenario:
    """The run of a request without variants. ``jobs``: those of the trace, in order of submission and checked already
    (``setting_of``), where it is too large for a list; ``total``: how many. ``hopeless``: whether jobs that can never
    run may wait all the same.

    Raises InvalidInput with everything that is wrong, and what ``configurations`` raises."""
    trace = request.trace if isinstance(request.trace, Trace) else Trace()
    start = _start(request, trace)
    configured = configure(request.configuration, request.engine, Sources(configurations))
    changes = prepared(trace.changes, configured, request.state.nodes, start, configurations)
    lengths = _Lengths(request, start)
    if jobs is None:
        setting = _setting(request, configured, changes, start, hopeless=hopeless)
        lengths.problems += problems_of_list(trace.jobs, setting)
        lengths.problems += _unknown_work(request, {job.ask.id for job in trace.jobs})
    if lengths.problems:
        raise InvalidInput(lengths.problems)
    if jobs is None:
        jobs, total = in_order(trace.jobs, start), len(trace.jobs)
    return Scenario(
        request=request, configured=configured, jobs=jobs, changes=changes, remaining=lengths.remaining, total=total,
        start=start, until=lengths.until, round_every=lengths.round_every, grace=lengths.grace,
    )  # fmt: skip


def setting_of(request: SimulationRequest, configurations: Configurations) -> Setting:
    """What the jobs of a stored trace are held against before a run of ``request``. Raises as ``scenario_of``."""
    scenario = scenario_of(request, configurations, ())
    return _setting(request, scenario.configured, scenario.changes, scenario.start, in_order=True)


def _setting(
    request: SimulationRequest,
    first: Configured,
    changes: list[Prepared],
    start: int,
    *,
    in_order: bool = False,
    hopeless: bool = False,
) -> Setting:
    gone = {name for change in changes if change.nodes is not None for name in change.nodes.remove}
    return Setting(
        start=start,
        configured=[first, *(change.configured for change in changes if change.configured is not None)],
        nodes=every_node(request.state.nodes, changes),
        lasting=frozenset(node.name for node in request.state.nodes) - gone,
        in_order=in_order,
        hopeless=hopeless,
    )


class _Lengths:
    """The lengths and instants of a request, read; ``problems``: what is wrong with them."""

    def __init__(self, request: SimulationRequest, start: int) -> None:
        self.problems: list[Problem] = []
        self.round_every = self._read(request.round_every, "/round_every", least=1)
        self.grace = self._read(request.grace, "/grace")
        if request.options.kueue is not None:
            self._read(request.options.kueue.requeue_batch_period, "/options/kueue/requeue_batch_period")
        self.remaining = {
            name: self._read(value, pointer("remaining", name), least=1) for name, value in request.remaining.items()
        }
        running = {workload.id for workload in request.state.workloads}
        self.problems += [
            Problem(pointer=pointer("remaining", name), detail=f"no workload {name!r} runs at the start")
            for name in sorted(request.remaining.keys() - running)
        ]
        self.until: int | None = None
        if request.until is not None:
            try:
                self.until = moment(request.until, start)
            except DurationError as error:
                self.problems.append(Problem(pointer="/until", detail=str(error)))

    def _read(self, value: Duration, where: str, *, least: int = 0) -> int:
        try:
            length = span(value)
        except DurationError as error:
            self.problems.append(Problem(pointer=where, detail=str(error)))
            return least
        if length < least:
            self.problems.append(Problem(pointer=where, detail="must be above 0, by a microsecond at least"))
        return length


def _unknown_work(request: SimulationRequest, jobs: set[str]) -> Iterator[Problem]:
    for i, workload in enumerate(request.state.workloads):
        if workload.id not in jobs and workload.id not in request.remaining:
            where = pointer("state", "workloads", i, "id")
            yield Problem(
                pointer=where, detail=f"{workload.id!r} runs, and neither trace nor `remaining` says how long"
            )


def variants_of(request: SimulationRequest, configurations: Configurations) -> Iterator[tuple[str, SimulationRequest]]:
    """The run of each variant, by name, as a request without variants; one called ``""`` where there are none.

    Raises InvalidInput, and what ``configurations`` raises."""
    if request.variants is None:
        yield "", request
        return
    again = list(repeated(variant.name for variant in request.variants))
    if again or not request.variants:
        where = [pointer("variants", i, "name") for i in again] or ["/variants"]
        raise InvalidInput(Problem(pointer=place, detail="a variant needs a name of its own") for place in where)
    for i, variant in enumerate(request.variants):
        try:
            yield variant.name, varied(request, variant, configurations)
        except InvalidInput as invalid:
            where = pointer("variants", i)
            raise InvalidInput(Problem(pointer=where + p.pointer, detail=p.detail) for p in invalid.problems) from None


def varied(request: SimulationRequest, variant: Variant, configurations: Configurations) -> SimulationRequest:
    """The request of one variant. Raises InvalidInput, and what ``configurations`` raises."""
    document = request.configuration if variant.configuration is None else variant.configuration
    engine = variant.engine or request.engine
    if isinstance(document, str) and (variant.settings is not None or variant.set):
        document = configurations.named(document, engine).configuration
    if variant.settings is not None:
        document = with_settings(cast(Configuration, document), variant.settings)
    if variant.set:
        document = with_fields(cast(Configuration, document), variant.set)
    return msgspec.structs.replace(request, variants=None, engine=engine, configuration=document)


def in_order(jobs: list[Job], start: int) -> list[Job]:
    """By time of submission, then id. The times must be known to be sound."""
    return sorted(jobs, key=lambda job: (moment(job.submitted_at, start), job.ask.id))


def _start(request: SimulationRequest, trace: Trace) -> int:
    """The request's, else the trace's, else the earliest time that a job gives, else the year 2000."""
    given = request.start or trace.start
    if given is not None:
        return micros(given)
    times = [job.submitted_at for job in trace.jobs if is_time(job.submitted_at)]
    moments: list[int] = []
    for value in times:
        try:
            moments.append(moment(value, 0))
        except DurationError:
            continue  # named by line, with everything else that is wrong
    return min(moments, default=FIRST)
