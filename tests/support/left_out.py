"""What tests of left out share with those beside them."""

import json
from typing import Any

from app.formats import import_configuration
from app.formats.reader import Imported

Json = dict[str, Any]


def imported(system: str, *documents: Json) -> Imported:
    text = "\n---\n".join(json.dumps(document) for document in documents)
    return import_configuration(text.encode(), system)


def said(found: Imported) -> list[tuple[str, str, str, str]]:
    return [(one.severity, one.rule, one.pointer, one.detail) for one in found.findings]


def of(version: str, kind: str, name: str | None = "x", **rest: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name} if name else {}, **rest}


QUEUE, FLAVOR = ("kueue.x-k8s.io/v1beta1", "ClusterQueue"), ("kueue.x-k8s.io/v1beta1", "ResourceFlavor")
