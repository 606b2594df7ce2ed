"""What KAI Scheduler's own plugin writes: ``/get-snapshot``, a zip with ``snapshot.json`` in it, or that file itself.

Source: KAI Scheduler ``pkg/scheduler/plugins/snapshot/snapshot.go`` and ``pkg/scheduler/conf`` (SchedulerParams).
Objects come from the scheduler's listers, which leave out what kind they are; parameters that are 0 or false are left
out too.
"""

import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Any, cast

from app.base.documents import MAX_BYTES, Path, Unreadable

FILE = "snapshot.json"
PARAMETERS = "schedulerParams"
_ZIP = b"PK\x03\x04"
_KINDS = {
    "pods": ("Pod", "v1"), "nodes": ("Node", "v1"), "queues": ("Queue", "scheduling.run.ai/v2"),
    "podGroups": ("PodGroup", "scheduling.run.ai/v2alpha2"),
    "priorityClasses": ("PriorityClass", "scheduling.k8s.io/v1"), "topologies": ("Topology", "kai.scheduler/v1alpha1"),
}  # fmt: skip


def unpacked(body: bytes) -> bytes:
    """The file in a zip; anything else as it is. Raises Unreadable."""
    if not body.startswith(_ZIP):
        return body
    try:
        with zipfile.ZipFile(BytesIO(body)) as archive, archive.open(FILE) as file:
            found = file.read(MAX_BYTES + 1)
    except KeyError:
        raise Unreadable(f"a zip without {FILE}: KAI's snapshot has it") from None
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise Unreadable(f"a zip that can't be read: {error}") from None
    if len(found) > MAX_BYTES:
        raise Unreadable(f"{FILE} has more than the {MAX_BYTES} bytes that a manifest may have")
    return found


def is_snapshot(document: Any) -> bool:
    """Whether this is what the plugin writes."""
    return isinstance(document, dict) and isinstance(cast(dict[str, Any], document).get("rawObjects"), dict)


def objects_of(documents: list[tuple[Path, Any]]) -> list[tuple[Path, Any]]:
    """``documents`` with snapshots taken apart: their objects, each with its kind, and the scheduler's file with the
    parameters beside it."""
    found: list[tuple[Path, Any]] = []
    for at, document in documents:
        found += _parts(at, cast(dict[str, Any], document)) if is_snapshot(document) else [(at, document)]
    return found


def _parts(at: Path, snapshot: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    config, parameters = snapshot.get("config"), snapshot.get(PARAMETERS)
    if isinstance(config, dict):
        told: dict[str, Any] = {PARAMETERS: parameters} if isinstance(parameters, dict) else {}
        yield (*at, "config"), {"actions": "", **cast(dict[str, Any], config), **told}
    raw = cast(dict[str, Any], snapshot["rawObjects"])
    bound = _bound(raw.get("bindRequests"))
    for key, listed in raw.items():
        known = _KINDS.get(key)
        for i, one in enumerate(cast(list[Any], listed) if isinstance(listed, list) and known is not None else ()):
            if known is not None and isinstance(one, dict):
                kind, version = known
                made = {"kind": kind, "apiVersion": version, **cast(dict[str, Any], one)}
                yield (*at, "rawObjects", key, i), _on_its_node(made, bound) if kind == "Pod" else made


def _bound(requests: Any) -> dict[tuple[Any, Any], str]:
    """The node that each pod is being bound to: the scheduler counts it there already."""
    found: dict[tuple[Any, Any], str] = {}
    for one in cast(list[Any], requests) if isinstance(requests, list) else ():
        request = cast(dict[str, Any], one) if isinstance(one, dict) else {}
        spec, metadata = (_mapping(request.get(key)) for key in ("spec", "metadata"))
        node, pod = spec.get("selectedNode"), spec.get("podName")
        if isinstance(node, str) and isinstance(pod, str) and node:
            found[metadata.get("namespace"), pod] = node
    return found


def _on_its_node(pod: dict[str, Any], bound: dict[tuple[Any, Any], str]) -> dict[str, Any]:
    metadata, spec = _mapping(pod.get("metadata")), _mapping(pod.get("spec"))
    name = metadata.get("name")
    node = bound.get((metadata.get("namespace"), name)) if isinstance(name, str) else None
    return pod if node is None or spec.get("nodeName") else {**pod, "spec": {**spec, "nodeName": node}}


def _mapping(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def flags_of(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters as the scheduler's flags call them."""
    return {
        "use-scheduling-signatures": parameters.get("useSchedulingSignatures") is True,
        "allow-consolidating-reclaim": parameters.get("allowConsolidatingReclaim") is True,
        "max-consolidation-preemptees": parameters.get("maxNumberConsolidationPreemptees") or 0,
    }
