"""The database goes away and comes back: what needs none goes on, the rest says when to try again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.db.embedded import EmbeddedPostgres
from app.service.main import create_app
from tests.api.requests import DECISION, changed, decision

STORED = {"engine": "kueue", **DECISION["configuration"]}


class Fragile:
    """A service and the server of its database."""

    def __init__(self, folder: Path) -> None:
        self.server = EmbeddedPostgres(folder, settings=("fsync=off",))
        url = self.server.start()
        settings = Settings(database_url=url, workers=0, database_connect_timeout=1, database_pool_timeout=1)
        self.app = create_app(settings)


@pytest.fixture
def fragile(data_folder: Path) -> Iterator[Fragile]:
    made = Fragile(data_folder)
    yield made
    made.server.stop()


def unavailable(response: Response) -> None:
    assert response.status_code == 503, response.text
    assert response.headers["Content-Type"] == "application/problem+json"
    assert int(response.headers["Retry-After"]) > 0


def test_inline_decisions_go_on_and_the_rest_says_when_to_try_again(fragile: Fragile) -> None:
    with TestClient(fragile.app, raise_server_exceptions=False) as client:
        created = client.put("/v1/configurations/prod", json=STORED)
        assert created.status_code == 201
        before = client.post("/v1/decisions", json=decision())
        assert before.status_code == 200
        kept = client.get("/v1/decisions").json()["items"][0]["id"]

        fragile.server.stop()
        during = client.post("/v1/decisions", json=decision())
        assert during.status_code == 200
        assert during.json()["decisions"] == before.json()["decisions"]
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 503
        assert client.get("/metrics").status_code == 200
        by_name = client.post("/v1/decisions", json=changed("/configuration", "prod"))
        assert by_name.status_code == 200
        assert by_name.json()["configuration"]["revision"] == 1
        unavailable(client.post("/v1/decisions", json=changed("/configuration", "never-seen")))
        unavailable(client.get("/v1/configurations"))
        unavailable(client.get("/v1/configurations/prod"))
        unavailable(client.put("/v1/configurations/other", json=STORED))
        unavailable(client.put("/v1/configurations/other?dry_run=true", json=STORED))
        unavailable(client.delete("/v1/configurations/prod", headers={"If-Match": created.headers["ETag"]}))
        unavailable(client.get("/v1/decisions"))
        unavailable(client.get(f"/v1/decisions/{kept}"))
        unavailable(client.post(f"/v1/decisions/{kept}/replay"))

        fragile.server.start()
        assert client.get("/readyz").status_code == 200
        assert client.get("/v1/configurations/prod").headers["ETag"] == created.headers["ETag"]
        assert client.post("/v1/decisions", json=changed("/configuration", "prod")).status_code == 200


def test_bad_input_is_said_before_the_database_is_asked(homeless: TestClient) -> None:
    assert homeless.put("/v1/configurations/c", json={"engine": "kueue", "colour": 1}).status_code == 422
    assert homeless.post("/v1/decisions", content=b"{").status_code == 400


def test_a_revision_once_read_is_still_decided_with(fragile: Fragile) -> None:
    with TestClient(fragile.app, raise_server_exceptions=False) as client:
        assert client.put("/v1/configurations/prod", json=STORED).status_code == 201
        by_number = changed("/configuration", "prod@1")
        assert client.post("/v1/decisions", json=by_number).status_code == 200
        fragile.server.stop()
        assert client.post("/v1/decisions", json=by_number).status_code == 200
