"""Kubernetes objects of any of the systems on it, put together: configuration, what runs, what waits."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as with_
from datetime import UTC, datetime
from importlib import import_module
from itertools import chain
from typing import Any, Literal

from msgspec.structs import replace

from app.base.documents import Path
from app.formats.admission import KINDS as OF_ADMISSION
from app.formats.exported import Exported
from app.formats.extender import Around, Recogniser
from app.formats.kueue.considered import LocalQueue
from app.formats.objects import (
    SYSTEM_CLASSES,
    Classes,
    Followed,
    Object,
    objects,
    read_classes,
    unique,
    unknown_kind,
    whole,
)
from app.formats.pods import Pod, PodSpec, SinglePod, read_cluster_nodes, read_pod, read_pod_spec, read_pods
from app.formats.reader import Effect, Fields, Findings, Imported, Reader, as_of
from app.formats.work.read import Cluster, Planned
from app.solver.engine import Facts, all_facts, facts_of
from app.solver.model.base import NativeDocuments
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.problems import pointer
from app.solver.model.state import Ask, Node, QueueState, State, Workload

OF_STATE = frozenset({"Workload", "PodGroup", "Pod", "Node", "Namespace", "PodDisruptionBudget", *OF_ADMISSION})
"""Kinds of objects that run, wait or are there; the others are read for a configuration."""
Role = Literal["configuration", "work", "classes"]
"""What an object of a system's own is read for; ``classes``: it is a priority class."""
Documents = list[tuple[Path, Any]]
Belongs = Callable[[SinglePod], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A system's documents: what reads and writes them, and by what they are known. It is ``SYSTEM`` of the module
    that ``Facts.formats`` names; what all systems share asks it, and never for a name."""

    facts: Facts
    export: Callable[[Configuration], Exported]
    """Writes a configuration in its words."""
    fields: Fields = field(default_factory=dict[str, Mapping[str, Effect]])
    """What becomes of every field of its documents: held by tests, and shown in docs/formats.md."""
    keys: tuple[str, ...] = ()
    """At the top of documents: what hints that one is its, and no request of Arbiter."""
    unpacked: Callable[[bytes], bytes] = lambda text: text
    """The text in an archive that its tools write; other text as it is. Raises Unreadable."""
    yson: bool = False
    """Whether it writes YSON."""
    owns: Callable[[Documents], bool] = lambda _: False
    """Whether all of them are documents that it shows of itself, and no objects of Kubernetes."""
    is_own: Callable[[Any], bool] = lambda _: False
    """Whether one may be such a document."""
    read_own: Callable[[Documents, Findings, Configuration | None], Imported] | None = None
    """Reads those. None: there are none."""
    read: "Callable[[Reading], Imported] | None" = None
    """Reads objects of Kubernetes. None: it does not run there."""
    precedence: int = 0
    """Of several systems with as many objects in a source the one with the lowest is read."""
    everywhere: bool = False
    """Whether it is in every cluster of Kubernetes, so that it is read where no other is."""
    place: Callable[[Object], Role | None] = lambda _: None
    """What an object of its own is read for. None: it is none."""
    groups: tuple[str, ...] = ()
    """API groups of which a kind that is not known may matter; clusters have many others."""
    files: tuple[str, ...] = ()
    """At the top of its files that say no kind."""
    taken_apart: Callable[[Documents], Documents] = lambda documents: documents
    """Documents with those that hold objects replaced by them."""
    belongs: Belongs | None = None
    """Whether it schedules a pod. None: it is not told pods by themselves."""
    group: Callable[[SinglePod], str] | None = None
    """With which others a pod of its own is read. None: each by itself, or not at all."""
    names_group: Belongs = lambda _: True
    """Whether a pod names that itself."""
    turns: Callable[[SinglePod], datetime | None] = lambda _: None
    """When a pod counts as something else, unchanged as it is."""
    read_spec: Callable[[Reader], PodSpec] = read_pod_spec
    """Reads the spec of a pod."""
    followed: Followed | None = None
    """How it is followed in a cluster. None: it is not."""
    recogniser: Callable[[Around], Recogniser] | None = None
    """Tells whose pods another scheduler would evict. None: it has no pods."""
    plan: Callable[[Documents, Cluster, str], list[Planned]] | None = None
    """The asks that documents of work would become, given the namespace of those that say none. None: it is not
    foretold."""


def system_of(name: str) -> System | None:
    """Of the engine called ``name``; None: it has no documents of its own. Raises KeyError."""
    module = facts_of(name).formats
    return None if module is None else import_module(module).SYSTEM


def systems() -> list[System]:
    """Of all engines that have documents, in the order of ``ENGINES``."""
    return [system for facts in all_facts() if (system := system_of(facts.name)) is not None]


def on_kubernetes() -> list[System]:
    """Those that run there, by precedence."""
    return sorted((system for system in systems() if system.read is not None), key=lambda system: system.precedence)


class Sorted:
    """The objects of a source by what reads them. ``of``, ``work``: by system, those of its own."""

    def __init__(self, documents: Documents, findings: Findings) -> None:
        self._systems = on_kubernetes()
        self.of: dict[str, list[Object]] = {system.facts.name: [] for system in self._systems}
        self.work: dict[str, list[Object]] = {system.facts.name: [] for system in self._systems}
        self.classes: list[Object] = []
        self.pods: list[Object] = []
        self.nodes: list[Object] = []
        self.around: list[Object] = []
        groups = {group for system in self._systems for group in system.groups}
        for manifest in objects(documents, findings):
            place = self._place(manifest)
            if place is None:
                unknown_kind(manifest, "warning" if manifest.group in groups else "info")
            else:
                place.append(manifest)

    @property
    def of_state(self) -> frozenset[str]:
        """Pointers of the objects of those kinds."""
        own = chain.from_iterable((*self.of.values(), *self.work.values()))
        every = (*own, *self.pods, *self.nodes, *self.around)
        return frozenset(pointer(*manifest.root.path) for manifest in every if manifest.kind in OF_STATE)

    def _place(self, manifest: Object) -> list[Object] | None:
        for system in self._systems:
            role = system.place(manifest)
            if role is not None:
                name = system.facts.name
                return {"configuration": self.of[name], "work": self.work[name], "classes": self.classes}[role]
        if manifest.kind == "PriorityClass":
            return self.classes
        if manifest.kind in OF_ADMISSION:
            return self.around
        if manifest.group == "":
            return {"Pod": self.pods, "Node": self.nodes, "Namespace": self.around}.get(manifest.kind)
        return None


def is_object(document: Any) -> bool:
    """Whether this is an object of Kubernetes, or a file of a system on it that says no kind."""
    if not isinstance(document, dict):
        return False
    if "kind" in document:
        return isinstance(document["kind"], str) and bool(document["kind"])  # pyright: ignore[reportUnknownArgumentType]
    return any(key in document for system in systems() for key in system.files)


@dataclass(frozen=True, slots=True)
class Within:
    """Pods that were read before, and what else there is of the cluster of which they are some: the names of all its
    nodes, and the ClusterQueue and Kueue's LocalQueues by id."""

    pods: list[SinglePod]
    nodes: Collection[str]
    local_queues: Mapping[str, LocalQueue] = field(default_factory=dict[str, LocalQueue])


def read_manifests(
    documents: list[tuple[Path, Any]], engine: EngineName | None, findings: Findings,
    known: Configuration | None = None, within: Within | None = None, now: datetime | None = None,
    complete: Collection[str] = (),
) -> Imported:  # fmt: skip
    """Read the objects of one system. ``engine`` None: the one that most of them belong to. ``known``: the
    configuration that counts in place of the source's. ``within``: the documents are no whole source. ``now``: when all
    of this is so; None: as the source tells, else now; ``complete``: kinds of which there is nothing beside these."""
    source = Sorted(documents, findings)
    for listed in (*source.work.values(), source.pods):
        unique(((manifest.id, manifest) for manifest in listed), listed[0].kind if listed else "", findings)
    saved = Sorted(kept_objects(known), Findings())
    classes = read_classes(source.classes).over(read_classes(saved.classes))
    nodes = {manifest.name for manifest in source.nodes} if within is None else within.nodes
    chosen = engine or (known.engine if known is not None else None) or _engine(source, findings)
    system = None if chosen is None else system_of(chosen)
    read = (read_pod(manifest, read_pod_spec if system is None else system.read_spec) for manifest in source.pods)
    pods = read_pods(chain(within.pods if within else (), read), nodes, classes)
    _report_others(source, chosen)
    now = as_of(_taken(source), datetime.now(UTC)) if now is None else now
    if system is not None and system.read is not None:
        manifest = system.read(Reading(source, saved, pods, classes, known, within, findings, now, complete))
        return with_(manifest, taken=_taken(source), about=True, of_state=source.of_state)
    findings.add("no-engine", "warning", (), "nothing here waits, runs or says how it is scheduled")
    nodes = read_cluster_nodes(source.nodes, pods, rename={})
    return Imported(Configuration() if known is None else known, State(nodes=nodes), [], findings.all())


def kept_objects(configuration: Configuration | None) -> list[tuple[Path, Any]]:
    """The objects that a configuration keeps whole: LocalQueues and priority classes among them."""
    native = None if configuration is None else configuration.native
    return [
        (("native", "objects", i), document) for i, document in enumerate(native.objects if native is not None else ())
    ]


@dataclass(frozen=True, slots=True)
class Reading:
    """What every system's reader gets. ``carried``: the objects that ``known`` keeps."""

    objects: Sorted
    carried: Sorted
    pods: list[Pod]
    classes: Classes
    known: Configuration | None
    within: Within | None
    findings: Findings
    now: datetime
    complete: Collection[str] = ()

    def counting(self, own: Configuration) -> Configuration:
        """The configuration that counts: ``known``, else the source's ``own``."""
        if self.known is None:
            return own
        if own.queues:
            detail = f"{len(own.queues)} queues of the source: the configuration that is given takes their place"
            self.findings.add("replaced", "info", (), detail)
        return self.known if self.known.engine is not None else replace(self.known, engine=own.engine)


def _engine(source: Sorted, findings: Findings) -> EngineName | None:
    """The system that most objects are of; one that is in every cluster, where they are of no other."""
    pods = [
        pod for manifest in source.pods if (pod := read_pod(with_(manifest, root=_unheard(manifest.root)))) is not None
    ]
    counts: Counter[EngineName] = Counter()
    for system in on_kubernetes():
        name, own = system.facts.name, sum(map(system.belongs, pods)) if system.belongs is not None else 0
        counts[name] = 0 if system.everywhere else len(source.of[name]) + len(source.work[name]) + own
    present = [name for name, count in counts.items() if count]
    if not present:
        everywhere = (candidate.facts.name for candidate in on_kubernetes() if candidate.everywhere)
        return next((name for name in everywhere if source.of[name] or source.pods), None)
    chosen = max(present, key=counts.__getitem__)
    if len(present) > 1:
        others = ", ".join(f"{name} ({counts[name]})" for name in present if name != chosen)
        findings.add("several-engines", "warning", (), f"objects of {chosen} are read; there are also some of {others}")
    return chosen


def _unheard(root: Reader) -> Reader:
    return Reader(root.value, root.path, Findings())


def _report_others(source: Sorted, chosen: EngineName | None) -> None:
    """Objects of the systems that were not chosen."""
    for name in source.of:
        for manifest in (*source.of[name], *source.work[name]) if name != chosen else ():
            manifest.root.warn("kind", f"an object of {name} in an import of {chosen}: left out", rule="other-engine")


def duplicates(manifests: list[Object], kinds: dict[str, str], findings: Findings) -> None:
    for kind, shown in kinds.items():
        unique(
            ((manifest.name, manifest) for manifest in manifests if manifest.kind == kind and manifest.name),
            shown,
            findings,
        )


def with_classes(configuration: Configuration, classes: list[Object]) -> Configuration:
    """With its priority classes kept whole, but for those that every cluster has."""
    own = (manifest for manifest in classes if manifest.name not in SYSTEM_CLASSES)
    return with_objects(configuration, [document for document in map(whole, own) if document])


def with_objects(configuration: Configuration, documents: list[dict[str, Any]]) -> Configuration:
    """With these objects beside its own."""
    if not documents:
        return configuration
    native = configuration.native or NativeDocuments()
    return replace(configuration, native=replace(native, objects=[*native.objects, *documents]))


def parted(pods: list[Pod], belongs: Belongs) -> tuple[list[Pod], list[Pod]]:
    return [pod for pod in pods if belongs(pod)], [pod for pod in pods if not belongs(pod)]


def imported(
    configuration: Configuration, nodes: list[Node], workloads: list[Workload], asks: list[Ask], findings: Findings,
    queues: dict[str, QueueState] | None = None,
) -> Imported:  # fmt: skip
    return Imported(configuration, State(nodes=nodes, workloads=workloads, queues=queues or {}), asks, findings.all())


def _taken(source: Sorted) -> datetime | None:
    """The newest time in a source whose nodes say when they were last heard of; None where none does: what else has a
    time may have had it for long."""
    heard = [
        path
        for node in source.nodes
        for condition in node.status.children("conditions")
        if (path := condition.time("lastHeartbeatTime")) is not None
    ]
    if not heard:
        return None
    every = (*chain.from_iterable(source.work.values()), *source.pods, *source.nodes)
    return max([*heard, *(manifest.created_at for manifest in every if manifest.created_at is not None)])
