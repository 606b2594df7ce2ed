"""A cluster's objects as configuration, state and asks; and pods translated again where a change bears on them.

Pods stand together in groups and applications, and those of other schedulers take room on nodes. Each pod is read once
as long as it stays the same; the groups and nodes that a change touches are put together again by the translation that
reads everything: nodes from all of their pods, groups from those that changed, where that is enough (``spliced``).
Where queues or priority classes changed, all of them are.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from operator import attrgetter
from typing import Any, TypeVar, cast

import msgspec

from app.base.documents import Path
from app.following.mirror import View
from app.following.objects import FOLLOWED, WORK
from app.following.pods import Pods, Touched
from app.formats.manifests import OF_STATE, Within, read_manifests
from app.formats.objects import Item, Key, id_of, part
from app.formats.objects import key_of as item_key
from app.formats.reader import Findings, worst
from app.formats.yunikorn.pods import DYNAMIC, Placement, Rejected, dynamic_queues, queue_path, said_of_dynamic
from app.solver.engine import facts_of
from app.solver.model.base import NativeDocuments
from app.solver.model.configuration import Configuration, EngineName, Flavor, Queue, Settings
from app.solver.model.kueue import Topology
from app.solver.model.problems import Finding, pointer
from app.solver.model.state import (
    OVER,
    Ask,
    DisruptionBudget,
    Node,
    QueueState,
    Reservation,
    State,
    Task,
    TaskOf,
    Workload,
)

LISTED = 200
"""How many findings of one kind are listed: whoever follows a cluster wants to know each."""
_OF_USERS = "no-queue"
_WORK = ("/Workload/", "/Pod/", "/PodGroup/")
"""Work in a queue that does not exist: its user's mistake, and nothing that is left out."""


_LONGEST = 1000


def sayable(finding: Finding) -> Finding:
    """The same in a few words that the service takes: objects, whose words it repeats, may hold a NUL, and a text of
    any length, beside which no other finding would find room."""
    texts = {"pointer": finding.pointer, "detail": finding.detail}
    short = {name: text[:_LONGEST].replace("\0", "\ufffd") for name, text in texts.items()}
    return finding if short == texts else msgspec.structs.replace(finding, **short)


@dataclass(frozen=True, slots=True)
class Translated:
    """What a cluster is in Arbiter's words. ``local_queues``: the ClusterQueue of each; values of classes by
    name, those of Kubernetes and Kueue's apart; ``queues``: what LocalQueues have consumed, where that counts;
    ``reservations``: by ask, pods nominated to a node; ``budgets``: PodDisruptionBudgets; ``of_state``: those of
    ``findings`` that the state carries; ``release``: of the system, where the cluster says which is installed."""

    configuration: Configuration
    nodes: dict[str, Node]
    workloads: dict[str, Workload]
    asks: dict[str, Ask]
    findings: list[Finding]
    local_queues: dict[str, str]
    priority_classes: dict[str, int]
    workload_priority_classes: dict[str, int] = field(default_factory=dict[str, int])
    queues: dict[str, QueueState] = field(default_factory=dict[str, QueueState])
    reservations: dict[str, Reservation] = field(default_factory=dict[str, Reservation])
    budgets: list[DisruptionBudget] = field(default_factory=list[DisruptionBudget])
    of_state: list[Finding] = field(default_factory=list[Finding])
    release: str | None = None

    def carrying(self) -> "Translated":
        """The same with ``findings`` that bear on decisions in the documents that they are about, in an order of their
        own. Without a place they are about how objects stand together, which changes as the state does."""
        findings = list(map(sayable, self.findings))
        ordered = sorted(findings, key=lambda finding: (finding.pointer, finding.rule, finding.detail))
        of_state = [
            finding for finding in ordered if not finding.pointer or finding.pointer.split("/", 2)[1] in OF_STATE
        ]
        of_configuration = [
            finding for finding in ordered if finding.pointer and finding.pointer.split("/", 2)[1] not in OF_STATE
        ]
        configuration = msgspec.structs.replace(self.configuration, findings=worst(of_configuration))
        return replace(self, configuration=configuration, of_state=worst(of_state), findings=findings)

    def state(self) -> State:
        """What runs, and what bears on it."""
        return State(
            nodes=list(self.nodes.values()), workloads=list(self.workloads.values()), queues=self.queues,
            reservations=list(self.reservations.values()), disruption_budgets=self.budgets, findings=self.of_state,
        )  # fmt: skip


Name = tuple[str, str]
"""A kind of what a cluster is made of in Arbiter's words, and a name of that kind."""
STATE_PARTS = ("workloads", "asks", "reservations", "nodes", "budgets", "consumed")
"""Kinds that a state has, and what waits beside it; others are of a configuration."""


def budget_name(of: DisruptionBudget) -> str:
    """With its namespace."""
    return f"{of.queue}/{of.name}"


def object_name(of: Item) -> str:
    """Of one that a configuration keeps whole: with its kind and namespace."""
    return f"{of.get('kind')} {id_of(item_key(of))}"


def parts_of(of: Translated) -> dict[str, dict[str, Any]]:
    """All that it is made of, by kind and name."""
    own = of.configuration
    return {
        "workloads": of.workloads, "asks": of.asks, "reservations": of.reservations, "nodes": of.nodes,
        "budgets": {budget_name(budget): budget for budget in of.budgets}, "consumed": of.queues,
        "queues": {queue.name: queue for queue in own.queues}, "flavors": {item.name: item for item in own.flavors},
        "topologies": {item.name: item for item in own.topologies},
        "objects": {object_name(item): item for item in (own.native.objects if own.native is not None else ())},
    }  # fmt: skip


_PARTS: dict[Any, tuple[str, Callable[[Any], str], str]] = {
    Workload: ("workloads", attrgetter("id"), "{}"),
    TaskOf: ("workloads", attrgetter("workload"), "{}"),
    Ask: ("asks", attrgetter("id"), "{}"),
    Reservation: ("reservations", attrgetter("ask.id"), "{}"),
    Node: ("nodes", attrgetter("name"), "node {}, with all that is on it,"),
    DisruptionBudget: ("budgets", budget_name, "PodDisruptionBudget {}, so that what it protects may be a victim,"),
    QueueState: ("consumed", str, "what {} has consumed"),
    Queue: ("queues", attrgetter("name"), "queue {}, with all work in it,"),
    Flavor: ("flavors", attrgetter("name"), "flavor {}"),
    Topology: ("topologies", attrgetter("name"), "topology {}"),
    dict: ("objects", object_name, "{}"),
}
"""By type the kind, the name of item, and what goes without it, in words."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a pointer leads into. ``what``: goes without it; ``within``: the rest of the pointer; ``value``: there."""

    kind: str
    name: str
    what: str
    within: str
    value: Any


def part_at(body: Any, where: str) -> Part | None:
    """What of a document, or of a delta, a JSON pointer leads to or into; None: nothing that ``parts_of`` names."""
    names = [name.replace("~1", "/").replace("~0", "~") for name in where.split("/")[1:]]
    here, whole = body, False
    for i, name in enumerate(names):
        whole = whole or isinstance(here, NativeDocuments)
        here = _below(here, name)
        part = _PARTS.get(type(here)) if whole or not isinstance(here, dict) else None
        if part is not None:
            kind, named, what = part
            called, rest = name if isinstance(here, QueueState) else named(here), names[i + 1 :]
            return Part(kind, called, what, "/".join(rest), reduce(_below, rest, cast(Any, here)))
    return None


def _below(of: Any, part: str) -> Any:
    if isinstance(of, list):
        items = cast(list[Any], of)
        return items[int(part)] if part.isdecimal() and int(part) < len(items) else None
    if isinstance(of, dict):
        return cast(dict[str, Any], of).get(part)
    return getattr(of, part, None) if isinstance(of, msgspec.Struct) else None


def translate(
    engine: EngineName, view: View, findings: Findings | None = None, within: Within | None = None,
    known: Configuration | None = None,
) -> Translated:  # fmt: skip
    """All of ``view``. Pointers of findings begin with kind, namespace and name of the object. ``findings``: what was
    found before; ``within``: pods that were read before, and what all of this is some of; ``known``: the configuration,
    where it was read before."""
    findings = Findings(LISTED) if findings is None else findings
    layers = {kind.name: kind.layers for kind in FOLLOWED[engine] if kind.layers}
    items = {**view.items, **{kind: _layered(view.items[kind], names) for kind, names in layers.items()}}
    read = read_manifests(_documents(items), engine, findings, known, within, view.now, view.versions)
    return Translated(
        configuration=read.configuration,
        nodes={node.name: node for node in read.state.nodes},
        workloads={workload.id: workload for workload in read.state.workloads},
        asks={ask.id: ask for ask in read.asks},
        findings=[
            msgspec.structs.replace(finding, severity="warning")
            if finding.rule == _OF_USERS and finding.pointer.startswith(_WORK)
            else finding
            for finding in read.findings
        ],
        local_queues=_local_queues(view.items.get("LocalQueue", {})),
        priority_classes=_values(view.items.get("PriorityClass", {})),
        workload_priority_classes=_values(view.items.get("WorkloadPriorityClass", {})),
        queues=read.state.queues,
        reservations={held.ask.id: held for held in read.state.reservations},
        budgets=read.state.disruption_budgets,
        release=read.release,
    )


def settled(stored: Settings, translated: Translated) -> Settings:
    """``stored``, but for what the cluster says itself: all where an object of it holds the settings (Kueue: the
    manager's configuration), else the release that is installed."""
    own = translated.configuration
    if own.native is not None and own.native.kueue:
        return own.settings
    if translated.release is None or own.engine is None:
        return stored
    block = facts_of(own.engine).block
    given = getattr(stored, block) or getattr(own.settings, block)
    release: dict[str, Any] = {block: msgspec.structs.replace(given, release=translated.release)}
    return msgspec.structs.replace(stored, **release)


def _documents(items: dict[str, dict[Key, Item]]) -> list[tuple[Path, Any]]:
    return [((kind, *key), of[key]) for kind, of in items.items() for key in sorted(of)]


def _layered(items: dict[Key, Item], names: tuple[str, ...]) -> dict[Key, Item]:
    """The objects of these names as one, see ``Kind``."""
    named = {name: item for (_, name), item in items.items() if name in names}
    space = next((space for space, _ in items), "")
    if not named:
        return {}
    data = {key: value for name in names if name in named for key, value in part(named[name], "data").items()}
    name = max(named, key=names.index)
    return {(space, name): {**named[name], "data": data}}


def _local_queues(items: dict[Key, Item]) -> dict[str, str]:
    queues = {
        f"{space}/{name}": part(item, "spec").get("clusterQueue") for (space, name), item in sorted(items.items())
    }
    return {name: queue for name, queue in queues.items() if isinstance(queue, str) and "\0" not in queue}


def _values(classes: dict[Key, Item]) -> dict[str, int]:
    values = {name: item.get("value") for (_, name), item in sorted(classes.items())}
    return {name: value for name, value in values.items() if isinstance(value, int) and abs(value) <= _INT32}


_INT32 = 2**31
"""As a server has the values of classes, but for one."""
Of = TypeVar("Of", Workload, Ask)


def key_of(space: str, task: str) -> Key:
    """The pod of a task, and what else is named with its namespace or within ``space``. KAI's tasks have the name of
    their pod, which is in the namespace of the group; YuniKorn's have both."""
    within, _, name = task.rpartition("/")
    return within or space, name


def untouched(tasks: Iterable[Task], space: str, changed: Collection[Key]) -> Key | None:
    """A pod that did not change of those behind ``tasks``, and that is not done."""
    for task in tasks:
        if task.state not in OVER and (key := key_of(space, task.name)) not in changed:
            return key
    return None


def spliced(old: Of | None, new: Of, space: str, read: Collection[Key]) -> Of:
    """A translation of a few pods of a group put into that of all of its pods: ``new``, which is of the pods in
    ``read`` alone, with the tasks that ``old`` has of others.

    The tasks of a workload are those of its pods, in the order of a list. So a group of which few pods changed is
    translated from these and from the pods on which what is said of the whole group hangs; the tasks of all others stay
    as they are.
    """
    if old is None:
        return new
    tasks, again = list(old.tasks), {key_of(space, task.name): task for task in new.tasks}
    for key in read:
        index = bisect_left(tasks, key, key=lambda task: key_of(space, task.name))
        there = index < len(tasks) and key_of(space, tasks[index].name) == key
        task = again.get(key)
        if task is not None:
            tasks[index : index + there] = [task]
        elif there:
            del tasks[index]
    return msgspec.structs.replace(new, tasks=tasks)


T = TypeVar("T")
_DEPTH = 4


def only(view: View, keys: Mapping[str, Iterable[Key]]) -> View:
    """``view`` with these objects alone of the kinds that ``keys`` names."""
    items = dict(view.items)
    for kind, of in keys.items():
        if (every := items.get(kind)) is not None:
            items[kind] = {key: every[key] for key in of if key in every}
    return replace(view, items=items)


def without(of: Mapping[str, T], gone: Collection[str]) -> dict[str, T]:
    """A copy of ``of`` that lacks some."""
    left = dict(of)
    for name in gone:
        left.pop(name, None)
    return left


def merged(old: list[Finding], new: list[Finding], about: Iterable[tuple[str, Key]]) -> list[Finding]:
    """``old`` but for what it says about these objects, and what ``new`` says of objects of their kinds. What is said
    of a queue that placement made stays, and is said once, whoever needs it."""
    gone = {pointer(kind, *key) for kind, key in about} if old else set[str]()
    kinds = {kind for kind, _ in about} if new else set[str]()
    staying = [finding for finding in old if finding.rule == DYNAMIC or _object(finding) not in gone]
    details = {finding.detail for finding in staying if finding.rule == DYNAMIC}
    more = [finding for finding in new if finding.pointer.startswith(tuple(f"/{kind}/" for kind in kinds))]
    return [*staying, *(finding for finding in more if finding.rule != DYNAMIC or finding.detail not in details)]


def _object(finding: Finding) -> str:
    """The pointer to the object that it is about."""
    return "/".join(finding.pointer.split("/", _DEPTH)[:_DEPTH])


_GROUP, _POD, _NODE = "PodGroup", "Pod", "Node"


class Grouped:
    """One cluster's, from one translation to the next."""

    def __init__(self, engine: EngineName) -> None:
        self._engine: EngineName = engine
        self._of_objects = _GROUP in WORK[engine]  # KAI's PodGroups; YuniKorn's applications are what their pods say
        self._pods = Pods(engine)
        self._configured, self._placement = Configuration(), Placement(Configuration())
        self._leading: dict[str, tuple[str, Key, Key]] = {}

    def whole(self, view: View) -> Translated:
        findings = Findings(LISTED)
        self._pods.due(view.now)
        self._pods.renew(view.items[_POD])
        within = Within(self._pods.read(view.items[_POD], findings), _names(view))
        translated = translate(self._engine, only(view, {_POD: ()}), findings, within)
        queues = [queue for queue in translated.configuration.queues if not (queue.yunikorn and queue.yunikorn.dynamic)]
        self._configured = msgspec.structs.replace(translated.configuration, queues=queues)
        self._placement = Placement(self._configured)
        self._leading = {}
        self._look(self._pods.groups())
        return translated

    def some(self, last: Translated, view: View, changed: set[tuple[str, Key]]) -> Translated | None:
        if any(kind not in (_POD, _NODE, _GROUP) for kind, _ in changed) or self._pods.none() == bool(view.items[_POD]):
            return None  # with the first pod, and without the last one, something else is said of everything
        changed = changed | {(_POD, key) for key in self._pods.due(view.now)}
        touched, findings = self._touched(last, view, changed), Findings(LISTED)
        parts = self._parts(last, view, touched)
        keys = self._pods.together(touched, parts.values())
        within = Within(self._pods.read(keys, findings), _names(view))
        groups = touched.groups | parts.keys()
        some = {_POD: (), _NODE: [("", name) for name in touched.nodes], _GROUP: map(_key, groups)}
        part = translate(self._engine, only(view, some), findings, within, self._configured)
        about = {*changed, *((_POD, key) for key in keys), *((_GROUP, _key(group)) for group in groups)}
        about |= {(_NODE, ("", name)) for name in touched.nodes}
        translated = replace(
            last,
            nodes=without(last.nodes, touched.nodes) | part.nodes,
            workloads=without(last.workloads, groups) | _joined(last.workloads, part.workloads, parts),
            asks=self._asks(last, part, groups, parts, keys | touched.pods),
            findings=merged(last.findings, part.findings, about),
        )
        self._look(groups)
        return translated if self._of_objects else self._with_dynamic(translated)

    def due(self, now: datetime) -> bool:
        return self._pods.is_due(now)

    def _parts(self, last: Translated, view: View, touched: Touched) -> dict[str, set[Key]]:
        """Groups to be put together from some of their pods: from which. The others of ``touched.some`` are to be
        whole."""
        parts: dict[str, set[Key]] = {}
        for group, changed in touched.some.items():
            if group not in touched.groups:
                read = self._enough(last, view, group, changed)
                if read is None:
                    touched.groups.add(group)
                else:
                    parts[group] = read
        return parts

    def _enough(self, last: Translated, view: View, group: str, changed: set[Key]) -> set[Key] | None:
        """The pods that tell what becomes of a group of which some changed; None where all are needed for that."""
        members, (space, name) = self._pods.members(group), _key(group)
        if members is None or members.loose or self._about(group) != self._leading.get(group):
            return None
        if self._of_objects and (space, name) not in view.items[_GROUP]:
            return None
        read, before = set(changed), last.workloads.get(group)
        if before is None and self._pods.start(changed, group):
            return None  # what waited before waits beside something that runs now
        if before is not None:
            if (held := untouched(before.tasks, space, changed)) is None:
                return None
            read.add(held)
        if self._of_objects and (ask := last.asks.get(group)) is not None:
            waits = untouched(ask.tasks, space, changed)
            read |= {waits} if waits is not None else set()
        return read if self._of_objects else read | members.leading()

    def _look(self, groups: Iterable[str]) -> None:
        """Which queues YuniKorn's applications name, and on which pods what is said of them hangs."""
        for group in groups if not self._of_objects else ():
            about = self._about(group)
            if about is None:
                self._leading.pop(group, None)
            else:
                self._leading[group] = about

    def _about(self, group: str) -> tuple[str, Key, Key] | None:
        """The queue of a YuniKorn application, its first pod, and its oldest."""
        members, first = self._pods.members(group), self._pods.first(group)
        if self._of_objects or members is None or first is None:
            return None
        try:
            queue = queue_path(first, self._placement, lambda: self._pods.start(members.keys, group))
        except Rejected:
            queue = ""
        return queue, members.keys[0], members.ages[0][1]

    def _asks(
        self, last: Translated, part: Translated, groups: set[str], parts: dict[str, set[Key]], keys: set[Key]
    ) -> dict[str, Ask]:
        """One a group, or one a pod: of ``keys``."""
        if self._of_objects:
            return without(last.asks, groups) | _joined(last.asks, part.asks, parts)
        return without(last.asks, {id_of(key) for key in keys}) | part.asks

    def _touched(self, last: Translated, view: View, changed: set[tuple[str, Key]]) -> Touched:
        touched = Touched()
        for kind, key in changed:
            if kind == _POD:
                self._pods.change(key, view.items[_POD].get(key), touched)
            elif kind == _GROUP:
                touched.groups.add(f"{key[0]}/{key[1]}")
            else:
                touched.nodes.add(key[1])
                if (key[1] in last.nodes) != (key in view.items[_NODE]):
                    self._pods.on(key[1], touched)
        return touched

    def _with_dynamic(self, translated: Translated) -> Translated:
        """With the queues that placement must have made for all that there is, and nothing said of others."""
        own, used = self._configured, {queue for queue, _, _ in self._leading.values() if queue}
        dynamic = dynamic_queues({queue.name: queue for queue in own.queues}, used)
        said = set(map(said_of_dynamic, used))
        translated = replace(
            translated,
            findings=[finding for finding in translated.findings if finding.rule != DYNAMIC or finding.detail in said],
        )
        if translated.configuration.queues[len(own.queues) :] == dynamic:
            return translated
        return replace(translated, configuration=msgspec.structs.replace(own, queues=[*own.queues, *dynamic]))


def _joined(old: dict[str, Of], new: dict[str, Of], parts: dict[str, set[Key]]) -> dict[str, Of]:
    """``new``, in which those of ``parts`` lack all pods that were not read again."""
    joined = dict(new)
    for group in parts.keys() & new.keys():
        joined[group] = spliced(old.get(group), new[group], _key(group)[0], parts[group])
    return joined


def _key(group: str) -> Key:
    return key_of("", group)


def _names(view: View) -> set[str]:
    return {name for _, name in view.items[_NODE]}
