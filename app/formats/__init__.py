"""Native configurations of the systems, and what runs in their clusters, in and out. Pure: no I/O.

``import_configuration`` reads what a system's administrators write or ``kubectl get`` prints;
``export_configuration`` writes it. What can't be carried over is a finding, never silence.
"""

import re
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from app.base.documents import Path, Unreadable, read
from app.formats.exported import EXPORTS, FORMATS, Exported, ExportFormat, Format
from app.formats.manifests import System, is_object, on_kubernetes, read_manifests, system_of, systems
from app.formats.reader import Findings, Imported
from app.formats.ytsaurus.documents import is_yson, read_yson
from app.solver.check import MAX_BYTES, size_of, without_native
from app.solver.model.base import Wire
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding
from app.solver.model.state import Ask, State

__all__ = [
    "EXPORTS", "FORMATS", "ExportFormat", "Exported", "ExportedManifest", "Format", "Imported", "ImportedManifest",
    "Unreadable", "export", "export_configuration", "import_configuration", "is_native",
]  # fmt: skip

T = TypeVar("T")

_PAGE = re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_OURS = ("configuration", "state", "asks")
_YAML_OF_OURS = re.compile(rb"^[\"']?(?:%s)[\"']?\s*:" % "|".join(_OURS).encode(), re.MULTILINE)


def import_configuration(text: bytes, format: str, known: Configuration | None = None) -> Imported:  # noqa: A002
    """Read ``text``: JSON, YAML or YSON, one document or several. ``kubernetes`` reads documents of whichever system
    they belong to. ``known``: a configuration that takes the place of the source's; what the source shows of queues
    that nobody configures (dynamic ones of YuniKorn, ephemeral pools) is added to it. Configuration and state carry the
    findings that bear on decisions. Raises Unreadable for what is no such document at all."""
    imported = _read(text, format, known)
    size = size_of(imported.configuration)
    if size <= MAX_BYTES:
        return imported.carrying()
    detail = f"{size} bytes that Arbiter would only keep: {MAX_BYTES} may be; all of that is left out"
    finding = Finding(rule="not-carried", severity="error", pointer="", detail=detail)
    findings = [*imported.findings, finding]
    return replace(imported, configuration=without_native(imported.configuration), findings=findings).carrying()


def _read(text: bytes, format: str, known: Configuration | None) -> Imported:  # noqa: A002
    if format not in FORMATS:
        raise Unreadable(f"no format {format!r}: there are {', '.join(FORMATS)}")
    findings = Findings()
    if _PAGE.match(text[:2048]):
        raise Unreadable("this is a page for a browser (HTML or XML), no document of any system: was there a login?")
    meant = systems() if format == "kubernetes" else [system for system in (system_of(format),) if system is not None]
    for system in systems():
        text = system.unpacked(text)
    yson = is_yson(text) and any(system.yson for system in meant)
    documents = read_yson(text) if yson else read(text)
    for system in meant:
        documents = system.taken_apart(documents)
    _refuse_no_document(documents, format, meant)
    several = _spread(documents)
    for system in meant:
        surely = system.read is None and (yson or system.facts.name == format)
        own = next((listed for listed in (several, documents) if surely or system.owns(listed)), None)
        if own is not None and system.read_own is not None:
            _refuse_another(known, [system])
            return system.read_own(own, findings, known)
    _refuse_another(known, on_kubernetes() if format == "kubernetes" else meant)
    return read_manifests(documents, None if format == "kubernetes" else format, findings, known)


def _refuse_no_document(documents: list[tuple[Path, Any]], format: str, meant: list[System]) -> None:  # noqa: A002
    """Raises Unreadable for text in which nothing is a document of the systems that ``format`` means."""
    several = _spread(documents)
    if not several or all(_is_empty_list(document) for _, document in several):
        raise Unreadable("it is empty: there is no document in it")
    of_kubernetes = any(system.read is not None for system in meant)
    looked = [system for system in systems() if system in meant or (of_kubernetes and system.read is not None)]
    if any(system.owns(documents) for system in looked) or any(
        (of_kubernetes and is_object(document)) or any(system.is_own(document) for system in looked)
        for _, document in several
    ):
        return
    *titles, last = (system.facts.title for system in systems())
    whose = f"{', '.join(titles)} or {last}" if format == "kubernetes" else format
    keys = [
        str(key)[:40]
        for _, document in several[:1]
        if isinstance(document, dict)
        for key in list(cast(Any, document))[:4]
    ]
    shown = f" (it begins with {', '.join(map(repr, keys))})" if keys else ""
    raise Unreadable(f"nothing in it is a document of {whose}{shown}")


def _is_empty_list(document: Any) -> bool:
    """What ``kubectl get`` prints where there is nothing."""
    if not isinstance(document, dict):
        return False
    of = cast(dict[str, Any], document)
    return str(of.get("kind")).endswith("List") and of.get("items") in (None, [])


def _spread(documents: list[tuple[Path, Any]]) -> list[tuple[Path, Any]]:
    """The documents with lists taken apart: several sources come as one list."""
    flat: list[tuple[Path, Any]] = []
    for path, document in documents:
        listed = cast(list[Any], document) if isinstance(document, list) else None
        flat += [(path, document)] if listed is None else [((*path, i), item) for i, item in enumerate(listed)]
    return flat


def _refuse_another(known: Configuration | None, systems: list[System]) -> None:
    """Raises Unreadable where the given configuration is of another system than the source can be."""
    engines = [system.facts.name for system in systems]
    if known is not None and known.engine is not None and known.engine not in engines:
        detail = f"a configuration of {known.engine} does not go with a source of {' or '.join(engines)}"
        raise Unreadable(detail, "/engine")


def export(configuration: Configuration, format: str) -> Exported:  # noqa: A002
    """``configuration`` in the words of one system, with what it could not say. The configuration must be valid
    (``solve.configure`` accepts it). Raises Unreadable for an unknown format."""
    system = system_of(format) if format in EXPORTS else None
    if system is None:
        raise Unreadable(f"no export format {format!r}: there are {', '.join(EXPORTS)}")
    return system.export(configuration)


def export_configuration(configuration: Configuration, format: str) -> str:  # noqa: A002
    """The text of ``export`` alone; what was lost is in its first lines as comments."""
    return export(configuration, format).text


@cache
def _native() -> tuple[frozenset[str], re.Pattern[bytes]]:
    """Keys of the systems' own documents, and where one stands in YAML."""
    own = (key for system in systems() for key in (*system.keys, *system.files))
    keys = frozenset(("apiVersion", "kind", *own))
    listed = "|".join(map(re.escape, sorted(keys))).encode()
    return keys, re.compile(rb"^(?:-\s+)?[\"']?(?:%s)[\"']?\s*:" % listed, re.MULTILINE)


def is_native(body: bytes) -> bool:
    """Whether ``body`` is a manifest, an answer of YuniKorn's REST interface, a pool tree or an orchid, and no
    configuration or request of Arbiter. What is no document at all is none."""
    native, yaml = _native()
    if is_yson(body) or body.startswith(b"PK"):
        return True
    if body.lstrip()[:1] not in (b"{", b"["):
        return yaml.search(body) is not None and _YAML_OF_OURS.search(body) is None
    try:
        decoded = _decoded(body, dict[str, msgspec.Raw]) or _decoded(body, list[msgspec.Raw])
        keys = _decoded(decoded[0], dict[str, msgspec.Raw]) if isinstance(decoded, list) and decoded else decoded
    except UnicodeDecodeError:
        return False
    return isinstance(keys, dict) and any(key in keys for key in native) and not any(key in keys for key in _OURS)


def _decoded(body: bytes | msgspec.Raw, kind: type[T]) -> T | None:
    """None for what is nothing of the kind."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None


class ImportedManifest(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A manifest in Arbiter's words.

    ``findings`` say what could not be carried over; their pointers lead into the manifest, with the number of the
    document first where there are several. ``configuration_findings`` are remarks about the configuration itself, as a
    write of it would give; errors among them would refuse the write.
    """

    format: Format
    """The format that was read."""
    configuration: Configuration
    """The queues and settings that were found."""
    state: State
    """The nodes and the running work that were found."""
    asks: list[Ask]
    """The waiting work that was found."""
    findings: list[Finding]
    """What could not be carried over; pointers lead into the manifest, the number of the document first where there are
    several. Of more than 1,000 the worst, and how many more there are."""
    configuration_findings: list[Finding]
    """Remarks about the configuration, as a write of it would give; errors among them would refuse the write. Of more
    than 1,000 the worst, and how many more there are."""


class ExportedManifest(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A configuration in one system's words. ``findings`` say what it has no words for; pointers into the
    configuration. ``text`` is YAML, or YSON for YTsaurus."""

    format: ExportFormat
    """The format that was written."""
    text: str
    """The manifest: YAML, or YSON for YTsaurus."""
    findings: list[Finding]
    """What the format has no words for; pointers lead into the configuration. Of more than 1,000 the worst, and how
    many more there are."""
