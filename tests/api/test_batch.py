"""``POST /v1/decisions:batch``: order, errors line by line, streaming."""

import json
from typing import Any

from starlette.testclient import TestClient

from app.base.settings import Settings
from app.service.main import create_app

REQUEST: dict[str, Any] = {
    "engine": "kueue",
    "now": "2026-11-21T12:00:00Z",
    "configuration": {"queues": [{"name": "q", "quota": {"cpu": {"guaranteed": 1}}}]},
    "state": {"workloads": []},
    "asks": [{"id": "a", "queue": "q", "tasks": [{"name": "m", "requests": {"cpu": 1}}]}],
}


def lines(*documents: Any) -> bytes:
    return b"".join((d if isinstance(d, bytes) else json.dumps(d).encode()) + b"\n" for d in documents)


def ask(service: TestClient, body: bytes) -> list[dict[str, Any]]:
    answer = service.post("/v1/decisions:batch", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def test_answers_come_in_order_and_a_wrong_line_spoils_no_other(service: TestClient) -> None:
    wrong = {**REQUEST, "asks": [{**REQUEST["asks"][0], "queue": "ghost"}]}
    many = [{**REQUEST, "asks": [{**REQUEST["asks"][0], "id": f"a{i}"}]} for i in range(20)]
    found = ask(service, lines(*many[:10], wrong, b"", b"{not json", *many[10:]))
    assert [f["line"] for f in found] == list(range(1, 23))
    assert [f["status"] for f in found] == [200] * 10 + [422, 400] + [200] * 10
    assert [f["answer"]["decisions"][0]["ask"] for f in found if "answer" in f] == [f"a{i}" for i in range(20)]
    assert found[10]["problem"]["errors"][0]["pointer"] == "/asks/0/queue"


def test_the_last_line_needs_no_line_feed_and_an_empty_batch_is_empty(service: TestClient) -> None:
    assert ask(service, json.dumps(REQUEST).encode())[0]["status"] == 200
    assert ask(service, b"\n\n") == []


def test_a_line_past_the_limit_is_refused_alone(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"max_body_bytes": 2048}))
    with TestClient(app, raise_server_exceptions=False) as service:
        found = ask(service, lines(REQUEST, b'"' + b"x" * 9000 + b'"', REQUEST, b"y" * 9000))
    assert [f["status"] for f in found] == [200, 413, 200, 413]


def test_lines_are_of_json_and_not_compressed(service: TestClient) -> None:
    def status(**headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return service.post("/v1/decisions:batch", content=lines(REQUEST), headers=named).status_code

    assert status(Content_Type="application/jsonl") == 200
    assert status(Content_Type="text/csv") == 415
    assert status(Content_Type="application/x-ndjson", Content_Encoding="gzip") == 415
    assert status(Content_Type="application/x-ndjson", Content_Encoding="identity") == 200
