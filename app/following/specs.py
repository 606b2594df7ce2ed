"""Specs of pods, each read once: those that are made of one template differ in nothing that is read but their node."""

from dataclasses import replace

import msgspec

from app.base.lru import Lru
from app.formats.pods import PodSpec, read_pod_spec
from app.formats.reader import Reader

_MOST, _BYTES = 20_000, 64 << 20


class Specs:
    """Those that were read without a finding."""

    def __init__(self) -> None:
        self._read: Lru[bytes, PodSpec] = Lru(_MOST, _BYTES)

    def read(self, spec: Reader) -> PodSpec:
        """The same as ``read_pod_spec`` gives."""
        node = spec.value.get("nodeName")
        key = msgspec.json.encode({name: value for name, value in spec.value.items() if name != "nodeName"})
        known = self._read.get(key)
        if known is not None and (node is None or isinstance(node, str)):
            return replace(known, node_name=node or None)
        read = read_pod_spec(spec)
        if not spec.findings.all():
            self._read.put(key, read, 4 * len(key))
        return read
