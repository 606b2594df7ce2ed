"""``decide``, ``explain``, ``compare`` and ``starvation``: no server, no database, the same answers.

``compare`` shows one situation under several configurations, settings and engines; ``starvation`` how statuses and
starvation of YTsaurus' pools and operations move on over time.
"""

import json as documents
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

import msgspec
from cyclopts import Parameter

from app.answering.answers import answer, encode, shares
from app.answering.comparison import Comparison
from app.answering.comparison import compare as compare_variants
from app.answering.sources import nothing_stored
from app.base.errors import ArbiterError
from app.cli import output
from app.cli.manifests import AS_IT_SAYS, Otherwise, as_request, changed, failed, read_configuration, with_mode
from app.cli.manifests import Situation as Asking
from app.cli.output import (
    BAD_INPUT,
    CANNOT,
    EVICTS,
    NOTHING,
    Fields,
    Files,
    as_json,
    complain,
    fields_of,
    gathered,
    noticed,
    problems,
    read,
    say,
    table,
    tried,
)
from app.cli.remote import Service, guarded, segment
from app.solver.engine import engine_of
from app.solver.model.base import DurationError, parse_duration
from app.solver.model.configuration import EngineName
from app.solver.model.decision import Answer, planned
from app.solver.model.problems import Finding, InvalidInput, carried
from app.solver.model.request import Explain, Mode

T = TypeVar("T")

Json = Annotated[bool, Parameter(negative=(), help="Print the answer as JSON, for machines.")]
File = Annotated[
    str,
    Parameter(
        allow_leading_hyphen=True,
        help="The body of a request with its configuration written out; '-' reads standard input.",
    ),
]
Situation = Annotated[
    str,
    Parameter(
        allow_leading_hyphen=True,
        help="The body of a request with its configuration written out, or a manifest of objects as `kubectl get -o "
        "json` prints them; '-' reads standard input.",
    ),
]
AskedMode = Annotated[
    Mode | None,
    Parameter(
        help="cycle: one scheduling cycle over all asks; independent: each as if it were alone. Default: the request's "
        "own; without one, cycle for several asks."
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Logged:
    """A decision of a service, in place of files."""

    decision: Annotated[
        str | None, Parameter(help="The id of a logged decision of the service, in place of a file: why it was so.")
    ] = None


_FROM_FILES = Logged()


def decide(
    file: Situation = "-",
    /,
    *,
    files: Files = None,
    json: Json = False,
    mode: AskedMode = None,
    otherwise: Otherwise = AS_IT_SAYS,
) -> int:
    """Decide a request from a file: who would be evicted, and why.

    Exit code 0: nothing to evict, 1: somebody would be, 2: an ask can't run, 3: bad input, also where a manifest has an
    error and is answered without what is wrong.
    """
    return _situation(file, files, otherwise, lambda situation: _decided(situation, mode, None, json=json))


def explain(
    file: Situation = "-",
    /,
    *,
    json: Json = False,
    files: Files = None,
    full: Annotated[bool, Parameter(negative=(), help="Every candidate and step, not only groups of them.")] = False,
    mode: AskedMode = None,
    logged: Logged = _FROM_FILES,
    otherwise: Otherwise = AS_IT_SAYS,
) -> int:
    """Decide a request from a file and say how: each step, what became of each candidate, by which rule."""
    level: Explain = "full" if full else "summary"
    if logged.decision is not None:

        def again(body: bytes) -> int:
            return _decided(Asking(changed(body, otherwise), []), mode, level, json=json)

        return _logged(logged.decision, otherwise.remote.service, again)
    return _situation(file, files, otherwise, lambda situation: _decided(situation, mode, level, json=json))


def _logged(decision: str, service: Service, act: Callable[[bytes], int]) -> int:
    """``act`` on the request of a logged decision, with configuration, state and time as they were."""

    def asked() -> int:
        return act(service.get(f"/v1/decisions/{segment(decision)}/request?resolved=true").done().body)

    return guarded(asked, decision)


def _situation(file: str, files: list[str] | None, otherwise: Otherwise, act: Callable[[Asking], int]) -> int:
    """``act`` on what the files say together."""
    return guarded(lambda: act(as_request(gathered(file, files), otherwise)), file)


def _decided(situation: Asking, mode: Mode | None, level: Explain | None, *, json: bool) -> int:
    answered = answer(with_mode(situation.body, mode), datetime.now(UTC), nothing_stored(), level)
    result = msgspec.json.decode(answered.body, type=Answer)
    noticed(finding for finding in result.findings or () if finding not in situation.findings)
    result = msgspec.structs.replace(result, findings=carried(result.findings or (), situation.findings))
    if json:
        say(encode(result).decode())
    elif result.decisions or planned(result):
        output.answer(result, why=level is not None)
    else:
        say("nothing waits: there is no ask in it")
    if failed(result.findings or []):
        return BAD_INPUT
    if planned(result):
        return EVICTS
    return CANNOT if any(d.outcome in ("wait", "infeasible") for d in result.decisions) else NOTHING


_AS_IT_IS = "as it is"


def compare(
    file: Situation = "-",
    /,
    *,
    files: Files = None,
    configuration: Annotated[
        list[str] | None, Parameter(negative=(), help="A variant with the configuration of this file.")
    ] = None,
    engine: Annotated[
        list[EngineName] | None, Parameter(negative=(), help="A variant told in the words of this engine.")
    ] = None,
    release: Annotated[
        list[str] | None, Parameter(negative=(), help="A variant under this release of the engine's rules.")
    ] = None,
    set: Fields = None,  # noqa: A002
    json: Json = False,
) -> int:
    """Decide a situation under several variants, and show where the answers differ.

    Variants are those of the request, and with the options one each beside the situation as it is; all fields of
    --set together are one. Releases stand for themselves: with two of them, one is compared with the other.

    Exit code 0: all variants agree, 1: they differ, 3: bad input, or a variant is refused.
    """

    def act() -> int:
        added, findings = _variants(configuration or [], engine or [], set or [])
        situation = as_request(gathered(file, files))
        body = _with_variants(with_mode(situation.body, None), added, release or [])
        return _compared(body, [*situation.findings, *findings], json=json)

    return tried(file, act)


def _with_variants(body: bytes, added: list[dict[str, Any]], releases: list[str]) -> bytes:
    """The request in ``body`` with more variants. What is no request stays as it is, for whoever decodes it to say
    so."""
    try:
        request = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        own = msgspec.json.decode(request.get("variants", b"[]"), type=list[Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return body
    of_releases = [_of_release(request, release) for release in releases]
    if not added and not of_releases:
        return body
    first = [] if len(of_releases) > 1 and not added else [{"name": _AS_IT_IS}]
    return msgspec.json.encode({**request, "variants": [*(own or first), *added, *of_releases]})


class _Settings(msgspec.Struct):
    """What a request or its configuration says of its engine."""

    engine: str | None = None
    settings: dict[str, dict[str, Any] | None] = {}


def _of_release(request: dict[str, msgspec.Raw], release: str) -> dict[str, Any]:
    """The variant with the settings that the request's configuration has, under another release."""
    try:
        given = msgspec.json.decode(request.get("configuration", b"{}"), type=_Settings)
    except msgspec.ValidationError:  # the name of one, or none: for whoever decodes the request to say so
        given = _Settings()
    asked = msgspec.json.decode(request.get("engine", b"null"), type=Any)
    engine = asked or given.engine
    if engine is None:  # for whoever decodes the request to say so
        return {"name": release}
    block = str(engine).replace("-", "_")
    own = given.settings.get(block) or {}
    return {"name": release, "settings": {block: {**own, "release": release}}}


def _variants(
    configurations: list[str], engines: list[EngineName], fields: list[str]
) -> tuple[list[dict[str, Any]], list[Finding]]:
    """The variants, and what was found in the manifests of some. Raises InvalidInput, OSError."""
    read = {name: read_configuration(name) for name in configurations}
    variants: list[dict[str, Any]] = [
        {"name": name, "configuration": msgspec.to_builtins(document)} for name, (document, _) in read.items()
    ]
    variants += [{"name": name, "engine": name} for name in engines]
    if fields:
        variants.append({"name": ", ".join(fields), "set": fields_of(fields)})
    return variants, [finding for _, noted in read.values() for finding in noted]


def _compared(body: bytes, findings: list[Finding], *, json: bool) -> int:
    """``findings``: what the import of manifests had to say."""
    encoded = compare_variants(body, datetime.now(UTC), nothing_stored())
    result = msgspec.json.decode(encoded, type=Comparison)
    noticed(finding for finding in result.findings or () if finding not in findings)
    result = msgspec.structs.replace(result, findings=carried(result.findings or (), findings))
    if json:
        say(encode(result).decode())
    else:
        output.comparison(result)
    if failed(result.findings or []) or any(
        variant.answer is None or failed(variant.findings) for variant in result.variants
    ):
        return BAD_INPUT
    return EVICTS if result.differences else NOTHING


_MOST_STEPS = 10_000
_SAID = ("status", "starvation", "below_fair_share_since")


def starvation(
    file: File = "-",
    /,
    *,
    every: Annotated[str, Parameter(help="Time between two fair share updates, as in 1s or 1m30s.")] = "1s",
    times: Annotated[int, Parameter(help="How many updates, the first at the request's now.")] = 60,
    json: Json = False,
) -> int:
    """Update fair shares again and again, feeding each answer's starvation into the next request.

    Prints what changes and when; with --json the request as it stands in the end, to be decided.
    """
    try:
        request: dict[str, Any] = documents.loads(as_json(read(file)))
        step = timedelta(microseconds=parse_duration(every))
        now = datetime.fromisoformat(request["now"])
        if not 1 <= times <= _MOST_STEPS:
            complain(f"--times: from 1 to {_MOST_STEPS}")
            return BAD_INPUT
        rows: list[list[str]] = []
        known: dict[tuple[str, str], tuple[Any, ...]] = {}
        for i in range(times):
            request = request | {"now": (now + i * step).isoformat().replace("+00:00", "Z")}
            answer = documents.loads(shares(documents.dumps(_question(request)).encode(), now, nothing_stored()))
            rows += _changes(request["now"], answer, known)
            request = _carried(request, answer)
    except InvalidInput as invalid:
        problems(file, invalid.problems)
    except ArbiterError as refused:
        problems(file, refused.problems)
    except (OSError, DurationError, ValueError, KeyError, TypeError) as error:
        complain(f"{file}: {error if str(error) else type(error).__name__}")
    else:
        if json:
            say(documents.dumps(request))
        else:
            table(("at", "kind", "name", "status", "starvation", "below since"), rows)
        return 0
    return BAD_INPUT


def _question(request: dict[str, Any]) -> dict[str, Any]:
    """The part of a request that POST /v1/shares reads."""
    return {
        key: request[key] for key in ("engine", "now", "configuration", "state", "asks", "options") if key in request
    }


def _carried(request: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """The next request: fair shares were updated, where the engine carries something over."""
    engine = engine_of(answer["engine"])
    if engine.after_shares is None:
        return request
    options: dict[str, Any] = request.get("options") or {}
    block: dict[str, Any] = options.get(engine.facts.block) or {}
    return request | {
        "state": engine.after_shares(request["state"], answer),
        "options": options | {engine.facts.block: block | {"last_update_at": request["now"]}},
    }


def _changes(now: str, answer: dict[str, Any], known: dict[tuple[str, str], tuple[Any, ...]]) -> list[list[str]]:
    """Rows for what differs from the last update; ``known`` is brought up to date."""
    rows: list[list[str]] = []
    for kind, of in (("pool", "queues"), ("operation", "workloads")):
        for name, element in answer.get(of, {}).items():
            said = tuple(element.get(key) for key in _SAID)
            if known.get((kind, name)) != said:
                known[(kind, name)] = said
                rows.append([now, kind, name, *(str(value or "") for value in said)])
    return rows
