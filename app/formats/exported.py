"""What exports to native documents share: kept parts put back, resources renamed, YAML, findings of what is lost; and
tables of fields, by which a document is read and written."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

import msgspec
import yaml
from msgspec.structs import replace

from app.base.documents import Path, plain
from app.formats.reader import Effect, Reader, each
from app.solver.engine import ENGINES, all_facts, facts_of
from app.solver.model import base
from app.solver.model.base import Duration, Native
from app.solver.model.configuration import Configuration, EngineName, Queue, Quota
from app.solver.model.problems import Finding, pointer
from app.solver.question import safe_point

Document = dict[str, Any]
YAML = "application/yaml"
EXPORTS = tuple(ENGINES)
FORMATS = (*EXPORTS, "kubernetes")
if TYPE_CHECKING:
    Format: TypeAlias = str
    ExportFormat: TypeAlias = str
else:
    Format = Literal[FORMATS]
    ExportFormat = Literal[EXPORTS]


def merged(document: Document, saved: Mapping[str, Any], path: Path = ()) -> list[Path]:
    """Put ``saved`` back into ``document``, in place. Items of lists that both have come after those of ``document``;
    of anything else that both have ``document`` holds. Returns where it does although they differ."""
    differing: list[Path] = []
    pending: list[tuple[Document, Mapping[str, Any], Path]] = [(document, saved, path)]
    while pending:
        into, more, here = pending.pop()
        for key, value in more.items():
            known = into.get(key)
            if known is None:
                into[key] = value
            elif isinstance(known, dict) and isinstance(value, dict):
                into[key] = inner = dict(cast(Document, known))
                pending.append((inner, cast(Document, value), (*here, key)))
            elif isinstance(known, list) and isinstance(value, list):
                listed = cast(list[Any], known)
                into[key] = [*listed, *(item for item in cast(list[Any], value) if item not in listed)]
            elif known != value:
                differing.append((*here, key))
    return differing


_BLOCKS = Native.__struct_fields__
"""Systems of whose documents parts are kept."""
_PARTS = ("metadata", "spec")


@dataclass(frozen=True, slots=True)
class Exported:
    """A document as text, and what it could not say; pointers lead into the configuration."""

    text: str
    findings: list[Finding]
    media_type: str = YAML


class Lost:
    """Findings about fields of a configuration that the target has no word for."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def add(self, path: Path, detail: str) -> None:
        """``path``: where in the configuration."""
        self.findings.append(Finding(rule="not-carried", severity="warning", pointer=pointer(*path), detail=detail))

    def note(self, rule: str, path: Path, detail: str) -> None:
        """Nothing is lost, but whoever applies the file should know."""
        self.findings.append(Finding(rule=rule, severity="info", pointer=pointer(*path), detail=detail))

    def queue(self, path: Path, queue: Queue, system: str, *, weight: bool, priority: bool, created: bool) -> None:
        """Report the engine-neutral fields of a queue that ``system`` lacks (those not marked as known)."""
        if not weight and queue.has_weight:
            self.add((*path, "weight"), f"{system} has no weight of a queue")
        if not priority and queue.priority:
            self.add((*path, "priority"), f"{system} has no priority of a queue")
        if not created and queue.created_at is not None:
            self.add((*path, "created_at"), f"{system} keeps no age of a queue here")

    def other_blocks(self, configuration: Configuration, system: str) -> None:
        """Report blocks that only other engines read."""
        for name in configuration.settings.__struct_fields__:
            if name == system.replace("-", "_"):
                continue
            shown = name.replace("_", "-")
            if getattr(configuration.settings, name) is not None:
                self.add(("settings", name), f"settings of {shown} mean nothing to {system}")
            for i, queue in enumerate(configuration.queues):
                if getattr(queue, name, None) is not None:
                    self.add(("queues", i, name), f"settings of {shown} mean nothing to {system}")

        self._other_natives(configuration, system)

    def _other_natives(self, configuration: Configuration, system: str) -> None:
        self._other_native(("native",), configuration.native, system)
        for i, flavor in enumerate(configuration.flavors):
            self._other_native(("flavors", i, "native"), flavor.native, system)
        for i, queue in enumerate(configuration.queues):
            self._other_native(("queues", i, "native"), queue.native, system)

    def _other_native(self, path: Path, native: Native | None, system: str) -> None:
        """Report each field, or each below ``metadata`` and ``spec``, that another system's document had."""
        for name in _BLOCKS if native is not None else ():
            if name == system:
                continue
            for key, value in getattr(native, name).items():
                parted = key in _PARTS and isinstance(value, dict)
                for where in [(key, field) for field in cast(Document, value)] if parted else [(key,)]:
                    self.add((*path, name, *where), f"{where[-1]} of {name} means nothing to {system}")

    def native(self, path: Path, document: Document, native: Native | None, system: str) -> Document:
        """``document`` with what was kept of the same document of ``system`` put back."""
        if native is not None:
            here = (*path, "native", system)
            for where in merged(document, getattr(native, system)):
                self.add((*here, *where), "the configuration says otherwise: its own value is written")
        return document

    def inside(self, holder: Any, document: Document, path: Path) -> Document:
        """``document`` as text in the ConfigMap that ``holder`` describes; by itself where it describes none."""
        config_map: Document = cast(Document, holder) if isinstance(holder, dict) else {}
        key, metadata, data = config_map.get("key"), config_map.get("metadata"), config_map.get("data", {})
        if not isinstance(key, str) or not isinstance(metadata, dict) or not isinstance(data, dict):
            self.add(path, "no ConfigMap: it has a key, metadata and data")
            return document
        text = Block(_yaml([document], explicit_start=False))
        shown: Document = {"metadata": metadata, "data": {**cast(Document, data), key: text}}
        return {"apiVersion": "v1", "kind": "ConfigMap", **shown}

    def objects(self, configuration: Configuration, system: str, groups: tuple[str, ...]) -> list[Document]:
        """Whole objects that belong to ``system`` by their API group; others are findings, but for what every cluster
        has."""
        own: list[Document] = []
        for i, document in enumerate(configuration.native.objects if configuration.native is not None else ()):
            if str(document.get("apiVersion") or "").partition("/")[0] in groups:
                own.append(document)
            elif document.get("kind") not in _OF_EVERY_CLUSTER:
                self.add(("native", "objects", i), f"{_shown(document)} means nothing to {system}")
        return own

    def flavors(self, configuration: Configuration, system: str) -> None:
        """Report flavors, where the target has none."""
        if configuration.flavors:
            self.add(("flavors",), f"{system} has no flavors")

    def quota(self, path: Path, quota: Quota, system: str, fields: Iterable[str]) -> None:
        """Report the fields of a quota that ``system`` lacks."""
        for name in fields:
            if getattr(quota, name) is not None:
                self.add((*path, name), f"{system} has no {name.replace('_', ' ')} of a quota")


_OF_EVERY_CLUSTER = ("Namespace", "LimitRange", "RuntimeClass")


def _shown(document: Document) -> str:
    """An object as people call it."""
    metadata: Any = document.get("metadata")
    name = cast(Document, metadata).get("name") if isinstance(metadata, dict) else None
    return " ".join(str(part)[:100] for part in (document.get("kind") or "an object", name) if part)


def placed(queues: list[Queue]) -> list[tuple[Path, Queue]]:
    """Every queue with its place in the configuration, and after them the parents that are only named: Kueue lets
    cohorts exist that way, no other system does."""
    known = {queue.name for queue in queues}
    named = dict.fromkeys(queue.parent for queue in queues if queue.parent is not None)
    places: list[tuple[Path, Queue]] = [(("queues", i), queue) for i, queue in enumerate(queues)]
    return places + [(("queues",), Queue(name=name)) for name in named if name not in known]


def parents_first(queues: list[Queue]) -> list[tuple[Path, Queue]]:
    """``placed`` by depth; siblings keep their order."""
    children: dict[str | None, list[tuple[Path, Queue]]] = {}
    for path, queue in placed(queues):
        children.setdefault(queue.parent, []).append((path, queue))
    out = list(children.get(None, []))
    for _, queue in out:
        out += children.get(queue.name, [])
    return out


def flat_quota(queue: Queue, path: Path, system: str, lost: Lost) -> dict[str, tuple[Path, Quota]]:
    """The quota of each resource with its place, for a system without flavors: the first flavor of each group."""
    quotas = {name: ((*path, "quota", name), quota) for name, quota in (queue.quota or {}).items()}
    for g, group in enumerate(queue.resource_groups or ()):
        for f, flavor in enumerate(group.flavors):
            here = (*path, "resource_groups", g, "flavors", f)
            if f:
                lost.add(here, f"{system} has no flavors: only the first one's quota is kept")
                continue
            for name, quota in flavor.quota.items():
                quotas[name] = ((*here, "quota", name), quota)
    return quotas


def number(value: float) -> int | float:
    """A float as a document shows it: whole numbers without a point."""
    return int(value) if value == int(value) and abs(value) < 2**53 else value


def metadata_of(queue: Queue) -> Document:
    """Of the object of Kubernetes that it is."""
    created = None if queue.created_at is None else base.to_datetime(base.micros(queue.created_at)).isoformat()
    return {"name": queue.name} | ({} if created is None else {"creationTimestamp": created.replace("+00:00", "Z")})


def weight_text(value: float) -> str:
    """A weight as a Kubernetes quantity, which has nine decimal places."""
    shown = Decimal(repr(float(value))).quantize(Decimal("1e-9")).normalize()
    return f"{shown:f}"


def go_duration(value: Duration, _path: Path = (), _lost: Lost | None = None) -> str:
    """A duration as Go reads it: as it was spelled, a number of seconds to the microsecond."""
    if isinstance(value, str):
        return value
    micros = base.parse_duration(value)
    return f"{micros // 10**6}s" if micros % 10**6 == 0 else f"{micros}us"


_Plain: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # the same text, several times as fast


_represent_any: Callable[[Any, Any], yaml.Node] = _Plain.represent_data


class _Dumper(_Plain):
    """Quotes every string that an unquoted scalar of ``source.plain`` would not give back."""

    def ignore_aliases(self, data: Any) -> bool:
        """Repeat values instead of pointing at them: manifests are read by people."""
        return True

    def represent_data(self, data: Any) -> yaml.Node:
        """A value as a node. Writing takes longer than all else: it can be stopped at each."""
        safe_point()
        return _represent_any(self, data)


def _represent(dumper: Any, text: str) -> yaml.ScalarNode:
    ambiguous = not isinstance(plain(text), str) or text == "<<" or text != text.strip()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if ambiguous else None)


class Block(str):
    """Text of several lines, written as such."""

    __slots__ = ()


def _represent_block(dumper: Any, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")


_Dumper.add_representer(str, _represent)
_Dumper.add_representer(Block, _represent_block)


def _yaml(documents: Iterable[Any], *, explicit_start: bool) -> str:
    return yaml.dump_all(
        documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=10**6,
        explicit_start=explicit_start,
    )  # fmt: skip


def dump(documents: Iterable[Any], lost: Lost) -> Exported:
    """``documents`` as YAML in block style that reads back as it was. What was lost leads as comments too, for whoever
    opens the file."""
    notes = "".join(
        f"# {_one_line(f.detail)}\n"
        if f.severity == "info"
        else f"# not carried over: {f.pointer}: {_one_line(f.detail)}\n"
        for f in lost.findings[:100]
    )
    if len(lost.findings) > 100:
        notes += f"# and {len(lost.findings) - 100} more\n"
    return Exported(notes + _yaml(documents, explicit_start=True), lost.findings)


def _one_line(text: str) -> str:
    return " ".join(text.split())


T = TypeVar("T")

_VENDOR = "nvidia.com/gpu"


def renamed(
    amounts: dict[str, tuple[Path, T]], engine: EngineName | None, system: ExportFormat, lost: Lost
) -> dict[str, tuple[Path, T]]:
    """``amounts`` by resource, with their places, in the words of ``system``. ``engine``: whose words they are now;
    None: anybody's. What has no word, or would meet another under one name, is left out with a finding. Each system
    calls cpu and GPUs by names of its own, and reads amounts of its own forms."""
    if engine == system:
        return amounts
    named: dict[str, tuple[Path, T]] = {}
    for name, (path, amount) in amounts.items():
        new = _word(name, path, system, lost)
        if new is None:
            continue
        if new in named:
            lost.add(path, f"a second amount of {new}: {name} is left out")
        else:
            named[new] = (path, amount)
    return named


def _word(name: str, path: Path, system: ExportFormat, lost: Lost) -> str | None:
    own, every = facts_of(system), all_facts()
    if any(name == facts.cpu for facts in every):
        return own.cpu
    if name.endswith("/gpu") and own.gpu is not None:
        if name != _VENDOR:
            lost.add(path, f"{system} counts GPUs of every vendor: {name} is written as {own.gpu}")
        return own.gpu
    if own.gpu is None and any(name == facts.gpu for facts in every):
        lost.add(path, f"a GPU of Kubernetes has a vendor: written as {_VENDOR}")
        return _VENDOR
    others = (facts.own_resources for facts in every if facts is not own)
    if any(name in of for of in others) if own.resources is None else name not in own.resources:
        lost.add(path, f"{system} has no resource {name}: left out")
        return None
    return name


def _as_it_is(value: Any, path: Path, lost: Lost) -> Any:
    del path, lost
    return value


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a document, both ways. ``read``: what is under ``key``, None or [] where that says nothing; ``name``:
    of the field of the struct, where it is called otherwise; ``write``: a value that is at a place in the
    configuration, None where there is no word for it; ``always``: it is written though it is the usual."""

    key: str
    read: Callable[[Reader, str], Any]
    name: str = ""
    write: Callable[[Any, Path, Lost], Any] = _as_it_is
    always: bool = False


class Inside(NamedTuple):
    """Fields of the same struct that the document has one mapping deeper."""

    key: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Which fields of a document, in the order in which they are read, are which of a struct. ``usual``: the struct of
    a document that says nothing, whose values are not written; ``first``: keys that are written before the others."""

    usual: msgspec.Struct
    fields: tuple[Field | Inside, ...]
    first: tuple[str, ...] = ()

    def read(self, reader: Reader, known: msgspec.Struct | None = None) -> Any:
        """The struct: ``known``, else the usual one, with what the document says."""
        return replace(known or self.usual, **_values(reader, self.fields))

    def effects(self, below: str) -> dict[str, Effect]:
        """All of them decide; ``below``: the path of the document."""
        return each("decided", " ".join(field.key for field in self.fields), below)

    def written(self, struct: msgspec.Struct, path: Path, lost: Lost) -> Document:
        """The document of ``struct``, which is at ``path``."""
        turns = {key: turn for turn, key in enumerate(self.first)}
        fields = sorted(self.fields, key=lambda field: turns.get(field.key, len(turns)))
        return _written(fields, struct, self.usual, path, lost)

    def block(self, key: str, name: str = "") -> Field:
        """Such a document under ``key``. One that says the usual is none: servers fill that in everywhere."""

        def read(reader: Reader, key: str) -> msgspec.Struct | None:
            struct = self.whole(reader.child(key))
            return None if struct == self.usual else struct

        def write(struct: msgspec.Struct, path: Path, lost: Lost) -> Document | None:
            return self.written(struct, path, lost) or None

        return Field(key, read, name, write)

    def listed(self, key: str, name: str = "") -> Field:
        """A list of such documents under ``key``."""

        def read(reader: Reader, key: str) -> list[msgspec.Struct]:
            return [self.whole(item) for item in reader.children(key)]

        def write(structs: list[msgspec.Struct], path: Path, lost: Lost) -> list[Document]:
            return [self.written(struct, (*path, i), lost) for i, struct in enumerate(structs)]

        return Field(key, read, name, write)

    def whole(self, reader: Reader) -> Any:
        """The struct of a mapping that has nothing else; other keys are findings."""
        struct = self.read(reader)
        reader.close()
        return struct


def word(key: str, words: Mapping[str, str], name: str = "", *, always: bool = False) -> Field:
    """One of ``words``, translated, and written as it is here."""
    return Field(key, lambda reader, key: reader.choice(key, words), name, always=always)


def _values(reader: Reader, fields: Iterable[Field | Inside]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    opened: list[Reader] = []
    for field in fields:
        if isinstance(field, Inside):
            opened.append(reader.child(field.key))
            values |= _values(opened[-1], field.fields)
        elif (value := field.read(reader, field.key)) is not None and value != []:
            values[field.name or field.key] = value
    for below in opened:
        below.close()
    return values


def _written(
    fields: Iterable[Field | Inside], struct: msgspec.Struct, usual: msgspec.Struct, path: Path, lost: Lost
) -> Document:
    shown: Document = {}
    for field in fields:
        if isinstance(field, Inside):
            shown[field.key] = _written(field.fields, struct, usual, path, lost) or None
            continue
        name = field.name or field.key
        value = getattr(struct, name)
        if field.always or value != getattr(usual, name):
            shown[field.key] = field.write(value, (*path, name), lost)
    return {key: value for key, value in shown.items() if value is not None}
