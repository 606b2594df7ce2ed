"""Whether an answer says what a recorded one says.

A record names only what it knows, so an answer may say more: an expected object matches when each field that
it names matches. Numbers written with a fraction match to a millionth, instants match as instants, ``null``
also matches an absent field, and ``{"one_of": [...]}`` matches any of its values. Lists match item by item,
in order; with a ``tolerance``, amounts of the resources that it names may differ by so much, and what is nothing at
all need not be there; in a record that is ``unordered`` the items of victims, evictions and placements may come in any.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.vectors.files import NAMED, OF_CHANCE

ANY_ORDER = ("victims", "evictions", "placements")
PRECISION = 1e-6

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})")
_NOTHING = object()


def disagreements(vector: dict[str, Any], answer: Any) -> list[str]:
    """What differs between a vector's expectation and the parsed answer; of several alternatives, the nearest."""
    alternatives = vector["expect_any"] if "expect_any" in vector else [vector["expect"]]
    matcher = _Matcher(any_order=bool(vector.get("unordered")), tolerance=vector.get("tolerance"))
    return min((list(matcher.compare(expected, answer, ())) for expected in alternatives), key=len)


def differences_from(path: Path, record: dict[str, Any], answer: Any) -> list[str]:
    """What differs between a record of a file and the parsed answer. One of several outcomes has to be the plan, or for
    ids of ``NAMED`` some outcome that the answer names."""
    if path.name != OF_CHANCE:
        return disagreements(record, answer)
    outcomes = [answer["plan"], *(one["plan"] for one in (answer["plan"].get("chance") or {}).get("others", ()))]
    found = [disagreements(record, {"plan": plan}) for plan in outcomes]
    return [] if record["id"] in NAMED and [] in found else found[0]


class _Matcher:
    def __init__(self, *, any_order: bool, tolerance: dict[str, float] | None) -> None:
        self._any_order = any_order
        self._tolerance = tolerance or {}

    def compare(self, expected: Any, actual: Any, at: tuple[str, ...]) -> Iterator[str]:
        if isinstance(expected, dict):
            if expected.keys() == {"one_of"}:
                if actual not in expected["one_of"]:
                    yield _said(at, f"one of {expected['one_of']}", actual)
            else:
                yield from self._objects(expected, actual, at)
        elif isinstance(expected, list):
            yield from self._lists(expected, actual, at)
        elif not _same(expected, actual):
            yield _said(at, expected, actual)

    def _objects(self, expected: dict[str, Any], actual: Any, at: tuple[str, ...]) -> Iterator[str]:
        if not isinstance(actual, dict):
            yield _said(at, expected, actual)
            return
        for name, value in expected.items():
            if name in self._tolerance and isinstance(value, int | float):
                if not abs(value - actual.get(name, 0)) <= self._tolerance[name]:
                    yield _said((*at, name), value, actual.get(name, _NOTHING))
                continue
            if self._tolerance and name not in actual and _is_nothing(value):
                continue
            yield from self.compare(value, actual.get(name, None if value is None else _NOTHING), (*at, name))

    def _lists(self, expected: list[Any], actual: Any, at: tuple[str, ...]) -> Iterator[str]:
        if not isinstance(actual, list) or len(actual) != len(expected):
            yield _said(at, [_label(item) for item in expected], actual)
            return
        if self._any_order and at and at[-1] in ANY_ORDER:
            expected, actual = sorted(expected, key=_label), sorted(actual, key=_label)
        for i, (one, other) in enumerate(zip_longest(expected, actual)):
            yield from self.compare(one, other, (*at, str(i)))


def _is_nothing(value: Any) -> bool:
    """Zeros all the way down."""
    return all(map(_is_nothing, value.values())) if isinstance(value, dict) else value == 0


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, float) and isinstance(actual, int | float):
        return abs(expected - actual) <= PRECISION * max(1.0, abs(expected))
    if expected == actual:
        return True
    times = (
        isinstance(expected, str) and isinstance(actual, str) and _TIME.fullmatch(expected) and _TIME.fullmatch(actual)
    )
    return bool(times) and datetime.fromisoformat(expected) == datetime.fromisoformat(actual)


def _label(item: Any) -> str:
    """Who an item of a list is about, enough to line up two lists of them."""
    if isinstance(item, dict):
        return f"{item.get('workload') or item.get('ask')}\0{item.get('task') or ''}"
    return str(item)


def _said(at: tuple[str, ...], expected: Any, actual: Any) -> str:
    said = "nothing" if actual is _NOTHING else repr(actual)[:300]
    return f"/{'/'.join(at)}: expected {str(expected)[:300]!r}, got {said}".replace("\\x00", "/")
