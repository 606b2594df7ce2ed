"""Translations of a cluster, one after another: what did not change is not translated again.

A Kueue Workload is read by itself, given the queues and classes. So where only Workloads changed, those alone are read
again, with the configuration that was read before. Pods of KAI and YuniKorn: ``grouped``.

Where there are so many findings that not all of them are listed, they are those of the last time that all was read,
which is then not longer ago than a minute.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Protocol

import msgspec

from app.following.grouped import LISTED, Grouped, Translated, merged, only, translate, without
from app.following.mirror import View
from app.following.objects import WORK
from app.formats.kueue.considered import LocalQueue, read_consumed, read_local_queue
from app.formats.manifests import Within, system_of
from app.formats.objects import Item, Key, id_of, part
from app.formats.reader import Findings, Reader
from app.solver.model.configuration import Configuration, EngineName, Queue
from app.solver.model.state import QueueState

_WORKLOAD, _LOCAL_QUEUE, _NODE, _POD = "Workload", "LocalQueue", "Node", "Pod"
_BUDGET, _NAMESPACE = "PodDisruptionBudget", "Namespace"
_ALONE = (_WORKLOAD, _LOCAL_QUEUE, _NODE, _POD)
"""Kinds of which one that changed bears on little else."""
_CONFIGURED = ("ClusterQueue", "Cohort", _LOCAL_QUEUE, "ResourceFlavor", "AdmissionCheck", "ConfigMap")
OLD_SECONDS = 60.0
_MOST = 0.2
"""Of all Workloads: where more changed, reading all of them is as quick."""


class Translator:
    """Translates views of one cluster, each in the light of the last."""

    def __init__(self, engine: EngineName) -> None:
        system = system_of(engine)
        grouped = system is not None and system.group is not None
        alone = _Workloads if _WORKLOAD in WORK[engine] else _PodsAlone
        self._way: _Way = Grouped(engine) if grouped else alone(engine)
        self._last: Translated | None = None
        self._whole_at, self._stale = 0.0, False

    def translate(self, view: View) -> Translated:
        """All of ``view``, the same as ``translating.translate`` says but for the order of what is in it, with findings
        in the documents."""
        last, translated = self._last, None
        if last is not None and view.changed is not None and not self._findings_are_old():
            translated = self._way.some(last, view, view.changed)
        if last is None or translated is None:
            self._whole_at, self._stale = time.monotonic(), False
            translated = self._way.whole(view)
        elif max(len(last.findings), len(translated.findings)) >= LISTED:
            self._stale = True
            translated = replace(translated, findings=last.findings)
        self._last = translated
        return translated.carrying()

    def due(self, now: datetime) -> bool:
        """Whether something counts otherwise by now though it did not change."""
        return self._way.due(now)

    def _findings_are_old(self) -> bool:
        return self._stale and time.monotonic() - self._whole_at > OLD_SECONDS


class _Way(Protocol):
    """How objects of one kind of engine hang together."""

    def whole(self, view: View) -> Translated:
        """All is read."""
        ...

    def some(self, last: Translated, view: View, changed: set[tuple[str, Key]]) -> Translated | None:
        """What changed is read, the rest is as it was in ``last``; None where all must be read."""
        ...

    def due(self, now: datetime) -> bool:
        """Whether something counts otherwise by now."""
        return False


class _OnNodes:
    """Pods by the node that they name, as they were last taken."""

    def __init__(self, pods: Mapping[Key, Item]) -> None:
        self._on: dict[str, set[Key]] = {}
        self._nodes: dict[Key, str] = {}
        self.take(pods, pods)

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def on(self, node: str) -> Iterable[Key]:
        """Those on it."""
        return self._on.get(node, ())

    def take(self, keys: Iterable[Key], pods: Mapping[Key, Item]) -> set[str]:
        """These are now as ``pods`` has them, or gone: the nodes on which they were, and are."""
        touched: set[str] = set()
        for key in keys:
            if (old := self._nodes.pop(key, None)) is not None:
                self._on[old].discard(key)
                touched.add(old)
            if key in pods and isinstance(node := part(pods[key], "spec").get("nodeName"), str):
                self._nodes[key] = node
                self._on.setdefault(node, set()).add(key)
                touched.add(node)
        return touched


class _Workloads(_Way):
    """Kueue's. Where flavors have topologies, nodes are put together again that changed themselves, or of which a pod
    did."""

    def __init__(self, engine: EngineName) -> None:
        self._engine: EngineName = engine
        self._configured = Configuration()
        self._local: dict[str, LocalQueue] = {}
        self._pods = _OnNodes({})

    def whole(self, view: View) -> Translated:
        translated = translate(self._engine, view)
        native = translated.configuration.native
        own = None if native is None else msgspec.structs.replace(native, objects=[])  # LocalQueues are among them
        self._configured = msgspec.structs.replace(translated.configuration, native=own)
        self._local = {f"{space}/{name}": _read(item) for (space, name), item in view.items[_LOCAL_QUEUE].items()}
        self._pods = _OnNodes(view.items.get(_POD, {}))
        return translated

    def some(self, last: Translated, view: View, changed: set[tuple[str, Key]]) -> Translated | None:
        of: dict[str, set[Key]] = {kind: set() for kind in _ALONE}
        for kind, key in changed:
            if kind not in of:
                return None
            of[kind].add(key)
        if len(of[_WORKLOAD]) >= _MOST * len(view.items[_WORKLOAD]) > 0 or self._else(last, view, of):
            return None
        queues = self._consumed(last, view, of[_LOCAL_QUEUE])
        if queues is None:
            return None
        nodes, keys = {name for _, name in of[_NODE]}, of[_WORKLOAD]
        if of[_POD]:
            nodes |= self._pods.take(of[_POD], view.items[_POD])
        pods = {key for name in nodes for key in self._pods.on(name)}
        some = only(
            view, {_WORKLOAD: keys, _NODE: [("", name) for name in nodes], _POD: pods, **dict.fromkeys(_CONFIGURED, ())}
        )
        within = Within([], {name for _, name in view.items.get(_NODE, ())}, self._local)
        part = translate(self._engine, some, None, within, self._configured)
        gone = {f"{space}/{name}" for space, name in keys}
        about = {*((_WORKLOAD, key) for key in keys), *((_NODE, ("", name)) for name in nodes)}
        about |= {(_POD, key) for key in pods | of[_POD]}
        return replace(
            last,
            nodes=without(last.nodes, nodes) | part.nodes,
            workloads=without(last.workloads, gone) | part.workloads,
            asks=without(last.asks, gone) | part.asks,
            findings=merged(last.findings, part.findings, about),
            queues=last.queues | queues,
        )

    def _else(self, last: Translated, view: View, of: dict[str, set[Key]]) -> bool:
        """Whether nodes or pods changed so that something else is said of everything: the first came, or the last went,
        or there are nodes and no topology that decides anything."""
        if not of[_NODE] and not of[_POD]:
            return False
        nobody = not view.items[_NODE] or not view.items[_POD] or not self._pods
        return nobody or not last.configuration.topologies

    def _consumed(self, last: Translated, view: View, changed: set[Key]) -> dict[str, QueueState] | None:
        """What these LocalQueues have consumed by now, where that is all that changed; None: it is not."""
        consumed: dict[str, QueueState] = {}
        for space, name in changed:
            item, known = view.items[_LOCAL_QUEUE].get((space, name)), f"{space}/{name}"
            if item is None or _read(item) != self._local.get(known):
                return None
            if known in last.queues:
                spec, status = (Reader(part(item, field), (), Findings()) for field in ("spec", "status"))
                consumed[known] = QueueState(kueue=read_consumed(spec, status))
        return consumed


class _PodsAlone(_Way):
    """kube-scheduler's: a pod is read by itself, and a node."""

    def __init__(self, engine: EngineName) -> None:
        self._engine: EngineName = engine
        self._pods = _OnNodes({})

    def whole(self, view: View) -> Translated:
        self._pods = _OnNodes(view.items[_POD])
        return translate(self._engine, view)

    def some(self, last: Translated, view: View, changed: set[tuple[str, Key]]) -> Translated | None:
        if any(kind not in (_POD, _NODE, _BUDGET) for kind, _ in changed):
            return None
        pods = {key for kind, key in changed if kind == _POD}
        nodes = {key for kind, key in changed if kind == _NODE}
        budgets = any(kind == _BUDGET for kind, _ in changed)
        for _, name in nodes:
            if (name in last.nodes) != (("", name) in view.items[_NODE]):
                pods |= self._named(view, name)
        if len(pods) >= _MOST * len(view.items[_POD]) > 0:
            return None
        self._pods.take(pods, view.items[_POD])
        objects: dict[str, Iterable[Key]] = {_POD: pods, _NODE: nodes}
        some = only(view, objects if budgets else {**objects, _BUDGET: ()})
        within = Within([], {name for _, name in view.items[_NODE]})
        spaces = {name for _, name in view.items.get(_NAMESPACE, ())}
        queues = [queue for queue in last.configuration.queues if queue.name in spaces]
        known = msgspec.structs.replace(last.configuration, queues=queues)
        part = translate(self._engine, replace(some, items={**some.items, _NAMESPACE: {}}), None, within, known)
        ids, names = {id_of(key) for key in pods}, {name for _, name in nodes}
        about = {(kind, key) for kind, of in ((_POD, pods), (_NODE, nodes)) for key in of}
        about |= {(_BUDGET, key) for key in view.items.get(_BUDGET, ())} if budgets else set()
        about |= {(kind, key) for kind, key in changed if kind == _BUDGET}
        translated = replace(
            last,
            nodes=without(last.nodes, names) | part.nodes,
            workloads=without(last.workloads, ids) | part.workloads,
            asks=without(last.asks, ids) | part.asks,
            reservations=without(last.reservations, ids) | part.reservations,
            budgets=part.budgets if budgets else last.budgets,
            findings=merged(last.findings, part.findings, about),
        )
        used = {work.queue for of in (translated.workloads, translated.asks) for work in of.values()}
        used.update(budget.queue for budget in translated.budgets)
        queues += [Queue(name=name) for name in sorted(used - spaces)]
        if queues == last.configuration.queues:
            return translated
        return replace(translated, configuration=msgspec.structs.replace(last.configuration, queues=queues))

    def _named(self, view: View, node: str) -> set[Key]:
        """Pods that name the node, or are nominated to it."""
        nominated = (
            key for key, item in view.items[_POD].items() if part(item, "status").get("nominatedNodeName") == node
        )
        return {*self._pods.on(node), *nominated}


def _read(item: Item) -> LocalQueue:
    return read_local_queue(Reader(part(item, "spec"), (), Findings()))
