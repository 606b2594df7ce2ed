"""Where two JSON documents differ, as pointers."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

import msgspec

from app.solver.model.problems import pointer

_MOST = 50


def differences(one: bytes, other: bytes) -> list[str]:
    """Pointers of the first 50 places where the documents differ, in document order; empty when they are equal."""
    if one == other:
        return []
    return list(islice(_walk(msgspec.json.decode(one), msgspec.json.decode(other), ()), _MOST))


def _walk(one: Any, other: Any, at: tuple[str | int, ...]) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast(dict[str, Any], one), cast(dict[str, Any], other)
        for key in left | right:
            if (key in left) != (key in right):
                yield pointer(*at, key)
            else:
                yield from _walk(left[key], right[key], (*at, key))
    elif isinstance(one, list) and isinstance(other, list):
        first, second = cast(list[Any], one), cast(list[Any], other)
        for i in range(max(len(first), len(second))):
            if i >= len(first) or i >= len(second):
                yield pointer(*at, i)
            else:
                yield from _walk(first[i], second[i], (*at, i))
    elif repr(cast(object, one)) != repr(other):  # 1 and 1.0 are other bytes
        yield pointer(*at)
