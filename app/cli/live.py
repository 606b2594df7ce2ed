"""Questions about clusters that are followed: ``arbiter why``, and what ``arbiter plan --cluster NAME`` needs."""

import json as documents
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from app.cli import report
from app.cli.configuration import DEFAULT_URL, Token, Url
from app.cli.offline import Json
from app.cli.output import CANNOT, EVICTS, NOTHING, say
from app.cli.remote import Reply, Service, guarded, refused, segment
from app.solver.model.decision import Answer, planned
from app.solver.model.problems import InvalidInput, Problem

_JSON = {"Content-Type": "application/json"}
_NAMED = 10


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Live:
    """A cluster that is followed, and the service that knows it."""

    cluster: Annotated[
        str | None, Parameter(env_var="ARBITER_CLUSTER", help="The cluster; without it the only one that is followed.")
    ] = None
    url: Url = DEFAULT_URL
    token: Token = None


_ONLY = Live()


class _Refused(Exception):
    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self.reply = reply


def why(workload: str, /, *, live: Live = _ONLY, json: Json = False) -> int:
    """Why does it wait, or what protects it? WORKLOAD is one of a followed cluster: `namespace/name`, or the name.

    Exit code 0: it runs, or would now, 1: others would have to stop, 2: it has to wait, 3: there is no such workload.
    """
    service = Service(live.url, live.token)

    def act() -> int:
        try:
            return _why(workload, _cluster(service, live.cluster), service, json=json)
        except _Refused as no:
            return refused(workload, no.reply)

    return guarded(act, workload)


def situation(service: Service, name: str) -> dict[str, Any] | Reply:
    """The part of a plan's request that says what the followed cluster ``name`` is, or why there is none."""
    reply = service.get(f"/v1/clusters/{segment(name)}")
    if not reply.ok:
        return reply
    found = reply.json()
    newest = min(found["followers"], key=lambda follower: follower["age_seconds"])
    beside = {key: newest[key] for key in ("local_queues", "priority_classes") if key in newest}
    return {"state": {"snapshot": found["snapshot"]}, "asks": "pending", **beside}


def _why(workload: str, cluster: dict[str, Any], service: Service, *, json: bool) -> int:
    at = f"/v1/snapshots/{segment(cluster['snapshot'])}"
    state = {"snapshot": cluster["snapshot"]}
    waiting = _named(workload, _got(service, f"{at}/asks")["items"])
    if waiting is not None:
        body = {"state": state, "asks": [waiting], "explain": "summary"}
        return _told(_posted(service, "/v1/decisions", body), json=json)
    running = _named(workload, _got(service, f"{at}/state").get("workloads", []))
    if running is None:
        raise InvalidInput([Problem(pointer="", detail=f"no such workload in cluster {cluster['name']!r}")])
    protection = documents.loads(_posted(service, "/v1/preemptibility", {"state": state}))["workloads"][running["id"]]
    if json:
        say(documents.dumps({"workload": running, "protection": protection}))
        return NOTHING
    since = f" since {running['started_at']}" if "started_at" in running else ""
    say(f"{running['id']}: runs in {running['queue']}{since}, priority {running.get('priority', 0)}")
    said = protection.get("reason") or ""
    say(f"  {'may be preempted' if protection.get('preemptible') else 'protected'}{f': {said}' if said else ''}")
    return NOTHING


def _told(body: bytes, *, json: bool) -> int:
    fields: dict[str, Any] = documents.loads(body)
    result = msgspec.convert({k: v for k, v in fields.items() if k not in ("id", "stats")}, Answer)
    if json:
        say(body.decode())
    else:
        report.answer(result, why=True)
    if planned(result):
        return EVICTS
    return CANNOT if any(d.outcome in ("wait", "infeasible") for d in result.decisions) else NOTHING


def _cluster(service: Service, name: str | None) -> dict[str, Any]:
    """Raises InvalidInput where it is not clear which one is meant."""
    if name is not None:
        return _got(service, f"/v1/clusters/{segment(name)}")
    found: list[dict[str, Any]] = _got(service, "/v1/clusters")["items"]
    if len(found) == 1:
        return found[0]
    names = ", ".join(one["name"] for one in found) or "none"
    raise InvalidInput([Problem(pointer="", detail=f"which cluster? say --cluster; followed: {names}")])


def _named(wanted: str, found: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Raises InvalidInput where the name fits several."""
    exact = [one for one in found if one["id"] == wanted]
    fitting = exact or [one for one in found if one["id"].rpartition("/")[2] == wanted]
    if len(fitting) > 1:
        names = ", ".join(one["id"] for one in fitting[:_NAMED])
        raise InvalidInput([Problem(pointer="", detail=f"several have that name: {names}")])
    return fitting[0] if fitting else None


def _got(service: Service, path: str) -> dict[str, Any]:
    reply = service.get(path)
    if not reply.ok:
        raise _Refused(reply)
    return reply.json()


def _posted(service: Service, path: str, body: dict[str, Any]) -> bytes:
    reply = service.post(path, _JSON, documents.dumps(body).encode())
    if not reply.ok:
        raise _Refused(reply)
    return reply.body
