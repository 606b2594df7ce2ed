"""Native configurations of the systems, and what runs in their clusters, in and out. Pure: no I/O.

``import_configuration`` reads what a system's administrators write or ``kubectl get`` prints;
``export_configuration`` writes it. What can't be carried over is a finding, never silence.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

import msgspec

from app.base.documents import Path, Unreadable, read
from app.formats import kube_scheduler as kube_scheduler_export
from app.formats import manifests
from app.formats.exported import EXPORTS, FORMATS, Exported, ExportFormat, Format
from app.formats.kai import configuration as kai_import
from app.formats.kai import exporting as kai_export
from app.formats.kueue import exporting as kueue_export
from app.formats.reader import Findings, Imported
from app.formats.yson import is_yson, read_yson
from app.formats.ytsaurus import configuration as pool_tree
from app.formats.ytsaurus import orchid
from app.formats.yunikorn import configuration as yunikorn_export
from app.formats.yunikorn import dump
from app.solver.check import MAX_BYTES, size_of, without_native
from app.solver.model.base import Wire
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.problems import Finding
from app.solver.model.state import Ask, State

__all__ = [
    "EXPORTS", "FORMATS", "ExportFormat", "Exported", "ExportedManifest", "Format", "Imported", "ImportedManifest",
    "Unreadable", "export", "export_configuration", "import_configuration", "is_native",
]  # fmt: skip

T = TypeVar("T")

_ON_KUBERNETES: tuple[EngineName, ...] = ("kueue", "kai", "yunikorn", "kube-scheduler")
_MANIFESTS: dict[str, EngineName | None] = {"kubernetes": None, **{name: name for name in _ON_KUBERNETES}}
_PAGE = re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_NATIVE = (
    "apiVersion", "kind", "partitions", "tiers", "actions", "pools", "config", "nodes_filter", "$attributes", "$value",
    "queuename", "applications", "applicationID", "nodeID", "clusterInfo", "operations", "pool_trees",
    "scheduling_info_per_pool_tree", "rawObjects", "template_pool_tree_config_map",
)  # fmt: skip
_OURS = ("configuration", "state", "asks")
_YAML = re.compile(rb"^(?:-\s+)?[\"']?(?:%s)[\"']?\s*:" % "|".join(map(re.escape, _NATIVE)).encode(), re.MULTILINE)
_YAML_OF_OURS = re.compile(rb"^[\"']?(?:%s)[\"']?\s*:" % "|".join(_OURS).encode(), re.MULTILINE)
_Writer = Callable[[Configuration], Exported]
_WRITERS: dict[str, _Writer] = {
    "kueue": kueue_export.export,
    "yunikorn": yunikorn_export.export,
    "kai": kai_export.export,
    "ytsaurus": pool_tree.export,
    "kube-scheduler": kube_scheduler_export.export,
}


def import_configuration(text: bytes, format: str, known: Configuration | None = None) -> Imported:  # noqa: A002
    """Read ``text``: JSON, YAML or YSON, one document or several. ``kubernetes`` reads documents of whichever system
    they belong to. ``known``: a configuration that takes the place of the source's; what the source shows of queues
    that nobody configures (dynamic ones of YuniKorn, ephemeral pools) is added to it. Configuration and state carry the
    findings that bear on decisions. Raises Unreadable for what is no such document at all."""
    found = _read(text, format, known)
    size = size_of(found.configuration)
    if size <= MAX_BYTES:
        return found.carrying()
    detail = f"{size} bytes that Arbiter would only keep: {MAX_BYTES} may be; all of that is left out"
    finding = Finding(rule="not-carried", severity="error", pointer="", detail=detail)
    findings = [*found.findings, finding]
    return replace(found, configuration=without_native(found.configuration), findings=findings).carrying()


def _read(text: bytes, format: str, known: Configuration | None) -> Imported:  # noqa: A002
    if format not in FORMATS:
        raise Unreadable(f"no format {format!r}: there are {', '.join(FORMATS)}")
    findings = Findings()
    if _PAGE.match(text[:2048]):
        raise Unreadable("this is a page for a browser (HTML or XML), no document of any system: was there a login?")
    text = kai_import.unpacked(text)
    yson = format in ("ytsaurus", "kubernetes") and is_yson(text)
    documents = read_yson(text) if yson else read(text)
    if format in ("kai", "kubernetes"):
        documents = kai_import.objects_of(documents)
    _refuse_no_document(documents, format)
    several = _spread(documents)
    if format == "ytsaurus" or (format == "kubernetes" and (yson or _of_ytsaurus(several))):
        _refuse_another(known, "ytsaurus")
        return orchid.read_trees(_mappings(several, findings), findings, known)
    dumps = next((listed for listed in (several, documents) if dump.is_dump(listed)), None)
    if format in ("yunikorn", "kubernetes") and dumps is not None:
        _refuse_another(known, "yunikorn")
        return dump.read_dump(dumps, findings, known)
    engine = _MANIFESTS[format]
    _refuse_another(known, *_ON_KUBERNETES if engine is None else (engine,))
    return manifests.read_manifests(documents, engine, findings, known)


def _refuse_no_document(documents: list[tuple[Path, Any]], format: str) -> None:  # noqa: A002
    """Raises Unreadable for text in which nothing is a document of the systems that ``format`` means."""
    several = _spread(documents)
    if not several or all(_is_empty_list(one) for _, one in several):
        raise Unreadable("it is empty: there is no document in it")
    of_kubernetes, of_ytsaurus = format != "ytsaurus", format in ("ytsaurus", "kubernetes")
    if (of_kubernetes and dump.is_dump(documents)) or any(
        (of_kubernetes and (manifests.is_object(one) or dump.is_dump([(at, one)])))
        or (of_ytsaurus and (orchid.is_orchid(one) or pool_tree.is_settings(one)))
        for at, one in several
    ):
        return
    whose = "Kueue, YuniKorn, KAI Scheduler, YTsaurus or kube-scheduler" if format == "kubernetes" else format
    keys = [str(key)[:40] for _, one in several[:1] if isinstance(one, dict) for key in list(cast(Any, one))[:4]]
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
    found: list[tuple[Path, Any]] = []
    for at, document in documents:
        listed = cast(list[Any], document) if isinstance(document, list) else None
        found += [(at, document)] if listed is None else [((*at, i), one) for i, one in enumerate(listed)]
    return found


def _of_ytsaurus(documents: list[tuple[Path, Any]]) -> bool:
    """Whether these are orchids and pool trees as YTsaurus prints them, or writes them without attributes."""
    return bool(documents) and all(orchid.is_orchid(one) or pool_tree.is_tree(one) for _, one in documents)


def _refuse_another(known: Configuration | None, *engines: EngineName) -> None:
    """Raises Unreadable where the given configuration is of another system than the source can be."""
    if known is not None and known.engine is not None and known.engine not in engines:
        detail = f"a configuration of {known.engine} does not go with a source of {' or '.join(engines)}"
        raise Unreadable(detail, "/engine")


def export(configuration: Configuration, format: str) -> Exported:  # noqa: A002
    """``configuration`` in the words of one system, with what it could not say. The configuration must be valid
    (``solve.configure`` accepts it). Raises Unreadable for an unknown format."""
    if format not in _WRITERS:
        raise Unreadable(f"no export format {format!r}: there are {', '.join(EXPORTS)}")
    return _WRITERS[format](configuration)


def export_configuration(configuration: Configuration, format: str) -> str:  # noqa: A002
    """The text of ``export`` alone; what was lost is in its first lines as comments."""
    return export(configuration, format).text


def _mappings(documents: list[tuple[Path, Any]], findings: Findings) -> list[tuple[Path, Any]]:
    for at, document in documents:
        if not isinstance(document, dict):
            findings.add("wrong-type", "error", at, "a mapping is expected: a pool tree")
    return [(at, document) for at, document in documents if isinstance(document, dict)]


def is_native(body: bytes) -> bool:
    """Whether ``body`` is a manifest, an answer of YuniKorn's REST interface, a pool tree or an orchid, and no
    configuration or request of Arbiter. What is no document at all is none."""
    if is_yson(body) or body.startswith(b"PK"):
        return True
    if body.lstrip()[:1] not in (b"{", b"["):
        return _YAML.search(body) is not None and _YAML_OF_OURS.search(body) is None
    try:
        found = _decoded(body, dict[str, msgspec.Raw]) or _decoded(body, list[msgspec.Raw])
        keys = _decoded(found[0], dict[str, msgspec.Raw]) if isinstance(found, list) and found else found
    except UnicodeDecodeError:
        return False
    return isinstance(keys, dict) and any(key in keys for key in _NATIVE) and not any(key in keys for key in _OURS)


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
    several."""
    configuration_findings: list[Finding]
    """Remarks about the configuration, as a write of it would give; errors among them would refuse the write."""


class ExportedManifest(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A configuration in one system's words. ``findings`` say what it has no words for; pointers into the
    configuration. ``text`` is YAML, or YSON for YTsaurus."""

    format: ExportFormat
    """The format that was written."""
    text: str
    """The manifest: YAML, or YSON for YTsaurus."""
    findings: list[Finding]
    """What the format has no words for; pointers lead into the configuration."""
