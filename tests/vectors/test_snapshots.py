"""The same decisions from kept snapshots: the state is put and finished by a delta, then decided on by name."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.base.settings import Settings
from app.service.main import create_app
from tests.support.asgi import Asgi
from tests.support.profiles import PROFILE
from tests.vectors.compare import differences_from
from tests.vectors.files import AT_HAND, files, lines, selected

EVERY = int(os.environ.get("SNAPSHOT_VECTORS_EVERY", "8"))
"""One in so many; but for quick tests those of the selection in this folder all."""
SHOWN = 5
NAME = "kept"


@pytest.fixture(scope="module")
def service() -> Iterator[Asgi]:
    """The application without a database: configurations are in the requests."""
    with Asgi(create_app(Settings(database_url=None, workers=0))) as client:
        yield client


def kept(service: Asgi, request: dict[str, Any]) -> dict[str, Any] | str:
    """The request with a snapshot instead of its state; or what was refused."""
    state = request["state"]
    workloads = state.get("workloads", [])
    # What a reservation's ask belongs to must be there from the beginning.
    first = len(workloads) if state.get("reservations") else len(workloads) * 2 // 3
    put = {key: request[key] for key in ("configuration", "engine") if key in request}
    put["state"] = {**state, "workloads": workloads[:first]}
    status, body = service.send("PUT", f"/v1/snapshots/{NAME}", json.dumps(put).encode())
    if status < 300 and first < len(workloads):
        delta = {"generation": json.loads(body)["generation"], "workloads": {"add": workloads[first:]}}
        status, body = service.post(f"/v1/snapshots/{NAME}/deltas", json.dumps(delta).encode())
    if status >= 300:
        return f"HTTP {status}: {body[:300].decode()}"
    return {**request, "state": {"snapshot": NAME}}


def check(service: Asgi, path: Path, chosen: list[bytes]) -> None:
    found: list[str] = []
    for vector in map(json.loads, chosen):
        if "state" not in vector["request"] or vector.get("status", 200) != 200:
            continue
        request = kept(service, vector["request"])
        if isinstance(request, str):
            found.append(f"{vector['id']}: {request}")
            continue
        status, body = service.post(vector.get("path", "/v1/decisions"), json.dumps(request).encode())
        differences = (
            differences_from(path, vector, json.loads(body)) if status == 200 else [f"HTTP {status}: {body[:300]!r}"]
        )
        if differences:
            found.append(f"{vector['id']}: {'; '.join(differences[:3])}")
    assert not found, f"{len(found)} disagree, such as\n" + "\n".join(found[:SHOWN])


def _id(path: Path) -> str:
    return f"{path.parent.name}/{path.name.removesuffix('.jsonl.gz')}"


@pytest.mark.parametrize("path", files(AT_HAND), ids=_id)
def test_recorded_decisions_agree_through_snapshots(path: Path, service: Asgi) -> None:
    chosen = selected(path)
    always = frozenset(lines(chosen)) if PROFILE != "quick" and chosen.exists() else frozenset[bytes]()
    check(service, path, [line for i, line in enumerate(lines(path)) if i % EVERY == 0 or line in always])
