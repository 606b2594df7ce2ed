"""Log lines: what is in one, which are written, and that nothing about them stops who writes."""

import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from app import logs
from app.settings import Settings

log = structlog.stdlib.get_logger("arbiter.tests")


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What is written to, by lines of JSON from ``info`` on."""
    with monkeypatch.context() as patched:
        found = io.StringIO()
        patched.setattr(sys, "stderr", found)
        logs.configure(Settings(log_level="info", log_format="json"))
        yield found
    logs.configure(Settings(log_level="error"))


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_says_what_when_and_for_which_request(stream: io.StringIO) -> None:
    with structlog.contextvars.bound_contextvars(request_id="mine"):
        log.info("request", path="/a", status=200)
    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    said = {"event": "request", "path": "/a", "status": 200, "request_id": "mine"}
    assert line == said | {"level": "info", "logger": "arbiter.tests"}


def test_a_level_that_is_not_asked_for_is_not_written(stream: io.StringIO) -> None:
    log.debug("no")
    log.warning("yes")
    assert [(line["event"], line["level"]) for line in lines(stream)] == [("yes", "warning")]


def test_a_failure_has_its_trace(stream: io.StringIO) -> None:
    try:
        raise ValueError("why")
    except ValueError:
        log.exception("it failed")
    (line,) = lines(stream)
    assert (line["level"], line["exception"][0]["exc_value"]) == ("error", "why")


def test_what_json_has_no_form_for_is_written_all_the_same(stream: io.StringIO) -> None:
    log.info("odd", text="\ud800", values={1}, number=float("inf"))
    assert stream.getvalue().count("\n") == 1
    assert "odd" in stream.getvalue()


def test_a_stream_that_is_gone_stops_nobody(stream: io.StringIO) -> None:
    stream.close()
    log.error("nobody reads this")
