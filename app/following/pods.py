"""Pods as they were read, each once as long as it stays the same; and which of them are translated together.

A pod of the followed scheduler stands in a group: KAI's PodGroup, YuniKorn's application. One of another scheduler
takes room on its node, and counts with the others there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from app.following.mirror import Key
from app.following.trimming import Item
from app.formats.documents.reader import Findings
from app.formats.kai import pods as kai
from app.formats.kubernetes.cluster import SinglePod, read_pod
from app.formats.kubernetes.objects import objects
from app.formats.yunikorn import pods as yunikorn
from app.solver.model.configuration import EngineName


@dataclass(frozen=True, slots=True)
class Known:
    """A pod that was read. ``findings``: None where there are none; ``group``: None for one of another scheduler;
    ``node``: the one that it names."""

    item: Item
    pod: SinglePod | None
    findings: Findings | None
    group: str | None
    node: str | None


@dataclass(slots=True)
class Touched:
    """What is to be translated again: groups, nodes with the pods of others on them, and pods that are in neither."""

    groups: set[str] = field(default_factory=set[str])
    nodes: set[str] = field(default_factory=set[str])
    pods: set[Key] = field(default_factory=set[Key])

    def add(self, known: Known | None) -> None:
        """Where that pod counts."""
        if known is not None and known.group is not None:
            self.groups.add(known.group)
        elif known is not None and known.node is not None:
            self.nodes.add(known.node)


class Pods:
    """All pods of a cluster."""

    def __init__(self, engine: EngineName) -> None:
        self._kai = engine == "kai"
        self._known: dict[Key, Known] = {}
        self._groups: dict[str, set[Key]] = {}
        self._on: dict[str, set[Key]] = {}
        self.by_memory: set[str] = set()
        """Groups, some of them gone, with pods that ask for memory of a GPU: what that is depends on all nodes."""

    def renew(self, items: dict[Key, Item]) -> None:
        """These are all that there are."""
        for key in self._known.keys() - items.keys():
            self.change(key, None, Touched())
        for key, item in items.items():
            if key not in self._known or self._known[key].item is not item:
                self.change(key, item, Touched())

    def change(self, key: Key, item: Item | None, touched: Touched) -> None:
        """The pod is ``item`` now, None: it is gone. Where it counts, and where it did, is ``touched``."""
        before = self._known.pop(key, None)
        touched.add(before)
        if before is not None:
            _leave(self._groups, before.group, key)
            _leave(self._on, before.node, key)
        if item is None:
            return
        known = self._known[key] = self._read(key, item)
        touched.add(known)
        touched.pods.add(key)
        if known.group is not None:
            self._groups.setdefault(known.group, set()).add(key)
            if self._kai and known.pod is not None and kai.counts_by_memory(known.pod):
                self.by_memory.add(known.group)
        if known.node is not None:
            self._on.setdefault(known.node, set()).add(key)

    def groups_on(self, node: str) -> set[str]:
        """Groups with pods that name the node."""
        return {group for key in self._on.get(node, ()) if (group := self._known[key].group) is not None}

    def groups(self) -> list[str]:
        """All groups that there are."""
        return list(self._groups)

    def first(self, group: str) -> SinglePod | None:
        """The pod of a group that a list has first; None where there is no such group."""
        found = self._groups.get(group)
        return self._known[min(found)].pod if found else None

    def together(self, touched: Touched) -> set[Key]:
        """All pods that are translated together with what is touched."""
        found = {key for key in touched.pods if key in self._known}
        for group in touched.groups:
            found |= self._groups.get(group, set())
        for node in touched.nodes:
            found |= {key for key in self._on.get(node, ()) if self._known[key].group is None}
        return found

    def read(self, keys: Iterable[Key], findings: Findings) -> list[SinglePod]:
        """These pods by namespace and name, as if they had just been read, and so with all that was found."""
        found: list[SinglePod] = []
        for key in sorted(keys):
            known = self._known[key]
            if known.findings is not None:
                findings.take(known.findings)
            if known.pod is not None:
                known.pod.made.root.findings = findings
                found.append(known.pod)
        return found

    def _read(self, key: Key, item: Item) -> Known:
        findings = Findings()
        made = next(objects([(("Pod", *key), item)], findings), None)
        pod = None if made is None else read_pod(made)
        if pod is None:
            return Known(item, None, findings, None, None)
        noticed = findings if findings.all() else None
        group = kai.group(pod) if self._kai else yunikorn.application(pod)
        belongs = kai.belongs(pod) if self._kai else yunikorn.belongs(pod)
        pod = replace(pod, tasks={})
        return Known(item, pod, noticed, group if belongs else None, pod.spec.node_name)


def _leave(of: dict[str, set[Key]], name: str | None, key: Key) -> None:
    if name is not None and (found := of.get(name)) is not None:
        found.discard(key)
        if not found:
            del of[name]
