"""A request to its answer, bytes in and bytes out, with nothing of the service around it.

Decode, find the configuration, compile, solve, encode. What the host must supply comes in as arguments: the
instant that stands for ``now`` where the request gives none, and where stored documents are found. So the
same call serves the HTTP service, the command line, a replay and a worker process alike.
"""

import re
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import repeat
from operator import attrgetter
from time import perf_counter
from typing import Any, Literal

import msgspec
from msgspec.structs import force_setattr

from app.answering.sources import Sources
from app.base import ticket
from app.base.decoding import REFUSALS, decode, decode_at_once
from app.base.ticket import release_later
from app.solver import solve
from app.solver.model.base import Time, micros
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Answer, ConfigurationUsed, planned
from app.solver.model.problems import Finding, InvalidInput, Problem, carried
from app.solver.model.request import (
    DecisionRequest,
    EffectiveSettingsRequest,
    Explain,
    PreemptibilityRequest,
    SharesRequest,
    StateOrReference,
)
from app.solver.model.state import Ask, Task, Workload
from app.solver.question import ProtectionQuestion, Question
from app.solver.solve import Configured, Loaded

_LARGE = 1 << 18
_SAMPLE = 1 << 17
_TASKS = re.compile(rb'"tasks"\s{0,9}:\s{0,9}(\[[^\]]{0,999}\])')  # bounded: whoever sends it chooses the text
_tasks = attrgetter("tasks")
_decoder = msgspec.json.Decoder(list[Task])


class _Workload(Workload, frozen=True, kw_only=True):
    """A workload whose tasks are looked at last: raw while the body is decoded, then the list that they share."""

    tasks: msgspec.Raw = msgspec.field(default_factory=list)  # pyright: ignore


class _State(StateOrReference, frozen=True, kw_only=True):
    workloads: list[_Workload] = []  # pyright: ignore[reportIncompatibleVariableOverride]


class _Request(DecisionRequest, frozen=True, kw_only=True):
    state: _State


def decode_request(body: bytes) -> DecisionRequest:
    """``body`` as a decision request. Raises what ``decode`` does, whichever way it is read.

    A cluster runs fifty thousand workloads of a few hundred shapes. Where workloads mostly repeat a few lists of tasks,
    each list that is alike to the byte is made once, and all of them hold it: a third less to decode, half as much
    memory, and whoever compiles the state sees by identity what is alike.
    """
    if len(body) >= _LARGE and tasks_repeat(body):
        request = decode_at_once(body, _Request)
        if request is not None and _share(request.state.workloads):
            return request
    return decode(body, DecisionRequest)


def tasks_repeat(body: bytes) -> bool:
    """Whether lists of tasks in the middle of ``body`` repeat. Only speed depends on it: a thousand lists in fifty
    thousand workloads are seen twice in a sample as often as not."""
    middle = len(body) // 2
    sample = _TASKS.findall(body, max(0, middle - _SAMPLE), middle + _SAMPLE)
    return 0 < 5 * len(set(sample)) <= 4 * len(sample)


class _Lists(dict[bytes, list[Task]]):
    """Lists of tasks by their JSON, each decoded when it is first asked for."""

    def __missing__(self, raw: bytes) -> list[Task]:
        tasks = self[raw] = _decoder.decode(raw or b"[]")
        return tasks


def _share(workloads: list[_Workload]) -> bool:
    """Put lists where the raw tasks are (``bytes`` of the empty list that stands for none is empty). False where some
    are not tasks; then ``workloads`` are of no use any more."""
    lists = map(_Lists().__getitem__, map(bytes, map(_tasks, workloads)))
    try:
        deque(map(force_setattr, workloads, repeat("tasks"), lists), maxlen=0)
    except REFUSALS:
        return False
    return True


Stage = Literal["decode", "compile", "solve", "encode"]

_NO_CONFIGURATION = "missing field: only a decision on a snapshot can do without it, and means the snapshot's own"
_NOT_KEPT = "`pending` means what waits beside a snapshot: name one in `state`"
PENDING = "pending"
_ENCODER = msgspec.json.Encoder(order="deterministic")


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the log and the metrics keep of an answer beside its bytes."""

    now: int
    engine: str
    release: str | None = None
    configuration: ConfigurationUsed
    state_digest: str
    asks: list[str]
    outcomes: list[str]
    reasons: list[str]
    evicted: list[str]
    victims: dict[str, int]
    queues: list[str] = []
    """Of the asks and of what is evicted."""
    workloads: list[str] = []
    """The one that each ask belongs to."""
    snapshot: str = ""
    spared: list[str] = []
    """Whom another scheduler would have evicted, and may not."""
    evictions: list[tuple[str, str]] = []
    """Who evicts whom: the workload that an eviction is for, and the one that is stopped."""
    stops: list[tuple[str, str, str, int]] = []
    """The queue of an ask, that of what is stopped for it, the reason, and how often; the first one empty where it is
    for no ask."""
    pods: list[str] = []
    """`namespace/name` of the pod that the guard was asked for, and of those that kube-scheduler would have evicted."""
    effect: str = ""
    """What the guard makes of what kube-scheduler would do without it; empty: nobody asked the guard."""
    pending: bytes = b""
    """The asks as JSON, where the request only said that those beside the snapshot are meant."""


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of an answer without ``id`` and ``stats``, which are the only parts that may differ between runs."""

    body: bytes
    facts: Facts
    seconds: dict[str, float]


class Stopwatch:
    """Seconds by stage, in the order in which the stages ran."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._listening = ticket.listener()

    @contextmanager
    def stage(self, name: Stage) -> Generator[None]:
        """Time what runs inside; a stage that runs twice adds up."""
        begun = perf_counter()
        try:
            if self._listening is None:
                yield
            else:
                with ticket.stage(name):
                    yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - begun


def stats_of(seconds: dict[str, float]) -> dict[str, float]:
    """``stats`` as answers show them: milliseconds by stage."""
    return {f"{stage}_ms": round(spent * 1000, 3) for stage, spent in seconds.items()}


def answer(body: bytes, now: Time, sources: Sources, explain: Explain | None = None) -> Answered:
    """``POST /v1/decisions``. ``now`` fills in for the request, ``explain`` overrules it. Raises InvalidInput."""
    return answered_on(body, now, sources, explain)[0]


def answered_on(
    body: bytes, now: Time, sources: Sources, explain: Explain | None = None,
    called: Callable[[Loaded], Loaded] | None = None,
) -> tuple[Answered, Loaded, bool]:  # fmt: skip
    """The answer, what was decided on, and whether the configuration is its own, for the request names none.
    ``called``: calls it by another name."""
    watch = Stopwatch()
    with watch.stage("decode"):
        request = decode_request(body)
    moment = micros(request.now or now)
    with watch.stage("compile"):
        loaded = load(request.configuration, request.engine, request.state, sources)
        loaded = loaded if called is None else called(loaded)
    with watch.stage("solve"):
        asks = asks_of(request.asks, loaded)
        question = Question(moment, asks, request.mode, request.options, explain or request.explain, request.proposals)
        result = solve.decide(loaded, question)
    with watch.stage("encode"):
        encoded = encode(result)
    release_later(request, loaded)
    facts = facts_of(result, moment, asks, encode(asks) if request.asks == PENDING else b"")
    return Answered(body=encoded, facts=facts, seconds=watch.seconds), loaded, request.configuration is None


def shares(body: bytes, now: Time, sources: Sources) -> bytes:
    """``POST /v1/shares``. Raises InvalidInput."""
    request = decode(body, SharesRequest)
    loaded = load(request.configuration, request.engine, request.state, sources)
    moment = micros(request.now or now)
    asks = asks_of(request.asks, loaded)
    return _described(loaded.configured, loaded.findings, solve.shares(loaded, asks, moment, request.options))


def preemptibility(body: bytes, now: Time, sources: Sources) -> bytes:
    """``POST /v1/preemptibility``. Raises InvalidInput."""
    request = decode(body, PreemptibilityRequest)
    loaded = load(request.configuration, request.engine, request.state, sources)
    moment = micros(request.now or now)
    question = ProtectionQuestion(moment, request.asks, request.ask, request.action, request.evict)
    return _described(loaded.configured, loaded.findings, solve.preemptibility(loaded, question))


def effective_settings(body: bytes, sources: Sources) -> bytes:
    """``POST /v1/effective-settings``: independent of time. Raises InvalidInput."""
    request = decode(body, EffectiveSettingsRequest)
    state = request.state
    configured = configure(request.configuration, request.engine, sources, state)
    if state is not None and state.snapshot is not None:
        state = sources.loaded(configured, state.snapshot).state
    findings = carried(configured.configuration.findings, () if state is None else state.findings)
    return _described(configured, findings, solve.effective_settings(configured, state))


def configure(
    document: str | Configuration | None, engine: str | None, sources: Sources, state: StateOrReference | None = None
) -> Configured:
    """The configuration of a request, given by name or in full; without one, that of the snapshot which it names."""
    if document is None:
        if state is None or state.snapshot is None:
            raise InvalidInput([Problem(pointer="/configuration", detail=_NO_CONFIGURATION)])
        return sources.own(state.snapshot, engine)
    if isinstance(document, str):
        return sources.configurations.named(document, engine)
    return sources.configurations.written(document, engine)


def load(document: str | Configuration | None, engine: str | None, state: StateOrReference, sources: Sources) -> Loaded:
    """The state of a request, compiled against its configuration."""
    configured = configure(document, engine, sources, state)
    if state.snapshot is not None:
        return sources.loaded(configured, state.snapshot)
    return solve.load(configured, state)


def asks_of(asks: list[Ask] | Literal["pending"], loaded: Loaded) -> list[Ask]:
    """The asks of a request, or those that wait beside the snapshot. Raises InvalidInput where there is none."""
    if isinstance(asks, list):
        return asks
    if loaded.snapshot is None:
        raise InvalidInput([Problem(pointer="/asks", detail=_NOT_KEPT)])
    return loaded.beside.asks


def encode(document: object) -> bytes:
    """JSON bytes; keys of maps in sorted order, so that the order of a request's objects never shows."""
    return _ENCODER.encode(document)


def facts_of(result: Answer, now: int, asks: list[Ask], pending: bytes = b"") -> Facts:
    """What the log and the metrics keep. ``reasons``: of the ask's first condition, empty where it has none."""
    evicted: dict[str, None] = {}
    owners = {ask.id: ask.workload or ask.id for ask in asks}
    asking = {ask.id: ask.queue for ask in asks}
    stops: dict[tuple[str, str, str], int] = {}
    pairs: dict[tuple[str, str], None] = {}
    queues = dict.fromkeys(ask.queue for ask in asks)
    victims: dict[str, int] = {}
    for eviction in planned(result):
        evicted[eviction.workload] = None
        queues[eviction.queue] = None
        by = owners.get(eviction.for_ask or "")
        if by is not None and by != eviction.workload:
            pairs[by, eviction.workload] = None
        victims[eviction.reason] = victims.get(eviction.reason, 0) + 1
        met = (asking.get(eviction.for_ask or "", ""), eviction.queue, eviction.reason)
        stops[met] = stops.get(met, 0) + 1
    return Facts(
        now=now,
        engine=result.engine,
        release=result.release,
        configuration=result.configuration,
        state_digest=result.state.digest,
        asks=[decision.ask for decision in result.decisions],
        outcomes=[decision.outcome for decision in result.decisions],
        reasons=[decision.conditions[0].reason if decision.conditions else "" for decision in result.decisions],
        evicted=list(evicted),
        victims=victims,
        queues=list(queues),
        workloads=[ask.workload or ask.id for ask in asks],
        spared=_spared(result),
        snapshot=result.state.snapshot or "",
        evictions=list(pairs),
        stops=[(*met, times) for met, times in stops.items()],
        pending=pending,
    )


def _spared(result: Answer) -> list[str]:
    refused = (refusal.workload for verdict in result.proposals or () for refusal in verdict.refusals)
    return list(dict.fromkeys(refused))


def _described(configured: Configured, findings: list[Finding] | None, fields: dict[str, Any]) -> bytes:
    beside = {} if findings is None else {"findings": findings}
    own = {"engine": configured.engine.name}
    if configured.release is not None:
        own["release"] = configured.release
    return encode({**own, "configuration": configured.used, **fields, **beside})
