"""What differs between two documents, by structure: queues and flavors by name, everything else by pointer; pure."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from app.configurations.revisions.schemas import (
    ChangedElement,
    ConfigurationDiff,
    Element,
    ElementChanges,
    ValueChange,
)
from app.solver.model.problems import pointer

Document = dict[str, Any]
Path = tuple[str | int, ...]


def difference(name: str, against: int, old: Document, revision: int, new: Document) -> ConfigurationDiff:
    """``old`` and ``new``: configurations as JSON objects without defaults."""
    rest_old = {key: value for key, value in old.items() if key not in ("queues", "flavors")}
    rest_new = {key: value for key, value in new.items() if key not in ("queues", "flavors")}
    queues, queues_moved = _elements("queues", old, new)
    flavors, flavors_moved = _elements("flavors", old, new)
    settings = list(_values(rest_old, rest_new, ()))
    return ConfigurationDiff(
        name=name, revision=revision, against=against, identical=old == new, settings=settings,
        flavors=flavors, queues=queues, reordered=queues_moved or flavors_moved,
    )  # fmt: skip


def _elements(kind: str, old: Document, new: Document) -> tuple[ElementChanges, bool]:
    before: dict[str, tuple[int, Document]] = {e["name"]: (i, e) for i, e in enumerate(old.get(kind, ()))}
    after: dict[str, tuple[int, Document]] = {e["name"]: (i, e) for i, e in enumerate(new.get(kind, ()))}
    found = ElementChanges(
        added=[_element(kind, i, e) for name, (i, e) in after.items() if name not in before],
        removed=[_element(kind, i, e) for name, (i, e) in before.items() if name not in after],
        changed=[
            ChangedElement(name=name, changes=list(_values(before[name][1], e, (kind, i))))
            for name, (i, e) in after.items()
            if name in before and before[name][1] != e
        ],
    )
    kept_before = [name for name in before if name in after]
    kept_after = [name for name in after if name in before]
    return found, kept_before != kept_after


def _element(kind: str, i: int, element: Document) -> Element:
    return Element(name=element["name"], pointer=pointer(kind, i), value=element)


def _values(old: Any, new: Any, at: Path) -> Iterator[ValueChange]:
    """Objects key by key; lists item by item where both name the same things in the same order, else as a whole."""
    if isinstance(old, dict) and isinstance(new, dict):
        before, after = cast(Document, old), cast(Document, new)
        for key in dict.fromkeys([*before, *after]):
            yield from _values(before.get(key, msgspec.UNSET), after.get(key, msgspec.UNSET), (*at, key))
    elif (names := _names(old)) is not None and names == _names(new):
        for i in range(len(names)):
            yield from _values(old[i], new[i], (*at, i))
    elif old != new:
        yield ValueChange(pointer=pointer(*at), old=old, new=new)


def _names(value: Any) -> list[str] | None:
    """What the items of a list go by: their names, or the resources of a resource group. None where it is no such."""
    if not isinstance(value, list):
        return None
    found: list[str] = []
    for item in cast(list[Any], value):
        if not isinstance(item, dict):
            return None
        named = cast(Document, item)
        name = named.get("name", named.get("resources"))
        if name is None:
            return None
        found.append(str(name))
    return found
