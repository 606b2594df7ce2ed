"""``arbiter compare``: one situation under several configurations, settings and engines."""

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from app.answering.comparison import Comparison
from app.answering.comparison import compare as compare_variants
from app.answering.sources import nothing_stored
from app.cli import report
from app.cli.fields import Fields, fields_of
from app.cli.manifests import as_request, failed, read_configuration, with_mode
from app.cli.offline import Json, Situation
from app.cli.output import BAD_INPUT, EVICTS, NOTHING, say, tried
from app.cli.sources import Files, gathered
from app.solver.model.configuration import EngineName
from app.solver.model.problems import Finding

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
    set: Fields = None,  # noqa: A002
    json: Json = False,
) -> int:
    """Decide a situation under several variants, and show where the answers differ.

    Variants are those of the request, and with the options one each beside the situation as it is; all fields of
    --set together are one.

    Exit code 0: all variants agree, 1: they differ, 3: bad input, or a variant is refused.
    """

    def act() -> int:
        added, findings = _variants(configuration or [], engine or [], set or [])
        found = as_request(gathered(file, files), None)
        body = _with_variants(with_mode(found.body, None), added)
        return _compared(body, [*found.findings, *findings], json=json)

    return tried(file, act)


def _with_variants(body: bytes, added: list[dict[str, Any]]) -> bytes:
    """The request in ``body`` with more variants. What is no request stays as it is, for whoever decodes it to say
    so."""
    try:
        found = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        own = msgspec.json.decode(found.get("variants", b"[]"), type=list[Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return body
    if not added:
        return body
    return msgspec.json.encode({**found, "variants": [*(own or [{"name": _AS_IT_IS}]), *added]})


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
    return variants, [finding for _, found in read.values() for finding in found]


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
