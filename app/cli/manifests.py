"""``import``, ``export``, and manifests where a request is expected: ``kubectl get … -o json | arbiter decide -``."""

import json as jsonlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from cyclopts import Parameter

from app.answering.overrides import with_fields
from app.base.decoding import decode
from app.cli.configuration import OURS, Remote, revision_of, revision_said
from app.cli.output import (
    BAD_INPUT,
    Fields,
    Files,
    OfFiles,
    Source,
    as_json,
    complain,
    fields_of,
    gathered,
    joined,
    noticed,
    read,
    say,
)
from app.cli.remote import Service, guarded, segment
from app.cli.remote import findings as remarked
from app.formats import Imported, import_configuration, is_native
from app.formats import export as written
from app.formats.exported import ExportFormat, Format
from app.solver.check import without_native
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding, InvalidInput, Problem
from app.solver.model.request import Mode

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}(@[A-Za-z0-9._-]{1,128})?")

File = Annotated[str, Parameter(allow_leading_hyphen=True, help="A file; '-' reads standard input.")]

Lenient = Annotated[
    bool, Parameter(negative=(), help="Go on although something that is left out makes the answer wrong.")
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Out:
    """What becomes of what is read."""

    request: Annotated[bool, Parameter(negative=(), help="Print a request: state and asks too.")] = False
    json: Annotated[bool, Parameter(negative=(), help="Print all that was read, and the findings.")] = False
    store: Annotated[str | None, Parameter(help="Store the configuration in the service under this name.")] = None
    lenient: Lenient = False


_PRINTED = Out()


def import_manifest(
    file: File = "-",
    /,
    *,
    files: Files = None,
    format: Annotated[Format, Parameter(help="Whose manifest it is; kubernetes finds out by itself.")] = "kubernetes",  # noqa: A002
    out: Out = _PRINTED,
    remote: Remote = OURS,
) -> int:
    """Read a manifest of one of the systems, and print the configuration that it makes.

    What can't be carried over is said on standard error. Exit code 3 when some of that is an error, and then nothing
    is stored, unless --lenient is given.
    """

    def act() -> int:
        manifest = imported(gathered(file, files), format)
        refused = failed(manifest.findings) and not out.lenient
        if out.store is not None and refused:
            complain(f"{file}: nothing is stored, as some of it would be decided wrongly; --lenient stores the rest")
        elif out.store is not None:
            _store(manifest.configuration, out.store, remote.service)
        elif out.json:
            say(_pretty(manifest))
        else:
            say(_pretty(_request(manifest) if out.request else manifest.configuration))
        return BAD_INPUT if refused else 0

    return guarded(act, file)


def export(
    source: Annotated[str, Parameter(allow_leading_hyphen=True, help="A file, '-', or with --stored a name.")] = "-",
    /,
    *,
    format: Annotated[ExportFormat | None, Parameter(help="Default: the engine of the configuration.")] = None,  # noqa: A002
    stored: Annotated[
        bool, Parameter(negative=(), help="A configuration of the service: name, or name@revision.")
    ] = False,
    strict: Annotated[bool, Parameter(negative=(), help="Print nothing where something would be lost.")] = False,
    json: Annotated[bool, Parameter(negative=(), help="Print the text and the findings as JSON.")] = False,
    remote: Remote = OURS,
) -> int:
    """Print a configuration, of Arbiter or of a system, as a system writes it: YAML, or YSON for YTsaurus.

    What that has no words for is said on standard error, and in comments at the top of YAML. Exit code 3 with --strict
    when something would be lost.
    """

    def act() -> int:
        configuration, findings = (_fetched(source, remote.service), []) if stored else read_configuration(source)
        chosen = format or configuration.engine
        if chosen is None:
            raise InvalidInput([Problem(pointer="/engine", detail="no engine is named: say --format")])
        exported = written(configuration, chosen)
        noticed(exported.findings)
        if strict and any(finding.severity != "info" for finding in exported.findings):
            return BAD_INPUT
        findings = [*findings, *exported.findings]
        document = {"format": chosen, "text": exported.text, "findings": findings}
        say(_pretty(document) if json else exported.text.rstrip("\n"))
        return BAD_INPUT if failed(findings) else 0

    return guarded(act, source)


class Situation(NamedTuple):
    """A request, and what an import had to say about the manifests that made it."""

    body: bytes
    findings: list[Finding]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Otherwise:
    """What is decided otherwise than files say."""

    configuration: Annotated[
        str | None,
        Parameter(
            help="The configuration, in place of the one that is said: a file of Arbiter's, a manifest, or the name of "
            "one that the service has (name, name@revision, name@label)."
        ),
    ] = None
    set: Fields = None
    now: Annotated[
        str | None,
        Parameter(
            help="When, as 2026-03-02T09:30:00Z. Default: what the request says, else when its state was taken, else "
            "the host's clock."
        ),
    ] = None
    remote: Remote = OURS


AS_IT_SAYS = Otherwise()


def as_request(sources: list[Source], otherwise: Otherwise = AS_IT_SAYS) -> Situation:
    """The one source that is a request, YAML or JSON; or the request that manifests make; with what is ``otherwise``.
    A configuration that is a manifest too is read together with manifests, so that what it says of queues counts for
    the work. Raises InvalidInput, OSError, Unreachable."""
    situation = _as_said(sources, otherwise)
    return Situation(changed(situation.body, otherwise), situation.findings)


def changed(body: bytes, otherwise: Otherwise, now: str = "now") -> bytes:
    """The request with its fields set and its time, which it calls ``now``, said. Raises InvalidInput."""
    if not otherwise.set and otherwise.now is None:
        return body
    request = decode(body, dict[str, msgspec.Raw])
    if otherwise.set:
        given = request.get("configuration")
        if given is None or bytes(given)[:1] == b'"':
            detail = "--set needs the configuration itself: give it with --configuration"
            raise InvalidInput([Problem(pointer="/configuration", detail=detail)])
        document = with_fields(decode(bytes(given), Configuration), fields_of(otherwise.set))
        request["configuration"] = msgspec.Raw(msgspec.json.encode(document))
    if otherwise.now is not None:
        request[now] = msgspec.Raw(msgspec.json.encode(otherwise.now))
    return msgspec.json.encode(request)


def stored_or_file(name: str, remote: Remote) -> Source:
    """A file, or the configuration of that name that the service has. Raises InvalidInput, OSError, Unreachable."""
    if name != "-" and not Path(name).exists() and _NAME.fullmatch(name):
        return Source(name, msgspec.json.encode(_fetched(name, remote.service)))
    return Source(name, read(name))


def _as_said(sources: list[Source], otherwise: Otherwise) -> Situation:
    given = None if otherwise.configuration is None else stored_or_file(otherwise.configuration, otherwise.remote)
    if len(sources) == 1 and not is_native(sources[0].body):
        body = as_json(sources[0].body)
        if given is None:
            return Situation(body, [])
        request = decode(body, dict[str, msgspec.Raw])
        document, findings = configuration_of(given)
        request["configuration"] = msgspec.Raw(msgspec.json.encode(document))
        return Situation(msgspec.json.encode(request), findings)
    for source in sources:
        if not is_native(source.body):
            raise OfFiles([(source.name, Problem(pointer="", detail="several files must all be manifests"))])
    if given is not None and is_native(given.body):
        manifests = imported([*sources, given], "kubernetes")
    else:
        known = None if given is None else decode(as_json(given.body), Configuration)
        manifests = imported(sources, "kubernetes", known)
    if not manifests.configuration.queues:
        raise InvalidInput(
            [Problem(pointer="/queues", detail="no queues in the manifest: give them with --configuration")]
        )
    request = _request(manifests)
    clock = datetime.now(UTC)
    moment = manifests.as_of(clock)
    if moment != clock:
        request["now"] = moment
        complain(f"  decided as of {moment.isoformat()}, when the source was taken; --now says another time")
    return Situation(msgspec.json.encode(request), manifests.findings)


def imported(sources: list[Source], format: Format, known: Configuration | None = None) -> Imported:  # noqa: A002
    """What the sources make together, with the configuration ``known`` in place of theirs; findings are said on
    standard error, and of several name theirs. Raises InvalidInput."""
    if len(sources) == 1:
        single = import_configuration(sources[0].body, format, known)
        noticed(single.findings)
        return single
    together = joined(sources)
    single = import_configuration(together.body, format, known)
    noticed(single.findings, together.place)
    return single


def failed(findings: list[Finding]) -> bool:
    """Whether something is so wrong that the exit code says it."""
    return any(finding.severity == "error" for finding in findings)


def with_mode(body: bytes, mode: Mode | None) -> bytes:
    """The request in ``body`` in ``mode``. None: in its own; where it has none, several asks share one cycle: then the
    plan can be carried out. What is no request stays as it is, for whoever decodes it to say so."""
    try:
        request = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        asks = msgspec.json.decode(request.get("asks", b"[]"), type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return body
    if mode is None and len(asks) > 1 and "mode" not in request:
        mode = "cycle"
    return body if mode is None else msgspec.json.encode({**request, "mode": mode})


def read_configuration(file: str) -> tuple[Configuration, list[Finding]]:
    """A configuration of Arbiter, or the one that a manifest makes and what was found there. Raises InvalidInput,
    OSError."""
    return configuration_of(Source(file, read(file)))


def configuration_of(source: Source) -> tuple[Configuration, list[Finding]]:
    """The same of what was read."""
    if not is_native(source.body):
        return decode(as_json(source.body), Configuration), []
    manifests = import_configuration(source.body, "kubernetes")
    noticed(manifests.findings)
    return manifests.configuration, manifests.findings


def _request(parts: Imported) -> dict[str, object]:
    """What a decision needs; what is only kept for an export stays behind."""
    body: dict[str, object] = {
        "configuration": without_native(parts.configuration), "state": parts.state, "asks": parts.asks
    }  # fmt: skip
    if len(parts.asks) > 1:
        body["mode"] = "cycle"
    engine = parts.configuration.engine
    return body if engine is None else {"engine": engine, **body}


def _store(configuration: Configuration, name: str, service: Service) -> None:
    path = f"/v1/configurations/{segment(name)}"
    stored = service.put(path, msgspec.json.encode(configuration), service.get(path).guard()).done(name).json()
    remarked(stored)
    say(f"{name}: {revision_said(stored)}")


def _fetched(reference: str, service: Service) -> Configuration:
    reply = revision_of(service, reference)
    if not reply.ok:
        detail = reply.json().get("detail") or f"the service answered {reply.status}"
        raise OfFiles([(reference, Problem(pointer="", detail=detail))])
    return msgspec.convert(reply.json()["configuration"], Configuration)


def _pretty(document: object) -> str:
    return jsonlib.dumps(msgspec.to_builtins(document), indent=2, ensure_ascii=False)
