"""``arbiter next``: of all that runs, who is next, and in which order what waits would go."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from app.answering.operations import nothing_stored
from app.base.decoding import decode
from app.cli.live import Live, Refused, posted, warned
from app.cli.manifests import Otherwise, Remote, as_request, failed
from app.cli.offline import Json, Situation
from app.cli.output import BAD_INPUT, EVICTS, NOTHING, Files, gathered, noticed, say, table, tried
from app.cli.remote import Service, guarded, refused
from app.solver.model.problems import InvalidInput, Problem
from app.studies.exposing import expose
from app.studies.exposure_schemas import Exposure, ExposureOutcome, ExposureRequest, Exposures

_EVERY_SECONDS = 0.5
_FIELDS = ("engine", "now", "configuration", "state", "asks")
_NOBODY = Live()


def next(  # noqa: A001
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
    live: Live = _NOBODY,
    json: Json = False,
) -> int:
    """Who is next? Of every running workload what would evict it, now and next, and what keeps it.

    FILE is a request or a manifest, as `arbiter decide` takes it. With --snapshot, or --cluster, the service is asked.

    Exit code 0: what waits evicts nobody, 1: it does, 3: bad input.
    """
    wanted = {"queue": queue}
    named = snapshot or live.cluster
    if named is not None:
        service = Service(live.url, live.token)
        body = {**wanted, "state": {"snapshot": named}, "asks": "pending"}

        def ask() -> int:
            try:
                found, outcome = exposures(service, body)
            except Refused as refusal:
                return refused(named, refusal.reply)
            warned(found.followed)
            noticed(outcome.findings or ())
            return _told(outcome, json=json)

        return guarded(ask, named)

    otherwise = Otherwise(configuration=configuration, remote=Remote(url=live.url, token=live.token))

    def act() -> int:
        found = as_request(gathered(file, files), otherwise)
        given: dict[str, Any] = msgspec.json.decode(found.body)
        asked = {**wanted, "now": datetime.now(UTC), **{name: given[name] for name in _FIELDS if name in given}}
        request = decode(msgspec.json.encode(asked), ExposureRequest)
        outcome = expose(request, nothing_stored().configurations, lambda: False, lambda _: None)
        noticed(one for one in outcome.findings or () if one not in found.findings)
        code = _told(outcome, json=json)
        return BAD_INPUT if failed([*found.findings, *(outcome.findings or ())]) else code

    return tried(file, act)


def exposures(
    service: Service, body: dict[str, Any], waits: Callable[[Exposures], None] = lambda _: None
) -> tuple[Exposures, ExposureOutcome]:
    """The answer to ``POST /v1/exposures``. ``waits`` is called until there is one, and raises where nobody waits any
    more: the question is stopped then. Raises Refused, Unreachable, InvalidInput: there is no answer."""
    found = msgspec.json.decode(posted(service, "/v1/exposures", body), type=Exposures)
    where = f"/v1/exposures/{found.id}"
    try:
        while found.status in ("queued", "running"):
            waits(found)
            time.sleep(_EVERY_SECONDS)
            reply = service.get(where)
            if reply.ok:
                found = msgspec.json.decode(reply.body, type=Exposures)
            elif reply.status == HTTPStatus.NOT_FOUND:
                raise InvalidInput([Problem(pointer="", detail="the question was stopped")])
            elif reply.status < HTTPStatus.INTERNAL_SERVER_ERROR and reply.status != HTTPStatus.TOO_MANY_REQUESTS:
                raise Refused(reply)
    except BaseException:
        service.delete(where, {})
        raise
    if found.outcome is None:
        raise InvalidInput([Problem(pointer="", detail=found.error or found.status)])
    return found, found.outcome


def _told(outcome: ExposureOutcome, *, json: bool) -> int:
    if json:
        say(msgspec.json.encode(outcome, order="deterministic").decode())
    else:
        _lines(outcome)
    return EVICTS if any(one.standing == "now" for one in outcome.exposures) else NOTHING


def _lines(outcome: ExposureOutcome) -> None:
    say(f"{len(outcome.exposures)} run, {len(outcome.order)} wait; rules of {outcome.engine}")
    if outcome.exposures:
        say("who is next:")
        table(
            ("", "workload", "queue", "priority", "what would stop it"),
            [(one.standing, one.workload, one.queue, str(one.priority), stopped_by(one)) for one in outcome.exposures],
        )
    if outcome.order:
        say("what goes next:")
        table(
            ("", "ask", "queue", "stops"),
            [
                ("–" if start.round is None else f"round {start.round}", start.ask, start.queue,
                 ", ".join(start.evicts) or start.reason)
                for start in outcome.order
            ],
        )  # fmt: skip
    if not outcome.complete:
        say("cut short by its bounds: POST /v1/exposures takes larger ones")


def stopped_by(one: Exposure) -> str:
    """What would stop it, or what keeps it, in a few words."""
    if one.now is not None:
        return f"{one.now.ask}, in round {one.now.round} ({one.now.rule})"
    if one.next is not None:
        task = one.next.ask.tasks[0]
        asks = ", ".join(f"{value} {resource}" for resource, value in task.requests.items())
        before = f", after {one.next.before} others" if one.next.before else ""
        of = f"{one.next.units} × {asks}"
        return f"{of} from {one.next.ask.queue} at priority {one.next.priority}{before} ({one.next.rule})"
    if one.protection is None:
        return "nothing that was tried"
    until = "" if one.protection.until is None else f" until {one.protection.until:%Y-%m-%d %H:%M:%S}"
    return f"{one.protection.message or one.protection.reason}{until if one.standing == 'safe' else ''}"
