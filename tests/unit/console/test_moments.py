"""Times as people write them in the log's filter."""

from datetime import UTC, datetime, timedelta

import pytest

from app.console.decisions import moment_of as moment


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("2026-03-02 09:30:07", "2026-03-02T09:30:07Z"),
        ("2026-03-02T09:30", "2026-03-02T09:30:00Z"),
        ("2026-03-02", "2026-03-02T00:00:00Z"),
        (" 2026-03-02T09:30:00+02:00 ", "2026-03-02T09:30:00+02:00"),
        ("yesterday", "yesterday"),
        ("", ""),
    ],
)
def test_as_a_browser_and_as_the_log_write_them(typed: str, meant: str) -> None:
    assert moment(typed) == meant


def test_so_long_ago() -> None:
    found = datetime.fromisoformat(moment("2h"))
    assert abs(datetime.now(UTC) - timedelta(hours=2) - found) < timedelta(minutes=1)
