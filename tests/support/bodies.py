"""What tests of bodies share with those beside them."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.live import Live, running

MIB = 1 << 20


@pytest.fixture
def live(migrated_url: str, tmp_path: Path) -> Iterator[Live]:
    with running(migrated_url, tmp_path, WORKERS="1", ARBITER_BODIES_MEMORY_BYTES=str(64 * MIB)) as found:
        yield found


@contextmanager
def watched(live: Live) -> Iterator[list[float]]:
    """How long /healthz takes meanwhile, every time."""
    taken, stop = list[float](), threading.Event()

    def ask() -> None:
        connection = HTTPConnection(urlsplit(live.address).netloc, timeout=60)
        while not stop.wait(0.02):
            began = time.monotonic()
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            taken.append(time.monotonic() - began)
        connection.close()

    watcher = threading.Thread(target=ask)
    watcher.start()
    try:
        yield taken
    finally:
        stop.set()
        watcher.join()
