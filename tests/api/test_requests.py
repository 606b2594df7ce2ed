"""What surrounds every request: ids, log lines, failures, and never a blocked health check."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import structlog
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.service.main import create_app
from app.workers.dispatcher import Offload


@pytest.fixture
def lines() -> Iterator[list[Any]]:
    """What is logged meanwhile."""
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as captured:
        yield captured


def test_a_request_id_is_made(homeless: TestClient) -> None:
    first, second = (homeless.get("/healthz").headers["X-Request-ID"] for _ in range(2))
    assert first
    assert first != second


def test_a_request_id_is_taken_over(homeless: TestClient) -> None:
    assert homeless.get("/healthz", headers={"X-Request-ID": "from-me.1"}).headers["X-Request-ID"] == "from-me.1"


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "a\tb", "<script>"])
def test_a_request_id_that_is_none_is_replaced(homeless: TestClient, given: str) -> None:
    made = homeless.get("/healthz", headers={"X-Request-ID": given}).headers["X-Request-ID"]
    assert made != given
    assert made.isalnum()


def test_a_refused_request_has_an_id_too(homeless: TestClient) -> None:
    assert homeless.get("/nowhere", headers={"X-Request-ID": "mine"}).headers["X-Request-ID"] == "mine"


def test_every_request_is_a_log_line(homeless: TestClient, lines: list[Any]) -> None:
    homeless.get("/v1/configurations", headers={"X-Request-ID": "mine"})
    (line,) = [line for line in lines if line["event"] == "request"]
    assert (line["method"], line["path"], line["status"], line["request_id"]) == (
        "GET", "/v1/configurations", 503, "mine",
    )  # fmt: skip
    assert line["milliseconds"] >= 0


def failing_service(error: Exception) -> TestClient:
    app = create_app(Settings(database_url=None, workers=0))

    @app.get("/broken")
    def broken() -> None:
        raise error

    return TestClient(app, raise_server_exceptions=False)


def test_what_breaks_is_a_problem_and_in_the_log(lines: list[Any]) -> None:
    with failing_service(RuntimeError("secret")) as client:
        answer = client.get("/broken", headers={"X-Request-ID": "mine"})
    assert answer.status_code == 500
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "mine" in answer.json()["detail"]
    assert "secret" not in answer.text
    (line,) = [line for line in lines if line["event"] == "request failed"]
    assert (line["request_id"], line["exc_info"]) == ("mine", True)


def test_health_is_answered_while_something_is_solved() -> None:
    app = create_app(Settings(database_url=None, workers=0))
    solving, seen = threading.Event(), threading.Event()

    def solve() -> None:
        solving.set()
        assert seen.wait(20), "health was not answered meanwhile"

    @app.get("/slow")
    async def slow() -> None:
        await app.state.services.of(Offload).run("small", solve)

    with TestClient(app) as client, ThreadPoolExecutor(2) as pool:
        working = pool.submit(client.get, "/slow")
        assert solving.wait(20)
        assert client.get("/healthz").status_code == 200
        assert not working.done()
        seen.set()
        assert working.result().status_code == 200


@pytest.mark.parametrize("path", ["%ff", "a%C3", "%ED%A0%80", "%EF%BF%BD%ff"])
def test_a_path_that_is_not_utf_8_is_refused(homeless: TestClient, path: str) -> None:
    answer = homeless.get(f"/v1/configurations/c/queues/{path}")
    assert (answer.status_code, answer.json()["detail"]) == (400, "the path is not UTF-8")


def test_the_replacement_character_itself_is_a_name(service: TestClient) -> None:
    queue = "/v1/configurations/c/queues/%EF%BF%BD"
    service.put("/v1/configurations/c", json={"engine": "kueue", "queues": [{"name": "\ufffd"}]})
    assert service.get(queue).json()["queue"] == {"name": "\ufffd"}
