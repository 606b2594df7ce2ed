"""Instants as microseconds since 1970, and back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from app.solver.model.base import micros, to_datetime

DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1970, 1, 3, 0, 0, 1, 2, tzinfo=UTC), 2 * DAY + 1_000_002),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1),
        (datetime(2026, 1, 1, tzinfo=UTC), 1_767_225_600_000_000),
        (datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 1_767_225_600_000_000),
    ],
)
def test_there_and_back(moment: datetime, expected: int) -> None:
    assert micros(moment) == expected
    assert to_datetime(expected) == moment
