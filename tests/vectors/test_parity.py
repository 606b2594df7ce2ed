"""Every recorded decision, through the HTTP layer: the answer must say what the recorded system did."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.main import create_app
from app.settings import Settings
from tests.asgi import Asgi
from tests.vectors.compare import disagreements
from tests.vectors.files import HERE, SHARED, count, files, read

EVERY_CHUNK, SELECTED_CHUNK = 250, 25
"""Vectors in a test: few of the selection, so that one that disagrees is met soon."""
SHOWN = 5


@pytest.fixture(scope="module")
def service() -> Iterator[Asgi]:
    """The application without a database: what a vector needs is in its request."""
    with Asgi(create_app(Settings(database_url=None, workers=0))) as client:
        yield client


def _chunks(root: Path, size: int) -> list[Any]:
    return [
        pytest.param(path, start, size, id=f"{path.parent.name}/{path.name.removesuffix('.jsonl.gz')}-{start}")
        for path in files(root)
        for start in range(0, count(path), size)
    ]


def _disagree(service: Asgi, path: Path, start: int, size: int) -> list[str]:
    """The vectors of a chunk whose answers differ, each with its first differences."""
    found: list[str] = []
    for vector in read(path, start, size):
        status, body = service.post(vector.get("path", "/v1/decisions"), json.dumps(vector["request"]).encode())
        differences = (
            disagreements(vector, json.loads(body))
            if status == vector.get("status", 200)
            else [f"HTTP {status}: {body[:300].decode()}"]
        )
        if differences:
            found.append(f"{vector['id']}: {'; '.join(differences[:3])}")
    return found


@pytest.mark.parametrize(("path", "start", "size"), _chunks(HERE, SELECTED_CHUNK))
def test_the_selection_agrees(path: Path, start: int, size: int, service: Asgi) -> None:
    found = _disagree(service, path, start, size)
    assert not found, f"{len(found)} disagree, such as\n" + "\n".join(found[:SHOWN])


@pytest.mark.parametrize(("path", "start", "size"), _chunks(SHARED, EVERY_CHUNK))
def test_every_vector_agrees(path: Path, start: int, size: int, service: Asgi) -> None:
    found = _disagree(service, path, start, size)
    assert not found, f"{len(found)} disagree, such as\n" + "\n".join(found[:SHOWN])
