"""A translation of some of a cluster put into that of all."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from app.following.mirror import Key, View
from app.formats.yunikorn.pods import DYNAMIC
from app.solver.model.problems import Finding, pointer

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
    found = dict(of)
    for name in gone:
        found.pop(name, None)
    return found


def merged(old: list[Finding], new: list[Finding], about: Iterable[tuple[str, Key]]) -> list[Finding]:
    """``old`` but for what it says about these objects, and what ``new`` says of objects of their kinds. What is said
    of a queue that placement made stays, and is said once, whoever needs it."""
    gone = {pointer(kind, *key) for kind, key in about} if old else set[str]()
    kinds = {kind for kind, _ in about} if new else set[str]()
    kept = [one for one in old if one.rule == DYNAMIC or _object(one) not in gone]
    told = {one.detail for one in kept if one.rule == DYNAMIC}
    more = [one for one in new if one.pointer.startswith(tuple(f"/{kind}/" for kind in kinds))]
    return [*kept, *(one for one in more if one.rule != DYNAMIC or one.detail not in told)]


def _object(finding: Finding) -> str:
    """The pointer to the object that it is about."""
    return "/".join(finding.pointer.split("/", _DEPTH)[:_DEPTH])
