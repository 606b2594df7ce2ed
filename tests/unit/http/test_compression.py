import asyncio
import gzip
import threading

import pytest
import zstandard

from app.http import middleware as compression
from app.http.middleware import preferred
from tests.support.instead import Instead


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


@pytest.mark.parametrize("coding", ["zstd", "gzip"])
def test_a_large_body_is_compressed_elsewhere_with_little_work(coding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the lowest level: on its way an answer waits for the processor, not for the network."""
    inside: list[str] = []
    plainly = compression.compress  # pyright: ignore[reportPrivateUsage]

    def watched(coding: str, body: bytes) -> bytes:
        inside.append(threading.current_thread().name)
        return plainly(coding, body)

    Instead(monkeypatch)(compression, compress=watched)
    body = b"".join(b'{"n": %d, "square": %d},' % (n, n * n) for n in range(4000))
    for size in (1 << 16, (1 << 16) + 1):
        made = asyncio.run(compression._compressed(coding, body[:size]))  # pyright: ignore[reportPrivateUsage]
        least = zstandard.compress(body[:size], 1) if coding == "zstd" else gzip.compress(body[:size], 1, mtime=0)
        assert made == least
    here = threading.current_thread().name
    assert (inside[0] == here, inside[1] == here) == (True, False)
