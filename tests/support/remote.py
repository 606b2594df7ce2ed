"""What tests of remote share with those beside them."""

import json
from typing import Any

import pytest

from app.cli import run
from app.cli.remote import Reply, Service
from tests.support.instead import Instead

Json = dict[str, Any]


MAIN = "/v1/configurations/main"


class Fake:
    """A service: answers by method and path, and what it was sent."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []
        self.sent: list[tuple[str, bytes | None, Json]] = []
        Instead(patch)(Service, send=lambda service, *given: self.send(*given))

    def says(self, what: str, body: Any, status: int = 200, etag: str | None = None) -> None:
        self.answers[what] = Reply(status, b"" if body is None else json.dumps(body).encode(), etag)

    def send(self, method: str, path: str, body: bytes | None, headers: Json) -> Reply:
        what = f"{method} {path}"
        self.asked.append(what)
        if method != "GET":
            self.sent.append((what, body, dict(headers)))
        missing = Reply(404, b'{"title":"Not found","detail":"nothing there"}', None)
        return self.answers.get(what, missing)


Captured = pytest.CaptureFixture[str]


JSON_BODY = {"Content-Type": "application/json"}


def said(capsys: Captured, *words: str) -> tuple[int, list[str], list[str]]:
    """Exit code, lines on standard output, lines on standard error."""
    capsys.readouterr()
    code = run(list(words))
    told = capsys.readouterr()
    return code, told.out.splitlines(), told.err.splitlines()
