"""Pods as they were read, each once as long as it stays the same; and which of them are translated together.

A pod of the followed scheduler stands in a group: KAI's PodGroup, YuniKorn's application. One of another scheduler
takes room on its node, and counts with the others there.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from heapq import heappop, heappush

import msgspec

from app.base import Lru
from app.formats.manifests import system_of
from app.formats.objects import Item, Key, objects
from app.formats.pods import PodSpec, SinglePod, read_pod, read_pod_spec
from app.formats.reader import Findings, Reader
from app.formats.yunikorn.pods import age
from app.solver.model.configuration import EngineName

_MOST, MOST_BYTES = 20_000, 64 << 20


class Specs:
    """Specs of pods that were read without a finding, each once: those that are made of one template differ in nothing
    that is read but their node."""

    def __init__(self) -> None:
        self._read: Lru[bytes, PodSpec] = Lru(_MOST, MOST_BYTES)

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


@dataclass(slots=True)
class Members:
    """The pods of one group, in the orders that a translation of the group asks for. ``keys``: as a list has them;
    ``ages``: the oldest first; ``loose``: how many don't name the group themselves."""

    keys: list[Key] = field(default_factory=list[Key])
    ages: list[tuple[tuple[bool, float], Key]] = field(default_factory=list[tuple[tuple[bool, float], Key]])
    loose: int = 0

    def add(self, key: Key, pod: SinglePod, *, loose: bool) -> None:
        """One more."""
        insort(self.keys, key)
        insort(self.ages, (age(pod), key))
        self.loose += loose

    def drop(self, key: Key, pod: SinglePod, *, loose: bool) -> None:
        """One that is among them is no more."""
        del self.keys[bisect_left(self.keys, key)]
        del self.ages[bisect_left(self.ages, (age(pod), key))]
        self.loose -= loose

    def leading(self) -> set[Key]:
        """On which what is said of the whole group hangs: the first, the oldest, and the oldest that has an age."""
        dated = bisect_left(self.ages, ((True, float("-inf")), ("", "")))
        return {self.keys[0], self.ages[0][1], *(key for _, key in self.ages[dated : dated + 1])}


@dataclass(frozen=True, slots=True)
class Known:
    """A pod that was read. ``findings``: None where there are none; ``group``: None for one of another scheduler;
    ``loose``: whether it does not name its group itself; ``node``: the one that it names."""

    item: Item
    pod: SinglePod | None
    findings: Findings | None
    group: str | None
    loose: bool
    node: str | None


@dataclass(slots=True)
class Touched:
    """What is to be translated again: ``groups`` whole, ``some`` pods of others, nodes with the pods of other
    schedulers on them, and pods that are in neither. ``some`` and ``pods`` may be gone."""

    groups: set[str] = field(default_factory=set[str])
    some: dict[str, set[Key]] = field(default_factory=dict[str, set[Key]])
    nodes: set[str] = field(default_factory=set[str])
    pods: set[Key] = field(default_factory=set[Key])

    def add(self, key: Key, known: Known | None) -> None:
        """Where that pod counts."""
        if known is not None and known.group is not None:
            self.some.setdefault(known.group, set()).add(key)
        elif known is not None and known.node is not None:
            self.nodes.add(known.node)


class Pods:
    """All pods of a cluster."""

    def __init__(self, engine: EngineName) -> None:
        system = system_of(engine)
        if system is None or system.belongs is None or system.group is None:
            raise KeyError(engine)
        self._belongs, self._group, self._system = system.belongs, system.group, system
        self._known: dict[Key, Known] = {}
        self._specs = Specs()
        self._groups: dict[str, Members] = {}
        self._on: dict[str, set[Key]] = {}
        self._turns: list[tuple[datetime, Key]] = []
        """A heap. Some are gone by then, or are another pod."""
        self._now = datetime.min.replace(tzinfo=UTC)

    def none(self) -> bool:
        """Whether there are none."""
        return not self._known

    def renew(self, items: dict[Key, Item]) -> None:
        """These are all that there are."""
        for key in self._known.keys() - items.keys():
            self.change(key, None, Touched())
        for key, item in items.items():
            if key not in self._known or self._known[key].item is not item:
                self.change(key, item, Touched())

    def change(self, key: Key, item: Item | None, touched: Touched) -> None:
        """The pod is ``item`` now, None: it is gone. Where it counts, and where it did, is ``touched``."""
        touched.pods.add(key)
        if (before := self._known.pop(key, None)) is not None:
            touched.add(key, before)
            self._leave(key, before)
        if item is None:
            return
        known = self._known[key] = self._read(key, item)
        touched.add(key, known)
        if known.group is not None and known.pod is not None:
            self._groups.setdefault(known.group, Members()).add(key, known.pod, loose=known.loose)
            if (turn := self._system.turns(known.pod)) is not None and turn >= self._now:
                heappush(self._turns, (turn, key))
        if known.node is not None:
            self._on.setdefault(known.node, set()).add(key)

    def _leave(self, key: Key, known: Known) -> None:
        if known.group is not None and known.pod is not None:
            members = self._groups[known.group]
            members.drop(key, known.pod, loose=known.loose)
            if not members.keys:
                del self._groups[known.group]
        if known.node is not None and (on := self._on.get(known.node)) is not None:
            on.discard(key)
            if not on:
                del self._on[known.node]

    def is_due(self, now: datetime) -> bool:
        """Whether some pod counts as something else by now."""
        return bool(self._turns) and self._turns[0][0] < now

    def due(self, now: datetime) -> set[Key]:
        """Pods that do; each is told once."""
        self._now, due = now, set[Key]()
        while self.is_due(now):
            due.add(heappop(self._turns)[1])
        return due & self._known.keys()

    def on(self, node: str, touched: Touched) -> None:
        """Pods that name the node are ``touched``: it came to be, or is gone."""
        for key in self._on.get(node, ()):
            touched.add(key, self._known[key])

    def groups(self) -> list[str]:
        """All groups that there are."""
        return list(self._groups)

    def members(self, group: str) -> Members | None:
        """The pods of a group; None where there is no such group."""
        return self._groups.get(group)

    def first(self, group: str) -> SinglePod | None:
        """The pod of a group that a list has first; None where there is no such group."""
        members = self._groups.get(group)
        return self._known[members.keys[0]].pod if members else None

    def start(self, keys: Iterable[Key], group: str) -> bool:
        """Whether one of these pods holds what it has, in the group."""
        pods = (known for key in keys if (known := self._known.get(key)) is not None and known.group == group)
        return any(known.pod is not None and known.pod.phase in ("running", "releasing") for known in pods)

    def together(self, touched: Touched, more: Iterable[set[Key]]) -> set[Key]:
        """All pods that there are of what is touched, and ``more``."""
        keys = touched.pods.union(*touched.some.values(), *more)
        for group in touched.groups:
            if (members := self._groups.get(group)) is not None:
                keys.update(members.keys)
        keys = {key for key in keys if key in self._known}
        for node in touched.nodes:
            keys |= {key for key in self._on.get(node, ()) if self._known[key].group is None}
        return keys

    def read(self, keys: Iterable[Key], findings: Findings) -> list[SinglePod]:
        """These pods by namespace and name, as if they had just been read, and so with all that was found."""
        pods: list[SinglePod] = []
        for key in sorted(keys):
            known = self._known[key]
            if known.findings is not None:
                findings.take(known.findings)
            if known.pod is not None:
                known.pod.manifest.root.findings = findings
                pods.append(known.pod)
        return pods

    def _read(self, key: Key, item: Item) -> Known:
        findings = Findings()
        document = next(objects([(("Pod", *key), item)], findings), None)
        pod = None if document is None else read_pod(document, self._specs.read)
        if pod is None:
            return Known(item, None, findings, None, loose=False, node=None)
        noticed = findings if findings.all() else None
        group = self._group(pod) if self._belongs(pod) else None
        loose = not self._system.names_group(pod)
        return Known(item, replace(pod, tasks={}), noticed, group, loose=loose, node=pod.spec.node_name)
