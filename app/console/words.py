"""What pages say, in words: sizes and spans in one unit a page, moments, numbers that rules looked at, JSON; and what
nobody sees made visible. Everything stays text until the template escapes it."""

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from secrets import token_hex
from typing import Any, cast

import msgspec
from jinja2 import Undefined

from app.console.situation import Cell

_BINARY = ("memory", "storage", "hugepages")
_SIZES = (("PiB", 1 << 50), ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("", 1))
_SPANS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
_KINDS: dict[str, tuple[tuple[str, int], ...]] = {"size": _SIZES, "span": _SPANS}
_MARK = token_hex(8)
"""Nobody can write it: figures are told from what comes from outside."""
_FIGURE = re.compile(f"\ue000{_MARK}(size|span)(unit|[^\ue001]+)\ue001")
_MOST_DIGITS = 10**6


def figure(kind: str, value: object) -> str:
    """A figure, or the name of its unit, whose unit is that of all of its kind on the page: ``settled`` puts it in."""
    return f"\ue000{_MARK}{kind}{value}\ue001"


def settled(text: str) -> str:
    """A page whose sizes are in one unit, and whose spans are: the largest in which the least is a tenth at least and
    the largest has no more than six digits."""
    if _MARK not in text:
        return text
    sizes: dict[str, list[float]] = {"size": [], "span": []}
    for match in _FIGURE.finditer(text):
        if match[2] != "unit" and float(match[2]):
            sizes[match[1]].append(abs(float(match[2])))
    units = {kind: _unit(_KINDS[kind], values) for kind, values in sizes.items()}

    def written(match: re.Match[str]) -> str:
        name, size = units[match[1]]
        if match[2] == "unit":
            return name if sizes[match[1]] else ""
        value = float(match[2]) if "." in match[2] or "e" in match[2] else int(match[2])
        return f"{_plain(value // size if value % size == 0 else value / size)} {name}".rstrip()

    return _FIGURE.sub(written, text)


def _unit(units: tuple[tuple[str, int], ...], values: list[float]) -> tuple[str, int]:
    if not values:
        return units[-1]
    fits = (i for i, (_, size) in enumerate(units) if min(values) * 10 >= size and max(values) >= size)
    fine = next(fits, len(units) - 1)
    short = max((i for i, (_, size) in enumerate(units) if max(values) < _MOST_DIGITS * size), default=0)
    return units[min(fine, short)]


def _plain(value: float) -> str:
    """A number with thousands apart."""
    if isinstance(value, float):
        text = f"{value:,.3f}".rstrip("0").rstrip(".") if abs(value) >= 0.001 else f"{value:.2g}"
    else:
        text = f"{value:,}"
    return text.replace(",", "\u202f")


def amount(value: Any, resource: str = "") -> str:
    """An amount in whole units: bytes by powers of 1024, in the unit of the page, everything else with thousands
    apart."""
    if value is None or isinstance(value, Undefined):
        return "–"
    if isinstance(value, str):
        return value
    return figure("size", value) if any(word in resource for word in _BINARY) else _plain(value)


def amounts(held: Mapping[str, Any] | Mapping[Cell, Any] | Mapping[str | Cell, Any]) -> str:
    """Amounts by resource, or by resource and flavor, in one line."""
    said = ((of.resource if isinstance(of, Cell) else of, of, value) for of, value in held.items())
    return ", ".join(f"{amount(value, resource)} {of}" for resource, of, value in said) or "nothing"


def moment(text: Any) -> str:
    """A moment as people read it, in UTC."""
    if not text:
        return "–"
    try:
        time = text if isinstance(text, datetime) else datetime.fromisoformat(str(text))
    except ValueError:
        return str(text)
    return f"{time:%Y-%m-%d %H:%M:%S}"


def pretty(document: Any) -> str:
    """JSON, indented; of bytes what they hold."""
    encoded = document if isinstance(document, bytes) else msgspec.json.encode(document)
    return msgspec.json.format(encoded, indent=2).decode()


def readable(value: Any, name: str = "") -> str:
    """A number that a rule looked at, or several by name, without the signs of JSON. ``name``: what it is a number
    of."""
    if isinstance(value, dict):
        return ", ".join(f"{of} {readable(inner, f'{name} {of}')}" for of, inner in cast(dict[str, Any], value).items())
    if isinstance(value, list):
        return ", ".join(readable(inner, name) for inner in cast(list[Any], value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return amount(value, name)
    return value if isinstance(value, str) else compact(value)


def compact(document: Any) -> str:
    """JSON in one line."""
    return msgspec.json.encode(document).decode()


def lasted(value: Any) -> str:
    """A span of time that is compared with others on the page: in their unit."""
    return "–" if value is None or isinstance(value, Undefined) else figure("span", value)


def seconds(value: Any) -> str:
    """A span of time by itself."""
    if value is None:
        return "–"
    left = float(value)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if left >= 2 * size:
            return f"{left / size:.3g} {unit}"
    return f"{left:.3g} s"


_BYTE = re.compile(r" \(byte (\d+)\)")


def placed(error: msgspec.DecodeError, text: str) -> str:
    """What is wrong with JSON, and on which line and column, as an editor counts them."""
    offset = _BYTE.search(str(error))
    if offset is None:
        return str(error)
    lines = text.encode()[: int(offset[1])].decode(errors="replace").split("\n")
    return f"{str(error)[: offset.start()]} (line {len(lines)}, column {len(lines[-1]) + 1})"


_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\U000e0000-\U000e007f]|(?<![\u2190-\u2bff\ufe0f\U0001f000-\U0001faff])\u200d"
)
"""What shows nothing, or turns the direction of what follows; not what joins two emoji."""
_TAG = re.compile(r"(<[^>]*>)")
_AS_TEXT = ("title", "svg")
"""No element of HTML can stand there."""
_AS_IT_IS = ("textarea", "option", "script")
"""That is sent back."""


def marked(html: str) -> str:
    """A page on which characters that nobody sees are seen; what is copied from it or sent back remains what it was.

    Attributes are left alone: none of ours holds ``>``, which is escaped in what comes from outside.
    """
    if _UNSEEN.search(html) is None:
        return html
    parts: list[str] = []
    within = ""
    for part in _TAG.split(html):
        if part.startswith("<"):
            name = part[1:-1].partition(" ")[0]
            if not within and name in (*_AS_TEXT, *_AS_IT_IS):
                within = name
            elif name == f"/{within}":
                within = ""
        elif within not in _AS_IT_IS:
            part = _UNSEEN.sub(_named_character if within else _shown_character, part)  # noqa: PLW2901
        parts.append(part)
    return "".join(parts)


def _named_character(match: re.Match[str]) -> str:
    return f"[U+{ord(match[0]):04X}]"


def _shown_character(match: re.Match[str]) -> str:
    name = unicodedata.name(match[0], "a control character").lower()
    return f'<span class="unseen" title="{name}" data-code="U+{ord(match[0]):04X}">{match[0]}</span>'
