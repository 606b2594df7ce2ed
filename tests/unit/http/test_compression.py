import pytest

from app.http.compression import preferred


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("", None),
        ("gzip", "gzip"),
        ("gzip, zstd", "zstd"),
        ("GZIP;q=0.5", "gzip"),
        ("zstd;q=0, gzip", "gzip"),
        ("zstd; q=0.0, gzip; q=0", None),
        ("br, deflate", None),
        ("*", None),
    ],
)
def test_the_best_coding_that_is_allowed(accepted: str, coding: str | None) -> None:
    assert preferred(accepted) == coding
