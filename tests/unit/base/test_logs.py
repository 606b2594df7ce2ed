"""Log lines: what is in one, which are written, and that nothing about them stops who writes."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from app.base import logs
from app.base.settings import Settings
from tests.support.instead import Machine

log = structlog.stdlib.get_logger("arbiter.tests")


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What is written to, by lines of JSON from ``info`` on."""
    with monkeypatch.context() as patched:
        found = io.StringIO()
        Machine(patched).shows(found)
        logging.getLogger().setLevel(logging.CRITICAL)
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


def test_lines_of_libraries_are_ours(stream: io.StringIO) -> None:
    """In the same form, from the same level on; of those that talk much only warnings."""
    library = logging.getLogger("some.library")
    library.debug("no")
    library.info("yes %d", 1)
    for name in ("alembic", "uvicorn.error"):
        logging.getLogger(name).info("no")
        logging.getLogger(name).warning("yes")
    found = [(line["logger"], line["level"], line["event"]) for line in lines(stream)]
    assert found == [
        ("some.library", "info", "yes 1"), ("alembic", "warning", "yes"), ("uvicorn.error", "warning", "yes"),
    ]  # fmt: skip
    assert all(line["timestamp"].endswith("Z") for line in lines(stream))


class Terminal(io.StringIO):
    """A stream that people read."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("chosen", "terminal", "json_lines"),
    [("json", True, True), ("console", False, False), ("auto", True, False), ("auto", False, True)],
)
def test_people_and_machines_read_different_forms(
    chosen: Any, terminal: bool, json_lines: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        to = Terminal() if terminal else io.StringIO()
        Machine(patched).shows(to)
        logs.configure(Settings(log_level="debug", log_format=chosen))
        log.debug("said", of="x")
        try:
            raise ValueError("why")
        except ValueError:
            log.exception("it failed")
    logs.configure(Settings(log_level="error"))
    assert to.getvalue().startswith("{") is json_lines
    if json_lines:
        (frame,) = json.loads(to.getvalue().splitlines()[1])["exception"][0]["frames"]
        assert frame.get("locals") is None, "what a caller sent may be secret"
    else:
        assert "ValueError: why" in to.getvalue()
        assert "{" not in to.getvalue().splitlines()[0]


def test_a_line_is_there_at_once_and_whole() -> None:
    class Buffered(io.StringIO):
        flushed = ""

        def flush(self) -> None:
            self.flushed = self.getvalue()

    to, written = Buffered(), logs._Stream()  # pyright: ignore[reportPrivateUsage]
    written.open(to, logging.INFO)
    written.line("a")
    assert (to.flushed, written.level) == ("a\n", logging.INFO)
    assert logs._Stream().level == logging.WARNING  # pyright: ignore[reportPrivateUsage]
