"""A service of the same process, as a follower asks it."""

from typing import Any
from urllib.parse import quote

import msgspec
from starlette.testclient import TestClient

from app.following.keeping import ApiError, Arbiter, Reply


class Near(Arbiter):
    """The service of a test. ``asked``: methods and paths."""

    def __init__(self, service: TestClient) -> None:
        self._service = service
        self.asked: list[str] = []

    def ask(self, method: str, *path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        self.asked.append(f"{method} {'/'.join(path)}")
        content = None if body is None else msgspec.json.encode(body)
        sent: Any = {"Content-Type": "application/json"} | (headers or {})
        answer = self._service.request(
            method, "/".join(["/v1", *(quote(part, safe="") for part in path)]), content=content,
            headers={name: value.encode("latin-1") for name, value in sent.items()},
        )  # fmt: skip
        if answer.status_code < 300:
            return Reply(answer.content, answer.headers.get("ETag"))
        errors = {error["pointer"]: error["detail"] for error in answer.json().get("errors", ()) if "pointer" in error}
        raise ApiError(answer.status_code, answer.json().get("code") or "", answer.text, errors)
