"""How values read: amounts, moments, JSON. Everything stays text until the template escapes it."""

from datetime import datetime
from typing import Any, cast

import msgspec
from jinja2 import Undefined

_STEPS = (("Pi", 1 << 50), ("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20))
_BINARY = ("memory", "storage", "ephemeral-storage", "hugepages")


def amount(value: Any, resource: str = "") -> str:
    """An amount in whole units: bytes by powers of 1024, everything else with thousands apart."""
    if value is None or isinstance(value, Undefined):
        return "–"
    if isinstance(value, str):
        return value
    if any(word in resource for word in _BINARY):
        for suffix, size in _STEPS:
            if abs(value) >= size:
                return f"{value / size:.4g} {suffix}B"
    text = f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
    return text.replace(",", "\u202f")


def amounts(found: dict[str, Any]) -> str:
    """Amounts by resource, in one line."""
    return ", ".join(f"{amount(value, resource)} {resource}" for resource, value in found.items()) or "nothing"


def moment(text: Any) -> str:
    """A moment as people read it, in UTC."""
    if not text:
        return "–"
    try:
        at = text if isinstance(text, datetime) else datetime.fromisoformat(str(text))
    except ValueError:
        return str(text)
    return f"{at:%Y-%m-%d %H:%M:%S}"


def pretty(document: Any) -> str:
    """JSON, indented; of bytes what they hold."""
    encoded = document if isinstance(document, bytes) else msgspec.json.encode(document)
    return msgspec.json.format(encoded, indent=2).decode()


def told(value: Any) -> str:
    """A number that a rule looked at, or several by name, without the signs of JSON."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {told(one)}" for name, one in cast(dict[str, Any], value).items())
    if isinstance(value, list):
        return ", ".join(told(one) for one in cast(list[Any], value))
    return value if isinstance(value, str) else compact(value)


def compact(document: Any) -> str:
    """JSON in one line."""
    return msgspec.json.encode(document).decode()


def seconds(value: Any) -> str:
    """A span of time."""
    if value is None:
        return "–"
    left = float(value)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if left >= 2 * size:
            return f"{left / size:.3g} {unit}"
    return f"{left:.3g} s"
