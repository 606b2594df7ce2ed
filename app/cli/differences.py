"""Revisions of a stored configuration, compared by structure and written for people."""

import json
from collections.abc import Iterator
from typing import Any

from app.cli.output import BAD_INPUT, DIFFERENT, complain, say
from app.cli.remote import Service, refused, segment


def between(service: Service, reference: str, against: int | None) -> int:
    """Show what revision NAME@N changed since ``against``; NAME alone means its newest one."""
    name, _, revision = reference.partition("@")
    path = f"/v1/configurations/{segment(name)}"
    if not revision:
        newest = service.get(path)
        if not newest.ok:
            return refused(reference, newest)
        revision = str(newest.json()["revision"])
    if not revision.isascii() or not revision.isdigit():
        complain(f"{reference}: after @ comes the number of a revision")
        return BAD_INPUT
    reply = service.get(f"{path}/revisions/{revision}/diff" + ("" if against is None else f"?against={against}"))
    if not reply.ok:
        return refused(reference, reply)
    found = reply.json()
    for line in lines(found):
        say(line)
    return 0 if found["identical"] else DIFFERENT


def lines(found: Any) -> Iterator[str]:
    """A structural difference: + added, - removed, ~ changed."""
    if not found["identical"]:
        yield f"{found['name']}: revision {found['against']} -> {found['revision']}"
    for change in found["settings"]:
        yield f"~ {_change(change)}"
    for kind in ("flavors", "queues"):
        elements: dict[str, Any] = found[kind]
        for sign, part in (("+", "added"), ("-", "removed")):
            for element in elements.get(part, ()):
                yield f"{sign} {kind.removesuffix('s')} {element['name']}"
        for element in elements.get("changed", ()):
            yield f"~ {kind.removesuffix('s')} {element['name']}"
            for change in element["changes"]:
                yield f"    {_change(change)}"
    if found["reordered"]:
        yield "~ order"


def _change(change: dict[str, Any]) -> str:
    return f"{change['pointer']}: {_value(change, 'old')} -> {_value(change, 'new')}"


def _value(change: dict[str, Any], which: str) -> str:
    return json.dumps(change[which], ensure_ascii=False, sort_keys=True) if which in change else "(default)"
