"""What an empty service is filled with: requests that anybody could send, and that mean what they should."""

import json
from typing import Any

from app.base.decoding import decode
from app.service.serve import NAME, fill
from app.solver.model.request import DecisionRequest


def sent() -> list[tuple[str, str, bytes, str]]:
    found: list[tuple[str, str, bytes, str]] = []

    def send(method: str, path: str, body: bytes, media: str) -> None:
        found.append((method, path, body, media))

    fill(send)
    return found


def test_every_page_of_the_console_has_something_to_show() -> None:
    asked = [(method, path, media) for method, path, _, media in sent()]
    assert asked == [
        *[("POST", "/v1/decisions", "application/json")] * 5,
        ("PUT", f"/v1/snapshots/{NAME}", "application/json"),
        ("PUT", f"/v1/traces/{NAME}?format=ndjson", "application/x-ndjson"),
        *[("POST", "/v1/simulations", "application/json")] * 2,
    ]


def test_decisions_are_of_every_engine_and_one_waits() -> None:
    requests = [decode(body, DecisionRequest) for _, path, body, _ in sent() if path == "/v1/decisions"]
    assert [request.engine for request in requests] == ["yunikorn", "ytsaurus", "kai", "kueue", "kueue"]
    first, waiting = (json.loads(body) for _, path, body, _ in sent()[3:5] if path == "/v1/decisions")
    assert first["configuration"] == waiting["configuration"] == NAME
    assert waiting["asks"][0]["id"] == "embeddings-large" != first["asks"][0]["id"]
    assert waiting["asks"][0]["tasks"][0]["count"] == 12 > first["asks"][0]["tasks"][0]["count"]
    assert waiting["state"] == first["state"]


def test_the_snapshot_and_the_trace_have_the_name_of_the_configuration() -> None:
    documents: dict[str, Any] = {path: body for _, path, body, _ in sent()}
    kept = json.loads(documents[f"/v1/snapshots/{NAME}"])
    assert (kept["engine"], kept["configuration"], set(kept)) == (
        "kueue",
        NAME,
        {"engine", "configuration", "state", "asks"},
    )
    lines = documents[f"/v1/traces/{NAME}?format=ndjson"].splitlines()
    assert len(lines) > 1
    assert all(json.loads(line)["ask"]["id"] for line in lines)
    traces = [json.loads(body)["trace"] for _, path, body, _ in sent() if path == "/v1/simulations"]
    assert traces[0] == NAME
    assert traces[1] != NAME
