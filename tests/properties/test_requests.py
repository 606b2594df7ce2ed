"""Laws of every question to every engine, over HTTP, on recorded requests: shuffled, and got wrong."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from app.base.settings import Settings
from app.service.main import create_app
from tests.support.asgi import Asgi
from tests.support.mutations import mutated
from tests.support.profiles import share
from tests.vectors.files import ENGINES, HERE, files, read

MUTATIONS = share(400)
SHUFFLED = share(60)


@pytest.fixture(scope="module")
def service() -> Iterator[Asgi]:
    with Asgi(create_app(Settings(database_url=None, workers=0))) as client:
        yield client


def shuffled(value: Any, random: Random) -> Any:
    """The same document with the keys of every object in another order."""
    if isinstance(value, dict):
        items = list(value.items())
        random.shuffle(items)
        return {key: shuffled(child, random) for key, child in items}
    return [shuffled(child, random) for child in value] if isinstance(value, list) else value


def timeless(body: bytes) -> Any:
    """An answer without the parts that may differ between equal requests."""
    document = json.loads(body)
    return json.dumps({key: value for key, value in document.items() if key not in ("id", "stats")})


def explained(vector: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    path = vector.get("path", "/v1/decisions")
    return path, vector["request"] | ({"explain": "full"} if path == "/v1/decisions" else {})


@pytest.mark.parametrize(
    "path", files(HERE), ids=lambda path: f"{path.parent.name}-{path.name.removesuffix('.jsonl.gz')}"
)
def test_the_order_of_keys_never_shows(path: Path, service: Asgi) -> None:
    random = Random(path.name)
    vectors = read(path)
    for vector in vectors[:: max(1, len(vectors) // SHUFFLED)]:
        where, request = explained(vector)
        status, body = service.post(where, json.dumps(request).encode())
        assert status == 200, vector["id"]
        again, other = service.post(where, json.dumps(shuffled(request, random)).encode())
        assert (again, timeless(other)) == (status, timeless(body)), vector["id"]


@pytest.mark.parametrize("engine", ENGINES)
def test_no_request_breaks_the_service(engine: str, service: Asgi) -> None:
    random = Random(engine)
    vectors = [vector for path in files(HERE) if path.parent.name == engine for vector in read(path)]
    seen = {200: 0, 400: 0, 404: 0, 422: 0, 503: 0}  # 503: a name where the configuration was, and no database
    for _ in range(MUTATIONS):
        where, request = explained(random.choice(vectors))
        body = json.dumps(mutated(request, random, random.choice((1, 1, 2, 3)))).encode()
        status, answer = service.post(where, body)
        assert status in seen, body
        seen[status] += 1
        if status in (400, 404, 422):
            assert all("pointer" in error and error["detail"] for error in json.loads(answer)["errors"]), body
        if status == 200 and json.loads(body).get("now"):  # else the host's clock is in the answer
            assert timeless(service.post(where, body)[1]) == timeless(answer), body
    assert seen[200] > MUTATIONS // 10
    assert seen[422] > MUTATIONS // 10
