"""Kubernetes objects of a source: lists flattened, ConfigMaps opened, metadata and priority classes read;
and what is followed of them."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import msgspec

from app.base.decoding import in_calendar
from app.base.documents import Path, Unreadable, as_list, as_mapping, read
from app.formats.reader import Findings, Reader, Severity, unkeepable
from app.solver.model.configuration import Settings

YUNIKORN_QUEUES = "YuniKorn queues"
KAI_SCHEDULER = "KAI scheduler configuration"
"""Kinds of documents that have none: the files that YuniKorn and KAI Scheduler read."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_OF_SERVERS = ("uid", "resourceVersion", "generation", "managedFields", "selfLink", "finalizers", "deletionTimestamp",
               "deletionGracePeriodSeconds")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Object:
    """One object. ``group`` is ``""`` for the core API; ``spec`` and ``status`` are readers of those parts, ``root``
    of the whole."""

    kind: str
    group: str
    version: str
    name: str
    namespace: str
    uid: str | None
    created_at: datetime | None
    deleted: bool
    labels: dict[str, str]
    annotations: dict[str, str]
    owners: tuple[str, ...]
    owner_uids: tuple[str, ...]
    root: Reader
    inside: "tuple[Object, str] | None" = None
    """The ConfigMap that holds it, and the key."""

    @property
    def spec(self) -> Reader:
        """The desired state."""
        return self.root.child("spec")

    @property
    def status(self) -> Reader:
        """The observed state."""
        return self.root.child("status")

    @property
    def id(self) -> str:
        """Namespace and name; the name alone where there is no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class _Entry(NamedTuple):
    """A value that should be an object; ``kind`` and ``version`` are those that a typed list says for its items."""

    path: Path
    value: Any
    kind: str = ""
    version: str = ""
    inside: tuple[Object, str] | None = None


def objects(documents: list[tuple[Path, Any]], findings: Findings) -> Iterator[Object]:
    """Every object of every document, its kind told, lists of any type flattened. What is no object is a finding."""
    pending: list[_Entry] = [item for path, doc in documents for item in _flattened(path, doc, findings)]
    for item in pending:
        manifest = _object(Reader(item.value, item.path, findings), item.kind, item.version)
        if manifest is None:
            continue
        if item.inside is not None:
            manifest = replace(manifest, inside=item.inside)
        if manifest.kind == "ConfigMap" and not manifest.group:
            pending += _opened(manifest)
        else:
            yield manifest


def _opened(holder: Object) -> Iterator[_Entry]:
    """The documents inside a ConfigMap. Their pointers go on below the key that holds them."""
    data = holder.root.child("data")
    for key in data.value:
        text = data.text(key) or ""
        if not key.endswith((".yaml", ".yml", ".json")):
            data.warn(key, f"setting {key!r} of a ConfigMap has no counterpart in Arbiter", "info")
            continue
        try:
            inner = read(text.encode())
        except Unreadable as error:
            data.warn(key, error.problems[0].detail, "error", "unreadable")
            continue
        for place, value in inner:
            for item in _flattened((*data.path, key, *place), value, data.findings):
                yield item._replace(inside=(holder, key))
    holder.root.not_carried("binaryData", "binary data of a ConfigMap is not read", "info")


def _flattened(path: Path, document: Any, findings: Findings) -> Iterator[_Entry]:
    if isinstance(document, list):
        for i, item in enumerate(cast(list[Any], document)):
            if isinstance(item, dict):
                yield from _flattened((*path, i), item, findings)
            else:
                yield _Entry((*path, i), item)
        return
    top = Reader(document, path, findings)
    kind = top.value.get("kind")
    if isinstance(kind, str) and kind.endswith("List") and "items" in top.value:
        # The items of a typed list (PodList) leave out what its own kind says.
        version = top.value.get("apiVersion")
        items = top.take("items")
        if not isinstance(items, list):
            top.warn("items", "a list is expected", "error", "wrong-type")
            return
        for i, item in enumerate(cast(list[Any], items)):
            listed = version if isinstance(version, str) else ""
            yield _Entry((*path, "items", i), item, kind.removesuffix("List"), listed)
    else:
        yield _Entry(path, document, _implied(top))


def _implied(document: Reader) -> str:
    """The kind of a document that says none."""
    if "kind" in document:
        return ""
    if "partitions" in document:
        return YUNIKORN_QUEUES
    return KAI_SCHEDULER if "tiers" in document or "actions" in document else ""


def _object(root: Reader, listed_kind: str, listed_version: str) -> Object | None:
    kind = root.text("kind") or listed_kind
    group, _, version = (root.text("apiVersion") or listed_version).rpartition("/")
    if not kind:
        root.findings.add("unknown-kind", "error", root.path, "no kind: cut short, or no Kubernetes object")
        return None
    metadata = root.child("metadata")
    references = list(metadata.children("ownerReferences"))
    return Object(
        kind=kind,
        group=group,
        version=version,
        name=metadata.text("name") or "",
        namespace=metadata.text("namespace") or "",
        uid=metadata.text("uid"),
        created_at=metadata.time("creationTimestamp"),
        deleted="deletionTimestamp" in metadata,
        labels=metadata.labels("labels"),
        annotations=metadata.labels("annotations"),
        owners=tuple(str(owner.take("kind")) for owner in references),
        owner_uids=tuple(uid for owner in references if (uid := owner.text("uid"))),
        root=root,
    )


def named(manifest: Object) -> bool:
    """Whether the object has a name; a finding where it has none."""
    if not manifest.name:
        manifest.root.warn("metadata", "an object without a name", "error", "bad-value")
    return bool(manifest.name)


def unread(manifest: Object) -> dict[str, Any]:
    """What an importer that asked ``manifest.root`` to keep has not read of the object; nothing of what servers add."""
    metadata = manifest.root.child("metadata")
    metadata.ignore(*_OF_SERVERS, "name", "creationTimestamp")
    for key in ("labels", "annotations"):
        inner = metadata.child(key)
        inner.ignore(_LAST_APPLIED)
        inner.keep_rest()
    metadata.keep_rest()
    manifest.root.ignore("status")
    manifest.root.close()
    return manifest.root.unread()


def whole(manifest: Object) -> dict[str, Any] | None:
    """The object without what servers add, for an export; None, and a finding, where it can't be kept."""
    head = {
        "apiVersion": f"{manifest.group}/{manifest.version}" if manifest.group else manifest.version,
        "kind": manifest.kind,
    }
    rest = {key: value for key, value in manifest.root.value.items() if key not in (*head, "metadata", "status")}
    document = {**head, "metadata": _metadata(manifest), **rest}
    if why := unkeepable(document):
        manifest.root.findings.add("not-carried", "error", manifest.root.path, f"can't be kept: {why}")
        return None
    return document


def config_map(manifest: Object) -> dict[str, Any]:
    """What an importer keeps of the ConfigMap around a configuration: all but the text under ``key``. Empty where there
    is none."""
    if manifest.inside is None:
        return {}
    holder, key = manifest.inside
    data = {name: text for name, text in holder.root.child("data").value.items() if name != key}
    native = {"key": key, "metadata": _metadata(holder), **({"data": data} if data else {})}
    if why := unkeepable(native):
        holder.root.findings.add("not-carried", "error", holder.root.path, f"can't be kept: {why}")
        return {}
    return {"configMap": native}


def _metadata(manifest: Object) -> dict[str, Any]:
    """Its metadata without what servers add."""
    metadata = {
        key: value
        for key, value in manifest.root.child("metadata").value.items()
        if key not in (*_OF_SERVERS, "creationTimestamp")
    }
    if isinstance(metadata.get("annotations"), dict):
        annotations = {k: v for k, v in metadata["annotations"].items() if k != _LAST_APPLIED}
        metadata["annotations"] = annotations
        if not annotations:
            del metadata["annotations"]
    return metadata


def unknown_kind(manifest: Object, severity: Severity = "warning") -> None:
    """A kind that nothing in this import reads."""
    full = f"{manifest.group}/{manifest.kind}" if manifest.group else manifest.kind
    manifest.root.warn("kind", f"{full} means nothing to this import", severity, "unknown-kind")


def instead(manifest: Object, findings: Findings) -> None:
    """Say that ``manifest`` holds and the settings of the same kind before it don't."""
    detail = f"a second {manifest.kind}: this one holds, nothing of the one before"
    findings.add("several-settings", "warning", manifest.root.path, detail)


def unique(names: Iterable[tuple[str, Object]], kind: str, findings: Findings) -> set[str]:
    """The names, each once; a second object of one name is a finding of severity error."""
    seen: set[str] = set()
    for name, manifest in names:
        if name in seen:
            findings.add("duplicate", "error", (*manifest.root.path, "metadata", "name"), f"a second {kind} {name!r}")
        seen.add(name)
    return seen


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """``victim``: whether pods of this class may be preempted (YuniKorn's annotation); None where it says nothing."""

    value: int
    default: bool
    never_preempts: bool
    victim: bool | None


@dataclass(slots=True)
class Classes:
    """Priority classes by group and name."""

    _by_name: dict[tuple[str, str], PriorityClass] = field(default_factory=dict[tuple[str, str], PriorityClass])
    _defaults: dict[str, PriorityClass | None] = field(default_factory=dict[str, PriorityClass | None])

    def find(self, name: str | None, group: str = "scheduling.k8s.io") -> PriorityClass | None:
        """The class called ``name``, else the default one."""
        if name is not None:
            return self._by_name.get((group, name))
        if group not in self._defaults:
            every = (known for (of, _), known in self._by_name.items() if of == group and known.default)
            self._defaults[group] = next(every, None)
        return self._defaults[group]

    def has(self, group: str, name: str) -> bool:
        """Whether there is one of that name."""
        return (group, name) in self._by_name

    def put(self, group: str, name: str, known: PriorityClass) -> None:
        """One more, or another in place of the one of that name."""
        self._by_name[group, name] = known
        self._defaults.clear()

    def over(self, others: "Classes") -> "Classes":
        """These, and those of ``others`` that have other names."""
        return Classes({**others._by_name, **self._by_name})


# Kubernetes has these two without anyone creating them.
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_ALLOW_PREEMPTION = "yunikorn.apache.org/allow-preemption"


def read_classes(manifests: Iterable[Object]) -> Classes:
    """PriorityClass (core) and WorkloadPriorityClass (Kueue) objects."""
    classes = Classes()
    for name, value in SYSTEM_CLASSES.items():
        classes.put("scheduling.k8s.io", name, PriorityClass(value, False, False, None))
    for manifest in manifests:
        root = manifest.root
        value = root.integer("value")
        if value is None:
            root.warn("value", "a priority class without a value counts as 0", "error", "bad-value")
        if manifest.name not in SYSTEM_CLASSES and classes.has(manifest.group, manifest.name):
            root.warn("metadata", f"a second {manifest.kind} {manifest.name!r}: this one holds", "error", "duplicate")
        victim = manifest.annotations.get(_ALLOW_PREEMPTION)
        found_class = PriorityClass(
            value=value or 0,
            default=bool(root.boolean("globalDefault")),
            never_preempts=root.text("preemptionPolicy") == "Never",
            victim=None if victim is None else victim != "false",
        )
        classes.put(manifest.group, manifest.name, found_class)
        root.ignore("description")
        root.close()
    return classes


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object. ``versions``: those that are read, the best first; ``needed``: whether there is nothing to
    follow without it; ``within``: the namespace in which alone its objects are read; ``selector``: which of them;
    ``state``: whether they say how the cluster is, and not only what happened; ``placed``: whether they are read only
    while a flavor of Kueue has a topology; ``layers``: names of objects that are read as one, a key of a later one
    replacing an earlier one's; no others are."""

    name: str
    group: str
    plural: str
    versions: tuple[str, ...]
    needed: bool = True
    within: str | None = None
    selector: str | None = None
    state: bool = True
    placed: bool = False
    layers: tuple[str, ...] = ()

    def path(self, version: str) -> str:
        """Where all objects of the kind are that are read."""
        space = f"namespaces/{self.within}/" if self.within else ""
        return f"{self.base(version)}/{space}{self.plural}"

    def base(self, version: str) -> str:
        """Where the server says which kinds it has."""
        return f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"

    def api_version(self, version: str) -> str:
        """As objects of the kind say it."""
        return f"{self.group}/{version}" if self.group else version


POD = Kind("Pod", "", "pods", ("v1",))
NODE = Kind("Node", "", "nodes", ("v1",))
PRIORITY_CLASS = Kind("PriorityClass", "scheduling.k8s.io", "priorityclasses", ("v1",))
EVENT = Kind("Event", "", "events", ("v1",), needed=False, state=False)


Item = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""


def part(of: dict[str, Any], key: str) -> dict[str, Any]:
    """The mapping under ``key``; an empty one where there is none."""
    return as_mapping(of.get(key))


def id_of(key: Key) -> str:
    """As workloads and asks are called."""
    space, name = key
    return f"{space}/{name}" if space else name


def key_of(item: Item) -> Key:
    """Where an object is."""
    metadata = part(item, "metadata")
    return metadata.get("namespace") or "", metadata.get("name") or ""


def condition(item: Item, kind: str, status: str | None = "True") -> dict[str, Any] | None:
    """The condition of that type, where it has that status; None: whatever it has."""
    for said in map(as_mapping, as_list(part(item, "status").get("conditions"))):
        if said.get("type") == kind and status in (None, said.get("status")):
            return said
    return None


def instant(value: object) -> datetime | None:
    """A time as objects tell it, in UTC where it says no offset; None: it is none."""
    try:
        time = msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        return None
    time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return time if in_calendar(time) else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One eviction. ``victim``: namespace and name of its Workload or Pod; ``by``: the UID of whom it was for, or
    `namespace/name`; empty where nobody is named; ``at``: when, as the cluster says it; ``message``: in its words;
    ``preempted``: whether the scheduler did it to let others run."""

    victim: Key
    by: str
    reason: str | None
    at: datetime | None
    message: str = ""
    preempted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """How a system is followed in a cluster. ``kinds``: what is read; what is not needed, and may not be read, is
    reported and done without. ``witnesses``: what is read beside that to see preemptions. ``work``: kinds that work is
    made of; the first is what an eviction is for. ``evidence``: by kind, what an object says of an eviction, given it
    as it was, that it did not say then. ``scheduler``: what its pods name; None: it is not told pods by that.
    ``together``: what a recording's pod is translated with; None: with none. ``other_mode``: the settings of the mode
    that it may be in where no object says so; None: there is but one."""

    kinds: tuple[Kind, ...]
    work: tuple[str, ...]
    witnesses: tuple[Kind, ...] = ()
    evidence: Mapping[str, Callable[[Item | None, Item], Evidence | None]]
    scheduler: str | None = None
    together: Callable[[Item], Hashable] | None = None
    other_mode: Settings | None = None


def new_message(old: Item | None, new: Item) -> str | None:
    """What an Event says; None where it is only counted on."""
    message = text_of(new.get("message"))
    return message if old is None or old.get("message") != message else None


def pod_of(event: Item) -> Key | None:
    """The pod that an Event is about; None: it is about something else."""
    about = part(event, "involvedObject")
    return (text_of(about.get("namespace")), text_of(about.get("name"))) if about.get("kind") == "Pod" else None


def event_time(event: Item) -> datetime | None:
    """When an Event says that it happened."""
    times = (instant(event.get(name)) for name in ("eventTime", "lastTimestamp", "firstTimestamp"))
    return next((path for path in times if path is not None), None)


def text_of(value: object) -> str:
    """A text; an empty one for anything else."""
    return value if isinstance(value, str) else ""
