"""``POST /v1/plans``: the manifest of work that does not run yet to what would become of it, and of the queues."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from app.answering.answers import Stopwatch, encode, stats_of
from app.answering.plan_bodies import (
    PlanAnswer,
    PlannedWork,
    PlanRequest,
    QueueChange,
    ResourceChange,
    Settled,
    Situation,
    settle,
    situation,
    with_queues,
)
from app.answering.sources import Sources
from app.base.decoding import decode
from app.base.documents import Path
from app.formats.manifests import system_of
from app.formats.reader import Findings
from app.formats.work.read import Cluster, Planned, resource_names
from app.formats.ytsaurus.documents import read_any
from app.solver import solve
from app.solver.model import base
from app.solver.model.base import UNLIMITED, Quantity, Time, micros, parse_quantity, scale_of, units
from app.solver.model.configuration import Queue, Quota, quotas
from app.solver.model.decision import Decision, Outcome
from app.solver.model.problems import Finding, InvalidInput, Problem, Unsupported, listed, pointing
from app.solver.model.request import Options
from app.solver.model.state import Ask
from app.solver.question import Question
from app.solver.solve import Loaded, asides

_SHARES = ("precise_share", "share", "dominant_usage_share")
_Shares = Mapping[str, dict[str, Any]]


def changes(
    loaded: Loaded, waiting: list[Ask], new: list[Ask], settled: Settled, now: int, options: Options
) -> list[QueueChange]:
    """The queues that use more or less in the end, and those that ``new`` asks for, in the order of the answer to a
    question for shares. ``waiting``: what waits besides."""
    before: _Shares = solve.shares(loaded, waiting, now, options)["queues"]
    after: _Shares = before
    if settled.after is not loaded:
        after = solve.shares(settled.after, settled.left, now, options)["queues"]
    asked: dict[str, set[str]] = {}
    for ask in new:
        asked.setdefault(ask.queue, set()).update(name for task in ask.tasks for name in task.requests)
    queues = {queue.name: queue for queue in loaded.configured.configuration.queues}
    changed = (_change(name, queues.get(name), before, after, asked.get(name, set())) for name in after)
    return [change for change in changed if change is not None]


def _change(name: str, queue: Queue | None, before: _Shares, after: _Shares, asked: set[str]) -> QueueChange | None:
    old, new = before.get(name, {}), after[name]
    used_before, used_after = old.get("usage", {}), new.get("usage", {})
    resources = sorted(
        r for r in {**used_before, **used_after} if r in asked or used_before.get(r, 0) != used_after.get(r, 0)
    )
    if not resources:
        return None
    share = next((key for key in _SHARES if key in old and key in new), None)
    return QueueChange(
        queue=name,
        resources={
            r: ResourceChange(
                guaranteed=_guaranteed(queue, r),
                limit=_limit(queue, r),
                used_before=used_before.get(r, 0),
                used_after=used_after.get(r, 0),
                fair_share_before=old.get("fair_share", {}).get(r),
                fair_share_after=new.get("fair_share", {}).get(r),
            )
            for r in resources
        },
        share_before=None if share is None else old[share],
        share_after=None if share is None else new[share],
    )


def _guaranteed(queue: Queue | None, resource: str) -> Quantity | None:
    """All flavors together; a flavor without a guarantee adds nothing."""
    listed = [quota.guaranteed for quota in _quotas(queue, resource) if quota.guaranteed is not None]
    return _total(listed, resource) if listed else None


def _limit(queue: Queue | None, resource: str) -> Quantity | None:
    """All flavors together; where one of them has no limit there is none."""
    listed = [quota.limit for quota in _quotas(queue, resource)]
    bounded = [limit for limit in listed if limit is not None]
    return _total(bounded, resource) if bounded and len(bounded) == len(listed) else None


def _quotas(queue: Queue | None, resource: str) -> list[Quota]:
    return [placed.quota for placed in (quotas(queue) if queue else ()) if _same(placed.resource, resource)]


def _same(name: str, other: str) -> bool:
    """Whether two names mean one resource: an engine that shows ``gpu`` counts what a queue calls
    ``nvidia.com/gpu``."""
    return name == other or (name.endswith("/gpu") and other == "gpu") or (other.endswith("/gpu") and name == "gpu")


def _total(given: list[Quantity], resource: str) -> Quantity:
    """The sum in whole units; ``unlimited`` where one of them is."""
    if UNLIMITED in given:
        return UNLIMITED
    return units(sum(parse_quantity(value, scale_of(resource)) for value in given), resource)


_MANIFEST = "/manifest"
_WORST: tuple[Outcome, ...] = ("admit", "preempt", "wait", "infeasible")


def plan(body: bytes, now: Time, sources: Sources) -> bytes:
    """``POST /v1/plans``. ``now`` fills in for the request. Raises InvalidInput, with pointers into the request."""
    watch = Stopwatch()
    with watch.stage("decode"):
        request = decode(body, PlanRequest)
        waited = _waited(request)
    with watch.stage("compile"):
        cluster = situation(request, sources)
        moment = request.now or (now if cluster.imported is None else cluster.imported.as_of(now))
        submitted = _before(moment, waited)
        findings = Findings()
        if bool(request.work) == (request.manifest is not None):
            raise InvalidInput([Problem(pointer="/manifest", detail="exactly one of `manifest` and `work` is given")])
        if request.work:
            planned = _given(request.work, cluster, submitted, micros(moment))
        else:
            planned = _planned(request, cluster, submitted, findings)
    new = [ask for job in planned for ask in job.asks]
    with watch.stage("solve"):
        question = Question(micros(moment), [], "cycle", request.options, request.explain)
        families = [[ask] for ask in cluster.asks] + [job.asks for job in planned]
        settled = settle(cluster.loaded, families, question)
        queues = changes(cluster.loaded, cluster.asks, new, settled, micros(moment), request.options)
    answer, by_ask = settled.answer, settled.decisions
    waiting, place = {ask.id for ask in cluster.asks}, {ask: i for i, ask in enumerate(settled.order)}
    before = [min(place[ask.id] for ask in job.asks) for job in planned]
    aside = asides(cluster.loaded.configured, [*cluster.asks, *new], micros(moment))
    tried = [ask for ask in settled.order if ask in waiting and ask not in aside]
    ahead = [
        [] if all(ask.id in aside for ask in job.asks) else [ask for ask in tried if place[ask] < position]
        for job, position in zip(planned, before, strict=True)
    ]
    work = [_described(job, by_ask, behind) for job, behind in zip(planned, ahead, strict=True)]
    reply = PlanAnswer(
        engine=answer.engine, release=answer.release, configuration=answer.configuration, state=answer.state,
        outcome=_worst(described.outcome for described in work), work=work, asks=new,
        decisions=[by_ask[ask.id] for ask in new], waiting=[by_ask[ask.id] for ask in cluster.asks], plan=answer.plan,
        queues=queues, findings=listed([*cluster.findings, *cluster.carried(), *_below(findings.all())]),
        stats=stats_of(watch.seconds),
    )  # fmt: skip
    return encode(reply)


def _waited(request: PlanRequest) -> timedelta:
    try:
        waited = base.parse_duration(request.waited)
    except base.DurationError as error:
        raise InvalidInput([Problem(pointer="/waited", detail=str(error))]) from None
    if not 0 <= waited <= 10**15:
        raise InvalidInput([Problem(pointer="/waited", detail="a time from 0 to 30 years is expected")])
    return timedelta(microseconds=waited)


def _before(moment: Time, waited: timedelta) -> datetime:
    try:
        return moment - waited
    except OverflowError:
        raise InvalidInput([Problem(pointer="/waited", detail="that is before the first year")]) from None


def _planned(request: PlanRequest, cluster: Situation, submitted: datetime, findings: Findings) -> list[Planned]:
    """The objects of the manifest with their asks; queues that they make are added to ``cluster``. Raises InvalidInput
    where nothing of it can be planned."""
    loaded = cluster.loaded
    around = Cluster(
        configuration=loaded.configured.configuration, beside=cluster.beside, findings=findings, created_at=submitted,
        queue=request.queue, taken={*loaded.index.workloads, *(ask.id for ask in cluster.asks)},
        running=set(loaded.index.workloads), counted=_counted(loaded),
    )  # fmt: skip
    documents = _documents(request)
    name = loaded.configured.engine.name
    system = system_of(name)
    if system is None or system.plan is None:
        detail = f"manifests are not planned for {name} yet: ask POST /v1/decisions"
        raise Unsupported([Problem(pointer="/engine", detail=detail)])
    works = [work for work in system.plan(documents, around, request.namespace) if work.asks]
    if not works:
        listed = _below(findings.all())
        errors = [f for f in listed if f.severity == "error"] or [f for f in listed if f.severity == "warning"]
        raise InvalidInput(
            [Problem(pointer=f.pointer, detail=f.detail) for f in errors]
            or [Problem(pointer=_MANIFEST, detail="there is nothing in it that starts pods")]
        )
    if around.dynamic:
        cluster.loaded = with_queues(loaded, around.dynamic)
    return works


def _given(work: list[Ask], cluster: Situation, submitted: datetime, now: int) -> list[Planned]:
    """Each ask as an object. Raises InvalidInput for what no decision would take."""
    taken = {*cluster.loaded.index.workloads, *(ask.id for ask in cluster.asks)}
    problems = [
        Problem(pointer=f"/work/{i}/id", detail=f"{ask.id!r} runs or waits already")
        for i, ask in enumerate(work)
        if ask.id in taken
    ]
    try:
        solve.shares(cluster.loaded, work, now)  # checks the asks as every question does
    except InvalidInput as invalid:
        problems += [
            Problem(pointer=f"/work{problem.pointer.removeprefix('/asks')}", detail=problem.detail)
            for problem in invalid.problems
        ]
    if problems:
        raise InvalidInput(problems)
    asks = (msgspec.structs.replace(ask, created_at=ask.created_at or submitted) for ask in work)
    return [Planned(f"ask {ask.id}", [ask]) for ask in asks]


def _counted(loaded: Loaded) -> set[str]:
    """The resources that queues or nodes have."""
    return resource_names(loaded.configured.configuration) | {r for node in loaded.state.nodes for r in node.capacity}


def _documents(request: PlanRequest) -> list[tuple[Path, object]]:
    manifest = request.manifest
    if isinstance(manifest, str):
        with pointing(lambda place: _MANIFEST + place):
            return list(read_any(manifest.encode()))
    return [((), manifest)]


def _below(findings: list[Finding]) -> list[Finding]:
    return [msgspec.structs.replace(finding, pointer=_MANIFEST + finding.pointer) for finding in findings]


def _described(planned: Planned, by_ask: dict[str, Decision], behind: list[str]) -> PlannedWork:
    asks = planned.asks
    tasks = [task for ask in asks for task in ask.tasks]
    steps: dict[str, int] = {}
    for task in tasks:
        for name, value in task.requests.items():
            steps[name] = steps.get(name, 0) + task.count * parse_quantity(value, scale_of(name))
    return PlannedWork(
        object=planned.title, queue=asks[0].queue, priority=asks[0].priority or 0,
        pods=sum(task.count for task in tasks), requests={name: units(value, name) for name, value in steps.items()},
        outcome=_worst(by_ask[ask.id].outcome for ask in asks), asks=[ask.id for ask in asks],
        behind=behind,
    )  # fmt: skip


def _worst(outcomes: Iterable[Outcome]) -> Outcome:
    return _WORST[max(map(_WORST.index, outcomes))]
