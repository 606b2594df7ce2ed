"""YSON, as ``yt get`` prints it: text or binary, one document. Attributes are ``{$attributes: …, $value: …}``.

The parser is YTsaurus' own, the extra ``arbiter-preemption[yson]``. What it makes is walked once, without recursion,
and bounded as other documents are. Writing text needs no extra.
"""

import importlib
import re
from typing import Any, cast

from app.base.documents import MAX_BYTES, MAX_DEPTH, MAX_VALUES, Path, Unreadable, read
from app.solver.question import safe_point

MEDIA_TYPE = "application/x-yt-yson-text"
"""Of text, as YTsaurus' HTTP proxies call it."""
_TEXT = re.compile(rb'\s*(<|\{\s*("(?:[^"\\]|\\.){0,500}"|[A-Za-z_][\w.\-]{0,500})\s*=|\{\s*\x01|\x01)')
_DEEP = re.compile(rb'"(?:[^"\\]|\\.)*"|[<\[{>\]}]', re.DOTALL)
_BINARY_STRING = b"\x01"


def is_yson(body: bytes) -> bool:
    """Whether ``body`` begins as YSON does and no JSON or YAML: with attributes, or a key before ``=``."""
    return _TEXT.match(body[:2048]) is not None


def read_any(body: bytes) -> list[tuple[Path, Any]]:
    """The documents of ``body``, in YSON, JSON or YAML. Raises Unreadable."""
    return read_yson(body) if is_yson(body) else read(body)


def read_yson(body: bytes) -> list[tuple[Path, Any]]:
    """The document of ``body``. Raises Unreadable."""
    if len(body) > MAX_BYTES:
        raise Unreadable(f"{len(body)} bytes: a manifest may have {MAX_BYTES}")
    _refuse_depth(body)
    try:
        parser: Any = importlib.import_module("yt.yson")
    except ImportError:
        raise Unreadable("this is YSON: to read it, install arbiter-preemption[yson]") from None
    safe_point()
    try:
        parsed = parser.loads(body, encoding=None, always_create_attributes=False)
    except (parser.YsonError, ValueError, TypeError, RecursionError) as error:
        raise Unreadable(
            f"no YSON: {str(error).splitlines()[0][:300] if str(error) else 'it ends too early'}"
        ) from None
    return [((), _plain(parsed))]


def _refuse_depth(body: bytes) -> None:
    """Brackets of text are counted before anybody recurses into them; in binary form strings hide brackets, so that the
    count is of no use, and the parser's own limit holds."""
    if _BINARY_STRING in body:
        return
    depth = 0
    for match in _DEEP.finditer(body):
        word = match[0]
        if word in b"<[{":
            depth += 1
            if depth > 2 * MAX_DEPTH:
                raise Unreadable(f"nested deeper than {MAX_DEPTH} levels")
        elif word in b">]}":
            depth -= 1


def _plain(root: Any) -> Any:
    """Dicts, lists and scalars. Raises Unreadable for what is too deep, too large or no text."""
    holder: list[Any] = [None]
    pending: list[tuple[Any, Any, Any, int]] = [(root, holder, 0, 1)]
    values = 0
    while pending:
        value, into, key, depth = pending.pop()
        safe_point()
        values += 1
        if depth > MAX_DEPTH:
            raise Unreadable(f"nested deeper than {MAX_DEPTH} levels")
        if values > MAX_VALUES:
            raise Unreadable(f"more than {MAX_VALUES} values")
        attributes = getattr(value, "attributes", None)
        if attributes:
            made: dict[str, Any] = {"$attributes": None, "$value": None}
            into[key] = made
            pending.append((dict(attributes), made, "$attributes", depth + 1))
            into, key = made, "$value"
        into[key] = _node(value, pending, depth)
    return holder[0]


def _node(value: Any, pending: list[tuple[Any, Any, Any, int]], depth: int) -> Any:
    if isinstance(value, dict):
        mapping = cast(dict[Any, Any], value)
        made: dict[str, Any] = {_text(key): None for key in mapping}
        pending += [(inner, made, _text(key), depth + 1) for key, inner in mapping.items()]
        return made
    if isinstance(value, list):
        listed = cast(list[Any], value)
        items: list[Any] = [None] * len(listed)
        pending += [(inner, items, i, depth + 1) for i, inner in enumerate(listed)]
        return items
    return _scalar(value)


def _scalar(value: Any) -> Any:
    """Subclasses that carry attributes become the plain types that they are."""
    if isinstance(value, (bytes, str)):
        return _text(value)
    if type(value).__name__ == "YsonBoolean":
        return bool(value)
    if type(value).__name__ == "YsonEntity" or value is None:
        return None
    if isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else float(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    try:
        return bytes(value).decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"a string is not UTF-8 at its byte {error.start}") from None


_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f]')


def write_yson(value: Any) -> str:
    """``value`` as text YSON that reads back as it was, a key or an item a line. Numbers are finite; integers have 64
    bits."""
    parts: list[str] = []
    _write(value, "\n", parts)
    return "".join(parts) + "\n"


def _write(value: Any, line: str, parts: list[str]) -> None:
    """``line``: what begins one, its indent included."""
    safe_point()
    if _has_attributes(value) and not _has_attributes(value["$value"]):  # which only one level of a node can have
        if value["$attributes"]:
            _write_pairs(value["$attributes"], "<>", line, parts)
            parts.append(" ")
        value = value["$value"]
    if isinstance(value, dict):
        _write_pairs(cast(dict[str, Any], value), "{}", line, parts)
    elif isinstance(value, list):
        parts.append("[")
        for item in cast(list[Any], value):
            parts.append(f"{line}    ")
            _write(item, f"{line}    ", parts)
            parts.append(";")
        parts.append(f"{line}]" if value else "]")
    else:
        parts.append(_written(value))


def _has_attributes(value: Any) -> bool:
    node = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    return set(node) == {"$attributes", "$value"} and isinstance(node["$attributes"], dict)


def _write_pairs(pairs: dict[str, Any], brackets: str, line: str, parts: list[str]) -> None:
    parts.append(brackets[0])
    for key, inner in pairs.items():
        parts.append(f"{line}    {key if _PLAIN_KEY.fullmatch(key) else _written(key)} = ")
        _write(inner, f"{line}    ", parts)
        parts.append(";")
    parts.append(f"{line}{brackets[1]}" if pairs else brackets[1])


def _written(value: Any) -> str:
    if isinstance(value, str):
        return f'"{_ESCAPED.sub(_escape, value)}"'
    if isinstance(value, bool):
        return "%true" if value else "%false"
    return "#" if value is None else repr(value)


def _escape(match: re.Match[str]) -> str:
    """Three octal digits: what comes after them can't be taken for more of them."""
    one = match[0]
    return f"\\{one}" if one in '"\\' else f"\\{ord(one):03o}"
