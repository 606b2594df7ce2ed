"""The one reader of YAML and JSON from outside: manifests, mappings, grids, kubeconfigs. Hostile input is refused.

What a schema can't say is checked here, once: size, depth, the number of values that aliases expand to, keys that
occur twice, tags that would make objects. Scalars follow YAML 1.2's core schema, as Kubernetes reads them in
practice: ``yes`` and ``2026-01-01`` are strings.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, cast

import yaml

from app.solver.model.problems import InvalidInput, Problem
from app.solver.question import safe_point

MAX_BYTES = 32 * 2**20
MAX_DEPTH = 200
MAX_VALUES = 2_000_000
MAX_DIGITS = 31

Path = tuple[str | int, ...]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,16}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_WORDS = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None, "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")}
_STRING_TAG = "tag:yaml.org,2002:str"
_MERGE = "<<"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def as_mapping(value: Any) -> dict[str, Any]:
    """``value`` where it is a mapping; else an empty one."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """``value`` where it is a list; else an empty one."""
    return cast(list[Any], value) if isinstance(value, list) else []


class Unreadable(InvalidInput):
    """The source is no document of the kind that it should be; nothing of it was read."""

    def __init__(self, detail: str, where: str = "") -> None:
        super().__init__([Problem(pointer=where, detail=detail)])


def read(body: bytes) -> list[tuple[Path, Any]]:
    """The documents of ``body`` with their place: ``()`` for a single one, ``(i,)`` in a stream of several; empty
    documents are left out. Raises Unreadable."""
    if len(body) > MAX_BYTES:
        raise Unreadable(f"{len(body)} bytes: a manifest may have {MAX_BYTES}")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 at byte {error.start}") from None
    if text.lstrip()[:1] in ("{", "["):
        try:
            return [((), _json(text))]
        except json.JSONDecodeError:
            pass  # YAML's flow style starts with a brace too, and its error will say where
    documents = [document for document in _yaml(text) if document is not None]
    return [((), documents[0])] if len(documents) == 1 else [((i,), document) for i, document in enumerate(documents)]


def read_one(body: bytes, what: str, most: int = MAX_BYTES) -> Any:
    """The only document of ``body``, in JSON or YAML. ``what`` it is, for the errors; ``most``: bytes that it may have.
    Raises Unreadable."""
    if len(body) > most:
        raise Unreadable(f"{what} has {len(body)} bytes; it may have {most}")
    try:
        documents = read(body)
    except Unreadable as error:
        raise Unreadable(f"{what}: {error.problems[0].detail}") from None
    if len(documents) != 1:
        raise Unreadable(f"{what} is empty" if not documents else f"{what} has {len(documents)} documents, not one")
    return documents[0][1]


def plain(text: str) -> Any:
    """What an unquoted scalar means: null, bool, int, float or itself."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    if len(text) <= 64 and _FLOAT.fullmatch(text) and not re.match(r"[-+]?0[0-9]", text):
        return _float(text)
    return text


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    safe_point()
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise Unreadable(f"key {twice[:200]!r} occurs twice in one object")
    return mapping


def _json(text: str) -> Any:
    def refused(word: str) -> Any:
        raise Unreadable(f"{word} is not JSON")

    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=refused, parse_int=_integer, parse_float=_float
        )
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
        if "\\u0000" in text and _holds_nul(value):
            raise Unreadable("a string holds a NUL, which no text of a cluster does")
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except UnicodeEncodeError:
        raise Unreadable("half of a surrogate pair is no character") from None
    except json.JSONDecodeError:
        raise
    except ValueError:
        raise Unreadable("a number of thousands of digits") from None
    return value


def _holds_nul(root: Any) -> bool:
    pending = [root]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += [*cast(dict[str, Any], value), *cast(dict[str, Any], value).values()]
        elif isinstance(value, list):
            pending += cast(list[Any], value)
        elif isinstance(value, str) and "\0" in value:
            return True
    return False


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS + 1:
        raise Unreadable(f"a number of {len(text)} digits; at most {MAX_DIGITS} are read")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Unreadable(f"{text[:40]} is larger than any number that is read")
    return value


class _Frame:
    """A mapping or sequence being filled. ``size``: values in it, with what its aliases stand for."""

    __slots__ = ("anchor", "container", "key", "merges", "merging", "size")

    merging: bool
    """Whether the key is that of a merge; said with every key."""

    def __init__(self, container: dict[str, Any] | list[Any], anchor: str | None) -> None:
        self.container = container
        self.anchor = anchor
        self.key: str | None = None
        self.merges: list[dict[str, Any]] = []
        self.size = 1


class _Builder:
    """One YAML document from its events, without recursion."""

    def __init__(self) -> None:
        self.root: Any = None
        self.values = 0
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}

    def feed(self, event: Any) -> None:
        """Take the next event of the document."""
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._start(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._end(event)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise _unreadable(event, f"alias *{event.anchor} has no anchor before it")
            value, size = self._anchors[event.anchor]
            self._add(value, size, event)

    def _scalar(self, event: Any) -> None:
        if "\0" in event.value:
            raise _unreadable(event, "a NUL, which no text of a cluster holds")
        frame = self._frames[-1] if self._frames else None
        if frame is not None and isinstance(frame.container, dict) and frame.key is None:
            frame.key, frame.merging = event.value, event.value == _MERGE and event.implicit[0]
            if event.value in frame.container and not frame.merging:
                raise _unreadable(event, f"key {event.value[:200]!r} occurs twice in one mapping")
            return
        value = plain(event.value) if event.implicit[0] and event.tag is None else self._tagged(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        self._add(value, 1, event)

    @staticmethod
    def _tagged(event: Any) -> Any:
        if event.tag not in (None, "!") and event.tag not in _TAGS:
            raise _unreadable(event, f"tag {event.tag[:200]!r} is not supported")
        return event.value if event.tag in (None, "!", _STRING_TAG) else plain(event.value)

    def _start(self, event: Any) -> None:
        if len(self._frames) >= MAX_DEPTH:
            raise _unreadable(event, f"nested deeper than {MAX_DEPTH} levels")
        if event.tag not in (None, "!") and event.tag not in _TAGS:
            raise _unreadable(event, f"tag {event.tag[:200]!r} is not supported")
        if self._frames and isinstance(self._frames[-1].container, dict) and self._frames[-1].key is None:
            raise _unreadable(event, "a key must be a scalar")
        container: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._frames.append(_Frame(container, event.anchor))

    def _end(self, event: Any) -> None:
        frame = self._frames.pop()
        if isinstance(frame.container, dict):
            for merged in frame.merges:
                for key, value in merged.items():
                    frame.container.setdefault(key, value)
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (frame.container, frame.size)
        self._add(frame.container, frame.size, event)

    def _add(self, value: Any, size: int, event: Any) -> None:
        self.values += size if isinstance(event, yaml.AliasEvent) else 1
        if self.values > MAX_VALUES:
            raise _unreadable(event, f"more than {MAX_VALUES} values, counting what aliases stand for")
        if not self._frames:
            self.root = value
            return
        frame = self._frames[-1]
        frame.size += size
        if isinstance(frame.container, list):
            frame.container.append(value)
            return
        assert frame.key is not None
        if frame.merging:
            frame.merges += _merged(value, event)
        else:
            frame.container[frame.key] = value
        frame.key = None


def _merged(value: Any, event: Any) -> list[dict[str, Any]]:
    sources = cast(list[Any], value) if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise _unreadable(event, "<< merges mappings only")
    return sources


def _yaml(text: str) -> Iterator[Any]:
    builder, values = _Builder(), 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            safe_point()
            if isinstance(event, yaml.DocumentEndEvent):
                yield builder.root
                values = builder.values
                builder = _Builder()
                builder.values = values
            else:
                builder.feed(event)
    except yaml.YAMLError as error:
        raise Unreadable(_explained(error)) from None
    except ValueError as error:
        raise Unreadable(f"not YAML: {error}") from None


def _explained(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
    return f"neither JSON nor YAML{where}: {getattr(error, 'problem', None) or 'a character that YAML does not allow'}"


def _unreadable(event: Any, detail: str) -> Unreadable:
    return Unreadable(f"line {event.start_mark.line + 1}: {detail}")
