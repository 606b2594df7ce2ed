"""JSON bytes to structs: strict, and with every problem named when the bytes are wrong; what each field means.

msgspec decodes and validates in one pass and stops at the first error. Only when it refuses do we walk the
document again, slowly, and list all that is wrong by JSON pointer.
"""

import ast
import ctypes
import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from types import ModuleType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin
from weakref import WeakSet

import msgspec

from app.base.ticket import release_later
from app.solver.model.problems import InvalidInput, Nearest, Problem, pointer
from app.solver.question import safe_point

LARGE_BYTES = 1 << 16


def occurs(needle: bytes, body: bytes) -> bool:
    """Whether ``needle``, which isn't empty, is somewhere in ``body``.

    Python's own search takes two to four times as long as the C library's. Both answer the same; where the C library
    has no ``memmem``, and for small bodies, Python looks.
    """
    if len(body) < LARGE_BYTES or _memmem is None:
        return body.rfind(needle) >= 0  # from the end: that skips farther than from the beginning
    return _memmem(body, len(body), needle, len(needle)) is not None


def _of_libc() -> Callable[[bytes, int, bytes, int], int | None] | None:
    if sys.platform != "linux":
        return None
    memmem = getattr(ctypes.PyDLL(None), "memmem", None)
    if memmem is not None:
        memmem.restype = ctypes.c_void_p
        memmem.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    return memmem


_memmem = _of_libc()


T = TypeVar("T")

MAX_DEPTH = 64
MAX_PROBLEMS = 200

REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, OverflowError)
"""What msgspec raises for bytes that are not what they should be."""

_MOST_DIGITS = 400
MOST_ITEMS = 4_000_000
_MOST_COMPARED = 1 << 20
"""Bytes of a document whose keys are compared: it costs as much again as decoding one, and whoever writes a larger one
is a program."""
_NUL = b"\\u0000"
_DIGITS = b"\\u003"
"""Begins the escape of a colon."""
_COLON = ord(":")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_ESCAPED = re.compile(rb"\\u00(?:3[0-9]|2[bBdD])")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_WHERE = re.compile(r" - at `([^`]*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[([0-9]+)\]")


class Malformed(InvalidInput):
    """The bytes are not a JSON document that Arbiter reads at all: syntax, encoding, nesting."""


def decode(body: bytes, shape: type[T]) -> T:
    """``body`` as a ``shape``. Raises Malformed, or InvalidInput with up to 200 problems."""
    decoder: msgspec.json.Decoder[T] = _decoder(shape)
    try:
        decoded = decoder.decode(body)
    except REFUSALS as refusal:
        raise _diagnose(body, shape, refusal) from None
    if _may_leave_the_calendar(body) and (problems := _listed(json.loads(body), shape)):
        raise InvalidInput(problems)
    if (nul := _nul(body)) is not None:
        raise nul
    if len(body) <= _MOST_COMPARED:
        refuse_keys_twice(body)
    return decoded


def decode_at_once(body: bytes, shape: type[T]) -> T | None:
    """``decode`` for those who can do without: None where it would refuse, or look closer."""
    decoder: msgspec.json.Decoder[T] = _decoder(shape)
    try:
        decoded = decoder.decode(body)
    except REFUSALS:
        return None
    if _may_leave_the_calendar(body) or _nul(body) is not None:
        return None
    return None if len(body) <= _MOST_COMPARED and _has_keys_twice(body) else decoded


def refuse_keys_twice(body: bytes) -> None:
    """Raises InvalidInput where an object of ``body`` has a key twice: of two values one would be lost, and systems
    don't agree on which. What is no JSON is left to its decoder."""
    if _has_keys_twice(body):
        raise InvalidInput(list(islice(_keys_twice(json.loads(body, object_pairs_hook=_Pairs), ()), MAX_PROBLEMS)))


class _Pairs(list[tuple[str, Any]]):
    """An object with its keys as they stand."""


class _Twice(Exception):
    """A key is there twice."""


def _has_keys_twice(body: bytes) -> bool:
    """Written again without what was lost, a document has a colon less for each key that was there twice, and no other
    one moves: that is told in half the time that it takes to compare the keys of each object."""
    if not occurs(_DIGITS, body):
        with suppress(*REFUSALS):
            document = msgspec.json.decode(body)
            release_later(document)
            return _colons(msgspec.json.encode(document)) < _colons(body)
    try:
        json.loads(body, object_pairs_hook=_compare, parse_int=str, parse_float=str)
    except _Twice:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def _colons(body: bytes) -> int:
    """Python's own count takes six times as long where there are many."""
    import numpy as np  # a command that reads nothing does without

    return int(np.count_nonzero(np.frombuffer(body, np.uint8) == _COLON))


def _compare(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise _Twice


def _keys_twice(value: object, path: tuple[str | int, ...]) -> Iterator[Problem]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, inner in value:
            if key in seen:
                yield Problem(pointer=pointer(*path, key), detail=f"key {key[:200]!r} occurs twice in one object")
            seen.add(key)
            yield from _keys_twice(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(cast(list[object], value)):
            yield from _keys_twice(inner, (*path, i))


def _nul(body: bytes) -> InvalidInput | None:
    """The refusal of a body in which a text holds a NUL, which no name of a cluster does and no database keeps."""
    if b"\\" not in body or not occurs(_NUL, body):
        return None
    holders: list[Problem] = []
    pending: list[tuple[Any, tuple[str | int, ...]]] = [(json.loads(body), ())]
    while pending:
        value, path = pending.pop()
        if isinstance(value, dict):
            for key, inner in cast(dict[str, Any], value).items():
                if "\0" in key:
                    holders.append(Problem(pointer=pointer(*path), detail="a name in it holds a NUL"))
                pending.append((inner, (*path, key)))
        elif isinstance(value, list):
            pending += [(inner, (*path, i)) for i, inner in enumerate(cast(list[Any], value))]
        elif isinstance(value, str) and "\0" in value:
            holders.append(Problem(pointer=pointer(*path), detail="the text holds a NUL"))
    return InvalidInput(holders[:MAX_PROBLEMS]) if holders else None


def convert(document: object, shape: type[T]) -> T:
    """A parsed document (YAML, a stored fragment) as a ``shape``. Raises InvalidInput like ``decode``."""
    try:
        return msgspec.convert(document, shape)
    except msgspec.ValidationError as refusal:
        problems = _listed(document, shape)
        raise InvalidInput(problems or [Problem(pointer="", detail=_WHERE.sub("", str(refusal)))]) from None


_PREPARED = WeakSet[type[msgspec.Struct]]()


def prepare_types() -> None:
    """Work out what msgspec has to know of every type, before threads decode.

    Two threads that are the first to meet one type meet it half worked out, and the process ends by a segmentation
    fault (msgspec 0.22: a type is entered before its fields are). About ten milliseconds the first time, and next to
    nothing after that."""
    pending, seen = list(msgspec.Struct.__subclasses__()), set[type[msgspec.Struct]]()
    while pending:
        shape = pending.pop()
        if shape not in seen:
            seen.add(shape)
            pending += shape.__subclasses__()
            if shape not in _PREPARED:
                msgspec.json.Decoder(shape)
                _PREPARED.add(shape)


@cache
def _decoder(shape: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(shape)


def _diagnose(body: bytes, shape: object, refusal: Exception) -> InvalidInput:
    if body.count(b",") + body.count(b"[") + body.count(b"{") > MOST_ITEMS:
        return _first(refusal)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        return _malformed(f"not UTF-8: byte {error.start} can't be decoded")
    try:
        document = json.loads(text, parse_int=_integer)
    except RecursionError:
        return _too_deep(text)
    except json.JSONDecodeError as error:
        return _malformed(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}")
    if deep := _deepest(document):
        return Malformed([Problem(pointer=deep, detail=f"nested deeper than {MAX_DEPTH} levels")])
    if _HALF.search(text) and not _is_text(document):
        return _malformed("not JSON: a string holds half of a surrogate pair")
    problems = _listed(document, shape)
    return InvalidInput(problems) if problems else _malformed(str(refusal))


def _may_leave_the_calendar(body: bytes) -> bool:
    """Whether an instant in ``body`` could have an offset that takes it out of the years 1 to 9999.

    Only the first day with an offset ahead of UTC can, and the last day, unless somebody writes digits or signs as
    escapes. Searched without the quote before it: that skips farther in documents full of other instants.
    """
    if occurs(b"9999-12-31", body) or (b"+" in body and occurs(b"0001-01-01", body)):
        return True
    return b"\\" in body and b"\\u00" in body and _ESCAPED.search(body) is not None


def _first(refusal: Exception) -> InvalidInput:
    """Only what msgspec says: a document of this many items costs too much memory to walk again."""
    where = _WHERE.search(str(refusal))
    if not isinstance(refusal, msgspec.ValidationError):
        return _malformed(str(refusal))
    steps = _STEP.finditer(where[1].partition("[...]")[0]) if where is not None else ()
    place = pointer(*(step[1] or step[2] for step in steps))
    return InvalidInput([Problem(pointer=place, detail=_WHERE.sub("", str(refusal)))])


def _listed(document: object, shape: object) -> list[Problem]:
    return list(islice(_problems(document, shape, ()), MAX_PROBLEMS))


def _malformed(detail: str) -> Malformed:
    return Malformed([Problem(pointer="", detail=detail)])


def _integer(digits: str) -> int | float:
    """An absurdly long integer becomes infinite, so that the walk reports it where it stands."""
    return int(digits) if len(digits) <= _MOST_DIGITS else math.inf


def _too_deep(text: str) -> Malformed:
    depth = 0
    for token in _TOKEN.finditer(text):
        opens = token.group() in "[{"
        depth += 1 if opens else -1 if token.group() in "]}" else 0
        if depth > MAX_DEPTH:
            return _malformed(f"nested deeper than {MAX_DEPTH} levels at character {token.start()}")
    return _malformed("nested too deeply")


def _deepest(document: object) -> str | None:
    """Pointer of the first value that is nested too deeply. No recursion: the input chooses the depth."""
    stack: list[tuple[object, tuple[str | int, ...]]] = []
    if isinstance(document, dict | list):
        stack.append((cast(object, document), ()))
    while stack:
        value, path = stack.pop()
        if len(path) >= MAX_DEPTH:
            return pointer(*path)
        for key, child in _children(value):
            if isinstance(child, dict | list):
                stack.append((cast(object, child), (*path, key)))
    return None


def _is_text(document: object) -> bool:
    """Whether every string can be written as UTF-8: half of a surrogate pair can't."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _children(value: Any) -> Iterator[tuple[str | int, object]]:
    yield from value.items() if isinstance(value, dict) else enumerate(value)


def _problems(value: object, shape: Any, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Every way in which ``value`` isn't a ``shape``, in document order."""
    if isinstance(value, list) and get_origin(shape) is Annotated:
        yield from _length_problems(len(cast(list[object], value)), get_args(shape)[1:], path)
    shape = _member(cast(object, value), shape)
    origin = get_origin(shape)
    if isinstance(value, dict) and isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        yield from _struct_problems(cast(dict[str, object], value), shape, path)
    elif isinstance(value, dict) and origin is dict:
        for key, child in _children(value):
            yield from _problems(child, get_args(shape)[1], (*path, key))
    elif isinstance(value, list) and origin is list:
        for i, child in _children(value):
            yield from _problems(child, get_args(shape)[0], (*path, i))
    else:
        yield from _leaf_problems(cast(object, value), shape, path)


def _length_problems(length: int, constraints: Sequence[Any], path: tuple[str | int, ...]) -> Iterator[Problem]:
    for meta in constraints:
        if isinstance(meta, msgspec.Meta) and meta.min_length is not None and length < meta.min_length:
            yield Problem(pointer=pointer(*path), detail=f"{length} items, at least {meta.min_length} are needed")
        if isinstance(meta, msgspec.Meta) and meta.max_length is not None and length > meta.max_length:
            yield Problem(pointer=pointer(*path), detail=f"{length} items, at most {meta.max_length} are allowed")


def _struct_problems(
    value: dict[str, Any], shape: type[msgspec.Struct], path: tuple[str | int, ...]
) -> Iterator[Problem]:
    safe_point()
    fields = _fields_of(shape)
    near = Nearest(fields)
    for key, child in value.items():
        if key in fields:
            yield from _problems(child, fields[key].type, (*path, key))
        elif shape.__struct_config__.forbid_unknown_fields:
            yield Problem(pointer=pointer(*path, key), detail=f"unknown field{near.meant(key)}")
    for name, field in fields.items():
        if field.required and name not in value:
            yield Problem(pointer=pointer(*path, name), detail="missing field")


@cache
def _fields_of(shape: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """Of a struct, by their names on the wire: msgspec works them out anew each time it is asked."""
    return {field.encode_name: field for field in msgspec.structs.fields(shape)}


def _leaf_problems(value: object, shape: Any, path: tuple[str | int, ...]) -> Iterator[Problem]:
    if isinstance(value, float) and not math.isfinite(value):
        detail = "NaN is not a JSON number" if math.isnan(value) else "number out of range"
        yield Problem(pointer=pointer(*path), detail=detail)
        return
    try:
        converted: object = msgspec.convert(value, shape)
    except (msgspec.ValidationError, OverflowError) as error:
        choices = _choices(shape) if isinstance(value, str) else []
        detail = f"{str(value)[:64]!r} is none of {', '.join(choices)}" if choices else _WHERE.sub("", str(error))
        yield Problem(pointer=pointer(*path), detail=detail)
        return
    if isinstance(converted, datetime) and not in_calendar(converted):
        yield Problem(pointer=pointer(*path), detail="its offset takes it out of the years 1 to 9999 in UTC")


_WHOLE = re.compile(r"-?[0-9]{1,18}")


def whole(text: str) -> int | None:
    """The whole number that ``text`` is, in at most 18 digits of ASCII; None: it is none. ``str.isdigit`` holds of more
    than ``int`` takes: digits in small type, and thousands of them."""
    return int(text) if _WHOLE.fullmatch(text) else None


def in_calendar(time: datetime) -> bool:
    """Whether it is a time of the years 1 to 9999 in UTC too, and not at its own offset alone."""
    try:
        time.astimezone(UTC)
    except OverflowError:
        return False
    return True


def _choices(shape: Any) -> list[str]:
    if get_origin(shape) is Literal:
        return [str(choice) for choice in get_args(shape)]
    if get_origin(shape) in (Union, UnionType):
        return [choice for member in get_args(shape) for choice in _choices(member)]
    return []


def _member(value: object, shape: Any) -> Any:
    """The alternative of a union that a container value is meant to be; other shapes as they are."""
    while get_origin(shape) is Annotated and isinstance(value, dict | list):
        shape = get_args(shape)[0]
    if get_origin(shape) not in (Union, UnionType):
        return shape
    return next((member for member in get_args(shape) if _holds(member, value)), shape)


def _holds(member: Any, value: object) -> bool:
    if isinstance(value, dict):
        return get_origin(member) is dict or (isinstance(member, type) and issubclass(member, msgspec.Struct))
    return isinstance(value, list) and get_origin(member) is list


def descriptions(shape: type[msgspec.Struct]) -> dict[str, str]:
    """Text by name of field, inherited ones included; one that a subclass declares again has the subclass's."""
    texts: dict[str, str] = {}
    for base in reversed(shape.__mro__):
        if is_ours(base):
            texts |= _of_module(_module(base)).get(base.__qualname__, {})
    return texts


def is_ours(shape: type) -> bool:
    """Whether a class is of Arbiter."""
    return shape.__module__.partition(".")[0] == "app"


def _module(shape: type) -> ModuleType:
    module = inspect.getmodule(shape)
    assert module is not None
    return module


@cache
def _of_module(module: ModuleType) -> dict[str, dict[str, str]]:
    classes = (node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ClassDef))
    return {node.name: dict(_of_class(node)) for node in classes}


def _of_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, after in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match after:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield field.target.id, " ".join(text.split())
                case _:
                    pass
