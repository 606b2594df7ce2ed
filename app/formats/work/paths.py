"""Paths into an object, followed with readers so that findings know where they are."""

import difflib
from collections.abc import Iterator, Sequence

from app.formats.documents.reader import Reader

_EACH, _VALUES = "[]", "{}"


def follow(reader: Reader, path: str) -> Reader:
    """The mapping at ``path``, a chain of names; an empty one where there is none."""
    for name in _steps(path):
        _misspelt(reader, name)
        reader = reader.child(name)
    return reader


def elements(reader: Reader, path: str, first: Sequence[str] = ()) -> Iterator[tuple[str, Reader]]:
    """The mappings that ``path`` leads to, each with its key where the last step names the values of a mapping. Keys go
    in the order of ``first``, then by name: the order of a mapping means nothing."""
    if path.endswith(_EACH):
        above, _, name = path.removesuffix(_EACH).rpartition(".")
        for found in follow(reader, above).children(name):
            yield "", found
    elif path.endswith(_VALUES):
        found = follow(reader, path.removesuffix(_VALUES))
        for key in sorted(found.value, key=lambda key: (first.index(key) if key in first else len(first), key)):
            yield key, found.child(key)
    else:
        yield "", follow(reader, path)


def leaf(reader: Reader, path: str) -> tuple[Reader, str]:
    """The mapping that holds the last name of ``path``, and that name."""
    above, _, name = path.rpartition(".")
    holder = follow(reader, above)
    _misspelt(holder, name)
    return holder, name


def _steps(path: str) -> list[str]:
    return path.split(".") if path else []


def _misspelt(reader: Reader, name: str) -> None:
    """A field that is not there, and one that is spelt much like it."""
    if name in reader.value:
        return
    for near in difflib.get_close_matches(name, reader.value, 1, 0.85):
        reader.warn(near, f"no field of this name; is {name!r} meant?", rule="unknown-field")
