"""``arbiter why`` and ``arbiter next``: what became of one workload, and who is next, in files or in a cluster that is
followed; and what ``arbiter plan --cluster NAME`` needs.
"""

import json as documents
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from app.answering.snapshots import FollowedAge
from app.answering.sources import nothing_stored
from app.base.decoding import decode
from app.cli import output
from app.cli.configuration import OURS, Remote
from app.cli.manifests import Otherwise, as_request, failed
from app.cli.offline import Json, Situation
from app.cli.output import BAD_INPUT, CANNOT, EVICTS, NOTHING, Files, complain, gathered, noticed, say, table, tried
from app.cli.remote import ApiError, Service, got, guarded, posted, segment
from app.solver.model.decision import Answer, planned
from app.solver.model.problems import Finding, InvalidInput, Problem
from app.studies.exposing import expose
from app.studies.exposure_schemas import Exposure, ExposureOutcome, ExposureRequest, Exposures

_NAMED = 10
_EVICTIONS = 5
_DRAWN = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_WORKS = ("Workload", "Pod", "PodGroup")
_BESIDE = ("local_queues", "priority_classes", "workload_priority_classes")


Followed = Annotated[
    str | None, Parameter(env_var="ARBITER_CLUSTER", help="The cluster; without it the only one that is followed.")
]


def why(workload: str, /, *, cluster: Followed = None, remote: Remote = OURS, json: Json = False) -> int:
    """Why does it wait, what protects it, why was it evicted? WORKLOAD is one of a followed cluster, or a Job, JobSet,
    PodGroup or pod of one: `namespace/name`, or the name.

    Exit code 0: it runs, or would now, 1: others would have to stop, 2: it has to wait, 3: there is no such workload.
    """
    service = remote.service
    return guarded(lambda: _why(workload, followed(service, cluster), service, json=json), workload)


def planned_at(cluster: dict[str, Any]) -> dict[str, Any]:
    """The part of a plan's request that says what a followed cluster is."""
    newest = min(cluster["followers"], key=lambda follower: follower["age_seconds"])
    beside = {key: newest[key] for key in _BESIDE if key in newest}
    return {"state": {"snapshot": cluster["snapshot"]}, "asks": "pending", **beside}


def _why(workload: str, cluster: dict[str, Any], service: Service, *, json: bool) -> int:
    _warn(cluster)
    address = f"/v1/snapshots/{segment(cluster['snapshot'])}"
    state = {"snapshot": cluster["snapshot"]}
    waiting = named(workload, got(service, f"{address}/asks")["items"])
    if waiting is not None:
        body = {"state": state, "asks": [waiting], "explain": "summary"}
        code = _printed(posted(service, "/v1/decisions", body), json=json)
        if not json:
            _history(evictions(service, cluster["name"], waiting["id"]))
        return code
    running = named(workload, got(service, f"{address}/state").get("workloads", []))
    if running is None:
        past = evictions(service, cluster["name"], workload)
        if not past:
            why = left_out(workload, cluster) or f"no such workload in cluster {cluster['name']!r}"
            raise InvalidInput([Problem(pointer="", detail=why)])
        if json:
            say(documents.dumps({"evictions": past}))
        else:
            say(f"{workload}: neither waits nor runs")
            _history(past)
        return NOTHING
    answer = documents.loads(posted(service, "/v1/preemptibility", {"state": state}))
    noticed(msgspec.convert(answer.get("findings", []), list[Finding]))
    protection = answer["workloads"][running["id"]]
    past = evictions(service, cluster["name"], running["id"])
    if json:
        release = {key: answer[key] for key in ("engine", "release") if key in answer}
        say(documents.dumps({**release, "workload": running, "protection": protection, "evictions": past}))
        return NOTHING
    if answer.get("release") is not None:
        say(f"by the rules of {output.rules_of(answer['engine'], answer['release'])}")
    since = f" since {running['started_at']}" if "started_at" in running else ""
    say(f"{running['id']}: runs in {running['queue']}{since}, priority {running.get('priority', 0)}")
    said = protection.get("reason") or ""
    say(f"  {'may be preempted' if protection.get('preemptible') else 'protected'}{f': {said}' if said else ''}")
    _history(past)
    return NOTHING


def left_out(wanted: str, cluster: dict[str, Any]) -> str | None:
    """What the followers of a cluster say of work that they could not carry over; None: of that they say nothing."""
    said = [finding for follower in cluster["followers"] for finding in follower.get("findings", ())]
    works: dict[str, dict[str, Any]] = {}
    for finding in said:
        _, kind, space, name, *_ = [*finding["pointer"].split("/"), "", "", "", ""]
        if kind in _WORKS:
            works.setdefault(f"{space}/{name}", {"id": f"{space}/{name}", "detail": finding["detail"]})
    work = named(wanted, list(works.values()))
    return None if work is None else f"{work['id']}: {work['detail']}"


def evictions(service: Service, cluster: str, name: str) -> list[dict[str, Any]]:
    """The last evictions of a workload, or of a job of that name. None where the service is too old to keep them."""
    for kind in ("workload", "job"):
        reply = service.get(f"/v1/clusters/{segment(cluster)}/evictions?limit={_EVICTIONS}&{kind}={segment(name)}")
        if reply.status != HTTPStatus.NOT_FOUND and (listed := reply.done().json()["items"]):
            return listed
    return []


def _history(past: list[dict[str, Any]]) -> None:
    for eviction in past:
        say(f"  {happened(eviction)}")


def happened(eviction: dict[str, Any]) -> str:
    """By whom, by which rule, when, and whether Arbiter would have done the same, in one line."""
    words = {"agreed": "Arbiter agrees", "agreed_earlier": "Arbiter agrees", "differs": "Arbiter would not"}
    task = f" ({eviction['task']})" if "task" in eviction else ""
    by = f" for {eviction['by']}" if "by" in eviction else ""
    why = f", {eviction['reason']}" if eviction.get("reason") else ""
    judged = f"; {words[eviction['outcome']]}" if eviction.get("outcome") in words else ""
    return f"evicted {eviction['at']}{task}{by}{why}{judged}"


def _warn(cluster: dict[str, Any]) -> None:
    """Of answers that may be about a cluster that is no more."""
    warned(FollowedAge.of(cluster["name"], cluster.get("age_seconds") or 0.0))


def warned(followed: FollowedAge | None) -> None:
    """The same of an answer about a snapshot that follows a cluster."""
    if followed is not None and followed.warning is not None:
        complain(followed.warning)


def _printed(body: bytes, *, json: bool) -> int:
    fields: dict[str, Any] = documents.loads(body)
    # Of an answer the service says more than an engine: its id, its times, how old what was followed is.
    result = msgspec.convert({name: fields[name] for name in Answer.__struct_fields__ if name in fields}, Answer)
    noticed(result.findings or ())
    if json:
        say(body.decode())
    else:
        output.answer(result, why=True)
    if planned(result):
        return EVICTS
    return CANNOT if any(d.outcome in ("wait", "infeasible") for d in result.decisions) else NOTHING


def followed(service: Service, name: str | None) -> dict[str, Any]:
    """A cluster that is followed. Raises InvalidInput where it is not clear which is meant, ApiError, Unreachable."""
    if name is not None:
        return got(service, f"/v1/clusters/{segment(name)}")
    clusters: list[dict[str, Any]] = got(service, "/v1/clusters")["items"]
    if len(clusters) == 1:
        return clusters[0]
    names = ", ".join(cluster["name"] for cluster in clusters) or "none"
    raise InvalidInput([Problem(pointer="", detail=f"which cluster? say --cluster; followed: {names}")])


def named(wanted: str, works: list[dict[str, Any]]) -> dict[str, Any] | None:
    """By its id, by its name, by the name of what owns it, or by that of one of its pods. Raises InvalidInput where the
    name fits several."""
    space, _, name = wanted.rpartition("/")
    there = [work for work in works if not space or work["id"].rpartition("/")[0] in (space, "")]
    fitting = next(
        filter(None, (
            [work for work in works if work["id"] == wanted],
            [work for work in works if work["id"].rpartition("/")[2] == wanted],
            [work for work in there if _owned(work, name)],
            [work for work in works if any(t["name"] in (wanted, name) for t in work.get("tasks", ()))],
            [work for work in there if any(_owned(work, owner) for owner in _owners(name))],
            [work for work in there if any(_made_by(pod, name) for pod in _pods(work))],
        )),
        list[dict[str, Any]](),
    )  # fmt: skip
    if len(fitting) > 1:
        names = ", ".join(work["id"] for work in fitting[:_NAMED])
        raise InvalidInput([Problem(pointer="", detail=f"several have that name: {names}")])
    return fitting[0] if fitting else None


def _owned(work: dict[str, Any], name: str) -> bool:
    """Whether its own name is one that is made of its owner's: Kueue's of kind, name and a hash
    (GetWorkloadNameForOwner), KAI's of name and UID (pod grouper)."""
    own = work["id"].rpartition("/")[2]
    return (
        re.fullmatch(rf"[a-z]+-{re.escape(name)}-[0-9a-f]{{5}}|pg-{re.escape(name)}-[0-9a-f-]{{36}}", own) is not None
    )


def _pods(work: dict[str, Any]) -> list[str]:
    """What its pods are called, and it itself, which may be one."""
    return [name.rpartition("/")[2] for name in (work["id"], *(task["name"] for task in work.get("tasks", ())))]


def _made_by(pod: str, name: str) -> bool:
    """Whether a Job, JobSet or the like of that name calls its pods so: with indices, and five letters that Kubernetes
    draws (names.SimpleNameGenerator)."""
    return (
        re.fullmatch(rf"{re.escape(name)}-(([a-z0-9.-]+-)?[0-9]+|(([a-z0-9.-]+-)?[0-9]+-)?{_DRAWN})", pod) is not None
    )


def _owners(pod: str) -> list[str]:
    """What a Job, JobSet or the like may be called whose pod has that name, the longest first."""
    parts = pod.split("-")
    return ["-".join(parts[:size]) for size in range(len(parts) - 1, 0, -1)]


_EVERY_SECONDS = 0.5
_FIELDS = ("engine", "now", "configuration", "state", "asks")


def who_is_next(  # noqa: PLR0913 - as many as it has options
    file: Situation = "-",
    /,
    *,
    files: Files = None,
    configuration: Annotated[
        str | None,
        Parameter(help="The configuration, in place of the one that is said: a file, or the name of a stored one."),
    ] = None,
    snapshot: Annotated[
        str | None, Parameter(help="A snapshot that the service at --url keeps, in place of files.")
    ] = None,
    queue: Annotated[str | None, Parameter(help="Only work of this queue and of those below it.")] = None,
    cluster: Followed = None,
    remote: Remote = OURS,
    json: Json = False,
) -> int:
    """Who is next? Of every running workload what would evict it, now and next, and what keeps it.

    FILE is a request or a manifest, as `arbiter decide` takes it. With --snapshot, or --cluster, the service is asked.

    Exit code 0: what waits evicts nobody, 1: it does, 3: bad input.
    """
    wanted = {"queue": queue}
    named = snapshot or cluster
    if named is not None:
        service = remote.service
        body = {**wanted, "state": {"snapshot": named}, "asks": "pending"}

        def ask() -> int:
            job, outcome = exposures(service, body)
            warned(job.followed)
            noticed(outcome.findings or ())
            return _shown(outcome, json=json)

        return guarded(ask, named)

    otherwise = Otherwise(configuration=configuration, remote=remote)

    def act() -> int:
        situation = as_request(gathered(file, files), otherwise)
        given: dict[str, Any] = msgspec.json.decode(situation.body)
        asked = {**wanted, "now": datetime.now(UTC), **{name: given[name] for name in _FIELDS if name in given}}
        request = decode(msgspec.json.encode(asked), ExposureRequest)
        outcome = expose(request, nothing_stored().configurations, lambda: False, lambda _: None)
        noticed(finding for finding in outcome.findings or () if finding not in situation.findings)
        code = _shown(outcome, json=json)
        return BAD_INPUT if failed([*situation.findings, *(outcome.findings or ())]) else code

    return tried(file, act)


def exposures(
    service: Service, body: dict[str, Any], waits: Callable[[Exposures], None] = lambda _: None
) -> tuple[Exposures, ExposureOutcome]:
    """The answer to ``POST /v1/exposures``. ``waits`` is called until there is one, and raises where nobody waits any
    more: the question is stopped then. Raises ApiError, Unreachable, InvalidInput: there is no answer."""
    job = msgspec.json.decode(posted(service, "/v1/exposures", body), type=Exposures)
    where = f"/v1/exposures/{job.id}"
    try:
        while job.status in ("queued", "running"):
            waits(job)
            time.sleep(_EVERY_SECONDS)
            reply = service.get(where)
            if reply.ok:
                job = msgspec.json.decode(reply.body, type=Exposures)
            elif reply.status == HTTPStatus.NOT_FOUND:
                raise InvalidInput([Problem(pointer="", detail="the question was stopped")])
            elif reply.status < HTTPStatus.INTERNAL_SERVER_ERROR and reply.status != HTTPStatus.TOO_MANY_REQUESTS:
                raise ApiError(reply)
    except BaseException:
        service.delete(where, {})
        raise
    if job.outcome is None:
        raise InvalidInput([Problem(pointer="", detail=job.error or job.status)])
    return job, job.outcome


def _shown(outcome: ExposureOutcome, *, json: bool) -> int:
    if json:
        say(msgspec.json.encode(outcome, order="deterministic").decode())
    else:
        _lines(outcome)
    return EVICTS if any(exposure.standing == "now" for exposure in outcome.exposures) else NOTHING


def _lines(outcome: ExposureOutcome) -> None:
    rules = output.rules_of(outcome.engine, outcome.release)
    say(f"{len(outcome.exposures)} run, {len(outcome.order)} wait; rules of {rules}")
    if outcome.exposures:
        say("who is next:")
        table(
            ("", "workload", "queue", "priority", "what would stop it"),
            [
                (exposure.standing, exposure.workload, exposure.queue, str(exposure.priority), stopped_by(exposure))
                for exposure in outcome.exposures
            ],
        )
    if outcome.order:
        say("what goes next:")
        table(
            ("", "ask", "queue", "stops"),
            [
                ("–" if start.round is None else f"round {start.round}", start.ask, start.queue,
                 ", ".join(start.evicts) or start.message or start.reason)
                for start in outcome.order
            ],
        )  # fmt: skip
    if not outcome.complete:
        say("cut short by its bounds: POST /v1/exposures takes larger ones")


def stopped_by(exposure: Exposure) -> str:
    """What would stop it, or what keeps it, in a few words."""
    if exposure.now is not None:
        return f"{exposure.now.ask}, in round {exposure.now.round} ({exposure.now.rule})"
    if exposure.next is not None:
        task = exposure.next.ask.tasks[0]
        asks = ", ".join(f"{value} {resource}" for resource, value in task.requests.items())
        before = f", after {exposure.next.before} others" if exposure.next.before else ""
        of = f"{exposure.next.units} × {asks}"
        return (
            f"{of} from {exposure.next.ask.queue} at priority {exposure.next.priority}{before} ({exposure.next.rule})"
        )
    if exposure.protection is None:
        return "nothing that was tried"
    until = "" if exposure.protection.until is None else f" until {exposure.protection.until:%Y-%m-%d %H:%M:%S}"
    return f"{exposure.protection.message or exposure.protection.reason}{until if exposure.standing == 'safe' else ''}"
