"""What is wrong with a trace, job by job and before anything runs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec
from msgspec.structs import replace

from app.simulations.core.life import one_by_one
from app.simulations.core.sink import LATEST, moment, span
from app.simulations.schemas import Instant, Job
from app.solver import check, solve
from app.solver.apply import Index
from app.solver.model.base import Duration, DurationError
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask, Node, State
from app.solver.question import Question, safe_point
from app.solver.solve import Configured, Loaded

MOST_PROBLEMS = 100
"""So many are named; a trace that is wrong throughout would name millions."""

_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class Setting:
    """What jobs are held against. ``start`` in microseconds; ``configured``: every configuration that is ever in force;
    ``nodes``: every node there ever is; ``lasting``: names of those that are there throughout; ``in_order``: whether
    jobs must come in order of submission; ``hopeless``: whether those that can never run are let through."""

    start: int
    configured: Sequence[Configured]
    nodes: list[Node]
    lasting: frozenset[str]
    in_order: bool
    hopeless: bool = False
    index: Index = field(init=False)
    _whole: bool = field(init=False)
    _infeasible: bool = field(init=False)
    _empty: list[Loaded] = field(default_factory=list[Loaded])
    _verdicts: dict[bytes, str | None] = field(default_factory=dict[bytes, str | None])

    def __post_init__(self) -> None:
        self.index = Index(State(nodes=self.nodes))
        rounds = solve.rounds(self.configured[0])
        self._whole, self._infeasible = rounds.unit == "job", rounds.infeasible

    def never(self, ask: Ask) -> str | None:
        """Why ``ask`` can never run, on all nodes and with nothing else running; None: it can. Worked out once for all
        that are alike."""
        alike = _encode(replace(ask, id="-", uid=None, created_at=None, workload=None))
        if alike not in self._verdicts:
            self._verdicts[alike] = next(filter(None, map(self._never, self._parts(ask))), None)
        return self._verdicts[alike]

    def _parts(self, ask: Ask) -> Iterator[Ask]:
        """What must be able to run by itself: a job as a whole, or each of its kinds of tasks."""
        if self._infeasible:
            yield ask if self._whole else one_by_one(ask)
        else:
            yield from (replace(ask, tasks=[replace(task, count=1)]) for task in ask.tasks)

    def _never(self, ask: Ask) -> str | None:
        if not self._empty:
            self._empty = [solve.load(configured, State(nodes=self.nodes)) for configured in self.configured]
        said = ""
        for loaded in self._empty:
            decision = solve.decide(loaded, Question(self.start, [ask])).decisions[0]
            if decision.outcome not in (("infeasible",) if self._infeasible else ("infeasible", "wait")):
                return None
            said = (
                decision.conditions[0].message if self._infeasible else "alone, with all nodes to itself, it would wait"
            )
        return said


def check_jobs(jobs: Iterable[tuple[str, Job]], setting: Setting) -> None:
    """``jobs``: each with the pointer that problems are named by. Raises InvalidInput with the first hundred."""
    problems = list(islice(problems_of(jobs, setting), MOST_PROBLEMS))
    if problems:
        raise InvalidInput(problems)


def problems_of_list(jobs: list[Job], setting: Setting) -> list[Problem]:
    """The first hundred problems of the jobs that a request brings along."""
    where = pointer("trace", "jobs")
    located = ((f"{where}/{i}", job) for i, job in enumerate(jobs))
    return list(islice(problems_of(located, setting), MOST_PROBLEMS))


def problems_of(jobs: Iterable[tuple[str, Job]], setting: Setting) -> Iterator[Problem]:
    """Everything that is wrong, in the order of the jobs."""
    submitted: dict[str, int] = {}
    latest = -LATEST
    named: list[tuple[str, Job]] = []
    for where, job in jobs:
        safe_point()
        if job.ask.id in submitted:
            yield Problem(pointer=f"{where}/ask/id", detail=f"a second job {job.ask.id!r}")
        when = LATEST
        try:
            when = moment(job.submitted_at, setting.start)
        except DurationError as error:
            yield Problem(pointer=f"{where}/submitted_at", detail=str(error))
        else:
            if setting.in_order and when < latest:
                yield Problem(pointer=f"{where}/submitted_at", detail="earlier than that of the job before")
            latest = max(latest, when)
        submitted[job.ask.id] = when
        yield from _times(where, job, when, setting.start)
        yield from _ask(where, job.ask, setting)
        if job.after:
            named.append((where, job))
    for where, job in named:
        for i, other in enumerate(job.after):
            if other not in submitted:
                yield Problem(pointer=f"{where}/after/{i}", detail=f"no job {other!r}")
            elif submitted[other] > submitted[job.ask.id] or other == job.ask.id:
                yield Problem(pointer=f"{where}/after/{i}", detail=f"{other!r} is not submitted before this job")
    yield from _circles(named)


def _circles(named: list[tuple[str, Job]]) -> Iterator[Problem]:
    """Jobs, of one instant, that never come, for each comes after the other. Nobody named has itself before it."""
    left = {job.ask.id: {other for other in job.after if other != job.ask.id} for _, job in named}
    behind: dict[str, list[str]] = {}
    for name, before in left.items():
        for other in before:
            behind.setdefault(other, []).append(name)
    free = list(behind.keys() - left.keys())
    while free:
        over = free.pop()
        left.pop(over, None)
        for name in behind.get(over, ()):
            left[name].discard(over)
            if not left[name]:
                free.append(name)
    for where, job in named:
        if left.get(job.ask.id):
            yield Problem(pointer=f"{where}/after", detail="it would never come: jobs before it come after one another")


def _times(where: str, job: Job, submitted: int, start: int) -> Iterator[Problem]:
    problems = [
        *_length(f"{where}/duration", job.duration, least=1),
        *(_length(f"{where}/checkpoint/every", job.checkpoint.every, least=1) if job.checkpoint else ()),
        *(_length(f"{where}/checkpoint/cost", job.checkpoint.cost, least=0) if job.checkpoint else ()),
    ]
    yield from problems
    if not problems and submitted < LATEST < submitted + span(job.duration):
        yield Problem(pointer=f"{where}/duration", detail="out of range")
    if job.cancelled_at is not None:
        yield from _later(f"{where}/cancelled_at", job.cancelled_at, submitted, start)


def _length(where: str, value: Duration, *, least: int) -> Iterator[Problem]:
    try:
        if span(value) < least:
            yield Problem(pointer=where, detail="must be above 0, by a microsecond at least")
    except DurationError as error:
        yield Problem(pointer=where, detail=str(error))


def _later(where: str, value: Instant, than: int, start: int) -> Iterator[Problem]:
    try:
        if moment(value, start) <= than < LATEST:
            yield Problem(pointer=where, detail="not after its submission")
    except DurationError as error:
        yield Problem(pointer=where, detail=str(error))


def _ask(base: str, ask: Ask, setting: Setting) -> Iterator[Problem]:
    if ask.workload is not None and ask.workload != ask.id:
        yield Problem(pointer=f"{base}/ask/workload", detail="a job is a workload of its own")
        return
    if not ask.tasks:
        yield Problem(pointer=f"{base}/ask/tasks", detail="a job without tasks has nothing to run")
        return
    pending = ask if ask.workload is None else replace(ask, workload=None)
    problems = list(
        dict.fromkeys(
            Problem(pointer=base + problem.pointer, detail=problem.detail)
            for configured in setting.configured
            for problem in check.one_ask_problems(configured.names, setting.index, pending)
        )
    )
    problems += [
        Problem(pointer=base + where, detail=f"node {name!r} is not there throughout")
        for where, name in _nodes_of(ask)
        if name not in setting.lasting
    ]
    yield from problems
    if not problems and not setting.hopeless:
        try:
            never = setting.never(pending)
        except InvalidInput as invalid:
            yield from (Problem(pointer=base + _inside(p.pointer), detail=p.detail) for p in invalid.problems)
        else:
            if never is not None:
                yield Problem(pointer=f"{base}/ask", detail=f"can never run: {never}")


def _nodes_of(ask: Ask) -> Iterator[tuple[str, str]]:
    if ask.required_node is not None:
        yield "/ask/required_node", ask.required_node
    for i, name in enumerate(ask.feasible_nodes or ()):
        yield pointer("ask", "feasible_nodes", i), name
    for i, task in enumerate(ask.tasks):
        for what in ("required_node", "node"):
            name = getattr(task, what)
            if name is not None:
                yield pointer("ask", "tasks", i, what), name


def _inside(where: str) -> str:
    """A pointer of a request with one ask, as one into the job."""
    return "/ask" + where.removeprefix("/asks/0") if where.startswith("/asks/0") else "/ask"
