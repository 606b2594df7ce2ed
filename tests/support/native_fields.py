"""Whether a field of a native document counts: with another value there, what is decided on is another, or a new
finding names the field.

A test has a source in which every field can matter, and says for each field what to put there. Paths are those of
``System.fields`` and ``tests/schemas``: names, with ``[]`` after those of lists, whose first item is meant.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from app.formats import import_configuration
from app.formats.manifests import system_of
from app.formats.reader import Effect, Imported, effect_of
from app.solver.check import without_native

Json = dict[str, Any]
SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"
ABSENT: Any = object()
"""In place of a value: the field is left out."""


def schema(system: str) -> list[tuple[str, str]]:
    """Kind and path of every field that ``system`` publishes."""
    lines = (SCHEMAS / f"{system}.txt").read_text().splitlines()
    return [(kind, path) for kind, _, path in (line.partition(" ") for line in lines)]


def fields(system: str, effect: Effect = "decided") -> list[tuple[str, str]]:
    """Those of them of which ``docs/formats.md`` says ``effect``."""
    of = system_of(system)
    assert of is not None
    return [(kind, path) for kind, path in schema(system) if effect_of(of.fields, kind, path) == effect]


def unused(source: str, documents: list[Json], kind: str, path: str, value: Any, *, below: str = "") -> str | None:
    """None if the field counts; else what a failed test says. ``source``: the format to import as. ``kind``: of the
    document in ``documents`` that has the field; one without a kind is any. ``below``: a path that leads to where
    ``path`` begins."""
    before = _imported(source, documents)
    changed: list[Json] = json.loads(json.dumps(documents))
    document = next(one for one in changed if one.get("kind", kind) == kind)
    if not _put(document, [*_names(below), *_names(path)], value):
        return f"{kind} {path}: the source has this value already"
    after = _imported(source, changed)
    if decided_on(before) != decided_on(after) or names(after, path, than=before):
        return None
    return f"{kind} {path}: the same is decided on, and no finding names it"


def decided_on(found: Imported) -> Any:
    """Everything of an import but what is only kept for an export, or said."""
    configuration = replace(without_native(found.configuration), findings=[])
    return msgspec.to_builtins((configuration, replace(found.state, findings=[]), found.asks)), found.taken


def names(found: Imported, path: str, *, than: Imported | None = None) -> bool:
    """Whether a finding, one that ``than`` has not, points at ``path`` or below it."""
    known = () if than is None else than.findings
    wanted = "/".join(name.removesuffix("[]") for name in path.split("."))
    return any(wanted in _words(one.pointer) for one in found.findings if one not in known)


def _words(pointer: str) -> str:
    return "/".join(word for word in pointer.split("/") if not word.isdigit())


def _names(path: str) -> list[str]:
    return path.split(".") if path else []


def _put(document: Json, names: list[str], value: Any) -> bool:
    """Whether something is another now."""
    holder: Any = document
    for name in names[:-1]:
        listed = name.endswith("[]")
        holder = holder.setdefault(name.removesuffix("[]"), [{}] if listed else {})
        holder = holder[0] if listed else holder
    last = names[-1].removesuffix("[]")
    before = holder.pop(last, ABSENT)
    if value is not ABSENT:
        holder[last] = value
    return before != value


def _imported(source: str, documents: list[Json]) -> Imported:
    return import_configuration("\n---\n".join(map(json.dumps, documents)).encode(), source)
