"""Every recorded decision, through the HTTP layer: the answer must say what the recorded system did."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.base.settings import Settings
from app.service.main import create_app
from tests.support.asgi import Asgi
from tests.vectors.compare import differences_from
from tests.vectors.files import AT_HAND, HERE, SHARED, files, lines, parts, selected

PART = 80_000 if AT_HAND == SHARED else 8_000
"""Compressed bytes in a test: few of the selection, so that one that disagrees is met soon."""
SHOWN = 5


@pytest.fixture(scope="module")
def service() -> Iterator[Asgi]:
    """The application without a database: what a vector needs is in its request."""
    with Asgi(create_app(Settings(database_url=None, workers=0))) as client:
        yield client


class Vector(msgspec.Struct):
    """What the replay reads of a record; the request is sent as it was recorded."""

    id: str
    request: msgspec.Raw
    path: str = "/v1/decisions"
    status: int = 200


def _parts() -> list[Any]:
    return [
        pytest.param(path, part, of, id=f"{path.parent.name}/{path.name.removesuffix('.jsonl.gz')}-{part}")
        for path in files(AT_HAND)
        for of in (parts(path, PART),)
        for part in range(of)
    ]


@pytest.mark.parametrize(("path", "part", "of"), _parts())
def test_every_vector_agrees(path: Path, part: int, of: int, service: Asgi) -> None:
    """Every ``of``-th vector of a file, beginning with number ``part``."""
    found: list[str] = []
    for line in lines(path)[part::of]:
        vector = msgspec.json.decode(line, type=Vector)
        status, body = service.post(vector.path, bytes(vector.request))
        differences = (
            differences_from(path, json.loads(line), json.loads(body))
            if status == vector.status
            else [f"HTTP {status}: {body[:300].decode()}"]
        )
        if differences:
            found.append(f"{vector.id}: {'; '.join(differences[:3])}")
    assert not found, f"{len(found)} disagree, such as\n" + "\n".join(found[:SHOWN])


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/vectors is not at hand")
def test_the_selection_is_of_the_collection() -> None:
    chosen = [path for path in files(SHARED) if selected(path).exists()]
    assert sorted(map(selected, chosen)) == sorted(files(HERE))
    for path in chosen:
        assert set(lines(selected(path))) <= set(lines(path)), path
