"""``arbiter compare``: one situation under several configurations, settings and engines."""

import json as documents
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from app.answering.comparison import compare as compare_variants
from app.answering.comparison_bodies import Comparison
from app.answering.sources import nothing_stored
from app.cli import report
from app.cli.manifests import as_request, failed, read_configuration, with_mode
from app.cli.offline import Json, Situation
from app.cli.output import BAD_INPUT, EVICTS, NOTHING, say, tried
from app.cli.sources import Files, gathered
from app.solver.model.configuration import EngineName
from app.solver.model.problems import Finding, InvalidInput, Problem

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
    set: Annotated[  # noqa: A002
        list[str] | None,
        Parameter(
            negative=(),
            help="A variant with this field, as queues.research.quota.gpu.guaranteed=12; all of them in one variant.",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Decide a situation under several variants, and show where the answers differ.

    Variants are those of the request, and with the options one each beside the situation as it is.

    Exit code 0: all variants agree, 1: they differ, 3: bad input, or a variant is refused.
    """

    def act() -> int:
        added = _variants(configuration or [], engine or [], set or [])
        found = as_request(gathered(file, files), None)
        body = _with_variants(with_mode(found.body, None), added)
        return _compared(body, found.findings, json=json)

    return tried(file, act)


def _with_variants(body: bytes, added: list[dict[str, Any]]) -> bytes:
    """The request in ``body`` with more variants. What is no request stays as it is, for whoever decodes it to say
    so."""
    try:
        found = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        own = msgspec.json.decode(found.get("variants", b"[]"), type=list[Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return body
    if not added:
        return body
    return msgspec.json.encode({**found, "variants": [*(own or [{"name": _AS_IT_IS}]), *added]})


def _variants(configurations: list[str], engines: list[EngineName], fields: list[str]) -> list[dict[str, Any]]:
    """Raises InvalidInput, OSError."""
    found: list[dict[str, Any]] = [
        {"name": name, "configuration": msgspec.to_builtins(read_configuration(name))} for name in configurations
    ]
    found += [{"name": name, "engine": name} for name in engines]
    if fields:
        found.append({"name": ", ".join(fields), "set": dict(map(_field, fields))})
    return found


def _field(word: str) -> tuple[str, Any]:
    path, equals, text = word.partition("=")
    if not equals or not path:
        raise InvalidInput([Problem(pointer="", detail=f"--set {word!r}: a path, = and a value are expected")])
    try:
        return path, documents.loads(text)
    except ValueError:
        return path, text


def _compared(body: bytes, findings: list[Finding], *, json: bool) -> int:
    """``findings``: what the import of manifests had to say."""
    encoded = compare_variants(body, datetime.now(UTC), nothing_stored())
    result = msgspec.json.decode(encoded, type=Comparison)
    if json:
        said = msgspec.json.encode({"findings": findings})[1:-1] + b"," if findings else b""
        say((b"{" + said + encoded[1:]).decode())
    else:
        report.comparison(result)
    if failed(findings) or any(one.answer is None or failed(one.findings) for one in result.variants):
        return BAD_INPUT
    return EVICTS if result.differences else NOTHING
