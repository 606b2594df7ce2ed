"""What import and export endpoints answer; whether a document is a system's own or Arbiter's, for who takes both."""

import re
from typing import TypeVar

import msgspec

from app.formats.exported import ExportFormat, Format
from app.formats.yson import is_yson
from app.solver.model.base import Wire
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding
from app.solver.model.state import Ask, State

T = TypeVar("T")

_NATIVE = (
    "apiVersion", "kind", "partitions", "tiers", "actions", "pools", "config", "nodes_filter", "$attributes", "$value",
    "queuename", "applications", "applicationID", "nodeID", "clusterInfo", "operations", "pool_trees",
    "scheduling_info_per_pool_tree", "rawObjects", "template_pool_tree_config_map",
)  # fmt: skip
_OURS = ("configuration", "state", "asks")
_YAML = re.compile(rb"^(?:-\s+)?[\"']?(?:%s)[\"']?\s*:" % "|".join(map(re.escape, _NATIVE)).encode(), re.MULTILINE)
_YAML_OF_OURS = re.compile(rb"^[\"']?(?:%s)[\"']?\s*:" % "|".join(_OURS).encode(), re.MULTILINE)


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
