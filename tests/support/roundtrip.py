"""Whether an export says what an import read: documents compared up to order and spelling."""

import json
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, cast

from app.formats import export, import_configuration
from app.formats.ytsaurus.documents import read_any
from app.solver.model.base import QuantityError, parse_quantity
from app.solver.model.problems import Finding

Place = tuple[str | int, ...]


def differences(text: bytes, system: str) -> list[Place]:
    """Places of the source that are not in export(import(source)) as they were, and that no finding names; and what the
    export itself had to leave out."""
    found = import_configuration(text, system)
    made = export(found.configuration, system)
    names, before = _documents(text)
    _, after = _documents(made.text.encode())
    said = [_in_source(finding, names) for finding in found.findings if finding.rule != "not-decided"]
    unsaid = [place for place in _differing(before, after, ()) if not _named(place, said)]
    return unsaid + [_place(finding) for finding in made.findings if finding.severity != "info"]


def _in_source(finding: Finding, names: list[str]) -> tuple[str, ...]:
    """The place that a finding is about, its document by name."""
    first, *rest = [part.replace("~1", "/").replace("~0", "~") for part in finding.pointer.split("/")[1:]] or [""]
    return (names[int(first)], *rest) if first.isdigit() and int(first) < len(names) else (first, *rest)


def _place(finding: Finding) -> Place:
    return ("export", *finding.pointer.split("/")[1:])


def _named(place: Place, said: Iterable[tuple[str, ...]]) -> bool:
    """Whether a finding is about ``place``, what it is part of, or part of it."""
    words = tuple(str(part) for part in place)
    return any(words[: len(one)] == one or one[: len(words)] == words for one in said if one)


def _documents(text: bytes) -> tuple[list[str], dict[str, Any]]:
    """Documents by kind and name, since they have no order; and those names as the source has them. One document that
    has no kind is by itself. Text in a ConfigMap counts as what it says."""
    documents: list[Any] = [document for _, document in read_any(text)]
    if len(documents) == 1 and isinstance(documents[0], list):
        documents = cast(list[Any], documents[0])
    opened: list[dict[str, Any]] = [_opened(document) for document in documents]
    if len(opened) == 1 and "kind" not in opened[0]:
        return [], plain_tree(opened[0])
    names = [_identity(document) for document in opened]
    return names if len(names) > 1 else [], dict(zip(names, opened, strict=True))


def plain_tree(node: dict[str, Any]) -> dict[str, Any]:
    """A pool tree of YTsaurus as people write it, of one that Cypress printed with attributes; others as they are."""
    return _plain_pool(node) if "$attributes" in node else node


def _plain_pool(node: dict[str, Any]) -> dict[str, Any]:
    """Without attributes a node is its children."""
    below = node.get("$value", node)
    pools = {name: _plain_pool(pool) for name, pool in below.items()}
    return {**node.get("$attributes", {}), **({"pools": pools} if pools else {})}


def _opened(holder: dict[str, Any]) -> dict[str, Any]:
    if holder.get("kind") != "ConfigMap":
        return holder
    data: dict[str, str] = holder["data"]
    opened = {key: read_any(text.encode())[0][1] if key.endswith(".yaml") else text for key, text in data.items()}
    return {**holder, "data": opened}


def _identity(document: dict[str, Any]) -> str:
    metadata = document.get("metadata", {})
    return f"{document['kind']} {metadata.get('namespace', '')} {metadata.get('name', '')}"


def _differing(one: Any, other: Any, at: Place) -> Iterator[Place]:
    if isinstance(one, dict) and isinstance(other, dict):
        mine, theirs = cast(dict[str, Any], one), cast(dict[str, Any], other)
        for key in {**mine, **theirs}:
            yield from _differing(mine.get(key), theirs.get(key), (*at, key))
    elif isinstance(one, list) and isinstance(other, list):
        for i, (left, right) in enumerate(zip_longest(_sorted(one), _sorted(other))):
            yield from _differing(left, right, (*at, i))
    elif _spelled(one) != _spelled(other) and not _nothing(one, other, at):
        yield at


def _nothing(one: Any, other: Any, at: Place) -> bool:
    """Whether both are nothing: empty, where there could be none. Of selectors it means everything. A stop policy
    that stops nothing is the default."""
    if at[-1] == "stopPolicy":
        return {one, other} == {None, "None"}
    return _empty(one) and _empty(other) and at[-1] != "namespaceSelector"


def _empty(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_empty, cast(dict[str, Any], value).values()))
    return value in (None, "", [])


def _sorted(items: Any) -> list[Any]:
    return sorted(cast(list[Any], items), key=lambda item: json.dumps(item, sort_keys=True, default=str))


def _spelled(value: Any) -> Any:
    """Amounts count by what they mean: ``"9"``, 9 and ``9000m`` are one."""
    if isinstance(value, bool) or value is None:
        return value
    try:
        return parse_quantity(value, 10**9)
    except (QuantityError, TypeError):
        return value
