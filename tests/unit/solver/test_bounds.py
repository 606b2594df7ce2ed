"""The bounds of what the wire takes, at the last value that it takes and the first that it does not."""

from datetime import datetime
from typing import Any

import msgspec
import pytest

from app.solver.model import base
from app.solver.model.ytsaurus import Slots


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [
        (base.Count, [0, 2**31], [-1, 2**31 + 1]),
        (base.Total, [0, 2**53], [-1, 2**53 + 1]),
        (base.Priority, [-(2**31), 2**31], [-(2**31) - 1, 2**31 + 1]),
        (base.Name, ["a", "a" * 512], ["", "a" * 513]),
        (Slots, [0, 2**31], [-1, 2**31 + 1]),
        (base.Quantity, [1, 1.5, "1Gi"], [None, [1]]),
        (base.Duration, [1, 1.5, "1h"], [None, [1]]),
    ],
)
def test_bounds(kind: Any, inside: list[Any], outside: list[Any]) -> None:
    for value in inside:
        assert msgspec.json.decode(msgspec.json.encode(value), type=kind) == value
    for value in outside:
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(msgspec.json.encode(value), type=kind)


def test_a_time_has_an_offset() -> None:
    whole: Any = base.Time
    assert msgspec.json.decode(b'"2026-01-01T12:00:00+02:00"', type=whole) == datetime.fromisoformat(
        "2026-01-01T10:00:00Z"
    )
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'"2026-01-01T12:00:00"', type=whole)
