"""Translations of a cluster, one after another: what did not change is not translated again; and what changed between
two of them, as a delta and in a sentence.

A Kueue Workload is read by itself, given the queues and classes. So where only Workloads changed, those alone are read
again, with the configuration that was read before. Pods of KAI and YuniKorn: ``grouped``.

Where there are so many findings that not all of them are listed, they are those of the last time that all was read,
which is then not longer ago than a minute.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any, Protocol, TypeVar

import msgspec

from app.clusters.schemas import QueueUse, UseReport
from app.following.grouped import LISTED, Grouped, Translated, merged, only, translate, without
from app.following.mirror import View
from app.following.objects import WORK
from app.formats.kueue.considered import LocalQueue, read_consumed, read_local_queue
from app.formats.manifests import Within, system_of
from app.formats.objects import Item, Key, id_of, key_of, part
from app.formats.reader import Findings, Reader
from app.solver.engine import facts_of
from app.solver.model import base
from app.solver.model.configuration import Configuration, EngineName, Queue
from app.solver.model.kueue import QueueState as LocalQueueState
from app.solver.model.problems import few
from app.solver.model.state import (
    OVER,
    AskChanges,
    Delta,
    NodeChanges,
    QueueState,
    Reservation,
    ReservationChanges,
    ReservationName,
    Task,
    TaskChanges,
    TaskName,
    TaskOf,
    Workload,
    WorkloadChanges,
)

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


T = TypeVar("T")
Cell = tuple[str, str]
"""A flavor, empty where there is none, and a resource. Amounts of it are in steps."""
_NOTHING_CONSUMED = QueueState(kueue=LocalQueueState())
_NAMED = 5


def delta(old: Translated, new: Translated, generation: int, versions: dict[str, str]) -> Delta:
    """From ``old``, which is what the snapshot has at ``generation``, to ``new``."""
    nodes = _changes(old.nodes, new.nodes)
    workloads = _changes(old.workloads, new.workloads)
    asks = _changes(old.asks, new.asks)
    tasks, whole = _tasks(old.workloads, workloads[1])
    return Delta(
        generation=generation,
        nodes=NodeChanges(add=nodes[0], change=nodes[1], remove=nodes[2]),
        workloads=WorkloadChanges(add=workloads[0], change=whole, remove=workloads[2]),
        tasks=tasks,
        asks=AskChanges(add=asks[0], change=asks[1], remove=asks[2]),
        queues=_consumed(old.queues, new.queues),
        reservations=_reservations(old.reservations, new.reservations),
        disruption_budgets=None if old.budgets == new.budgets else new.budgets,
        findings=None if old.of_state == new.of_state else new.of_state,
        resource_versions=versions,
    )


def _reservations(old: Mapping[str, Reservation], new: Mapping[str, Reservation]) -> ReservationChanges:
    """A claim that is not what it was is given up, and made anew."""
    added, changed, removed = _changes(old, new)
    gone = [old[name] for name in (*removed, *(held.ask.id for held in changed))]
    return ReservationChanges(
        add=[*added, *changed], remove=[ReservationName(node=held.node, ask=held.ask.id) for held in gone]
    )


def _consumed(old: Mapping[str, QueueState], new: Mapping[str, QueueState]) -> dict[str, QueueState]:
    """What LocalQueues say anew; of one that is gone nothing is known."""
    gone = {name: _NOTHING_CONSUMED for name, of in old.items() if name not in new and of != _NOTHING_CONSUMED}
    return gone | {name: of for name, of in new.items() if old.get(name) != of}


def _changes(old: Mapping[str, T], new: Mapping[str, T]) -> tuple[list[T], list[T], list[str]]:
    """Added, changed, removed."""
    added = [item for name, item in new.items() if name not in old]
    changed = [item for name, item in new.items() if name in old and old[name] is not item and old[name] != item]
    return added, changed, [name for name in old if name not in new]


def _tasks(old: Mapping[str, Workload], changed: list[Workload]) -> tuple[TaskChanges, list[Workload]]:
    """Where nothing but a few of a workload's tasks changed, those; the workloads that are told whole."""
    add: list[TaskOf] = []
    change: list[TaskOf] = []
    remove: list[TaskName] = []
    whole: list[Workload] = []
    for new in changed:
        was = old[new.id]
        before, now = {task.name: task for task in was.tasks}, {task.name: task for task in new.tasks}
        added, altered, removed = _changes(before, now)
        # Tasks keep their places, and new ones come last: what that does not give is told whole.
        order = [name for name in before if name in now] + [task.name for task in added]
        few = 2 * (len(added) + len(altered) + len(removed)) < len(new.tasks) and len(now) == len(new.tasks)
        if few and order == list(now) and msgspec.structs.replace(was, tasks=new.tasks) == new:
            add += [TaskOf(workload=new.id, task=task) for task in added]
            change += [TaskOf(workload=new.id, task=task) for task in altered]
            remove += [TaskName(workload=new.id, task=name) for name in removed]
        else:
            whole.append(new)
    return TaskChanges(add=add, change=change, remove=remove), whole


def use_of(translated: Translated, moment: datetime) -> UseReport:
    """What each queue uses with all below it. Work whose eviction has begun counts as gone, as it does for engines."""
    held, waiting = defaultdict[str, Counter[Cell]](Counter), defaultdict[str, Counter[Cell]](Counter)
    for workload in translated.workloads.values():
        if not workload.evicted:
            _add(held[workload.queue], workload.tasks)
    for ask in translated.asks.values():
        _add(waiting[ask.queue], ask.tasks)
    parents = {queue.name: queue.parent for queue in translated.configuration.queues}
    total = _use(sum(held.values(), Counter[Cell]()), sum(waiting.values(), Counter[Cell]()))
    for of in (held, waiting):
        for name, amounts in [(name, Counter(direct)) for name, direct in of.items()]:
            above = parents.get(name)
            while above is not None:
                of[above].update(amounts)
                above = parents.get(above)
    each = {name: _use(held[name], waiting[name]) for name in sorted({*held, *waiting})}
    return UseReport(
        at=moment, total=total, queues={name: use for name, use in each.items() if use.usage or use.waiting}
    )


def _add(into: Counter[Cell], tasks: Iterable[Task]) -> None:
    for task in tasks:
        if task.state not in OVER:
            flavors = task.flavors or {}
            for resource, amount in task.requests.items():
                with suppress(base.QuantityError):  # not every engine reads every amount
                    steps = base.parse_quantity(amount, base.scale_of(resource))
                    into[flavors.get(resource, ""), resource] += steps * task.count


_MOST_USED, _MOST_NAMES = 2.0**63, 1000
"""Units of a resource, and resources and flavors, that a report may have: what one tenant asks for hides nobody else's
use."""


def _use(held: Counter[Cell], waiting: Counter[Cell]) -> QueueUse:
    usage = defaultdict[str, dict[str, float]](dict)
    for (flavor, resource), steps in sorted(held.items()):
        if steps and len(usage[flavor]) < _MOST_NAMES:
            usage[flavor][resource] = _units(steps, resource)
    wanted = Counter[str]()
    for (_, resource), steps in waiting.items():
        wanted[resource] += steps
    some = islice(((of, steps) for of, steps in sorted(wanted.items()) if steps), _MOST_NAMES)
    return QueueUse(
        usage=dict(islice(((flavor, of) for flavor, of in usage.items() if of), _MOST_NAMES)),
        waiting={of: _units(steps, of) for of, steps in some},
    )


def _units(steps: int, resource: str) -> float:
    return min(base.units(steps, resource), _MOST_USED)


def change_summary(old: Configuration | None, new: Configuration) -> str:
    """What changed, for the comment of a revision."""
    if old is None:
        return f"followed from the cluster: {len(new.queues)} queues"
    said = [
        *_said("queue", {q.name: q for q in old.queues}, {q.name: q for q in new.queues}),
        *_said("flavor", {f.name: f for f in old.flavors}, {f.name: f for f in new.flavors}),
    ]
    before, after = _objects(old), _objects(new)
    for kind in sorted({*before, *after}):
        said += _said(kind, before.get(kind, {}), after.get(kind, {}))
    if old.settings != new.settings:
        said.append(_settings_said(old, new))
    same = msgspec.structs.replace(new, findings=old.findings) == old
    return "followed from the cluster: " + ("; ".join(said) or ("its findings" if same else "the order of queues"))


def _settings_said(old: Configuration, new: Configuration) -> str:
    before, now = (None if of.engine is None else facts_of(of.engine).release(of) for of in (old, new))
    return "settings changed" if before == now else f"release {before} became {now}"


def _objects(configuration: Configuration) -> dict[str, dict[str, Any]]:
    """The objects that it keeps whole, by kind and name."""
    kinds = defaultdict[str, dict[str, Any]](dict)
    for document in configuration.native.objects if configuration.native is not None else ():
        kinds[str(document.get("kind"))][id_of(key_of(document))] = document
    return kinds


def _said(kind: str, old: Mapping[str, T], new: Mapping[str, T]) -> list[str]:
    added, changed, removed = _changes({n: (n, v) for n, v in old.items()}, {n: (n, v) for n, v in new.items()})
    names = {"added": [n for n, _ in added], "changed": [n for n, _ in changed], "removed": removed}
    return [f"{kind} {few([name[:100] for name in of], _NAMED)} {word}" for word, of in names.items() if of]
