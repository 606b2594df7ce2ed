"""Arbiter's own interface, as the follower uses it: one connection that is kept, JSON both ways."""

from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import urllib3
from urllib3.exceptions import HTTPError

_CONNECT, _ANSWER = 5.0, 120.0
_SHOWN = 5


class Away(Exception):
    """The service can't be reached, or can't answer now."""


class Refused(Exception):
    """The service does not do it. ``status``, ``code``: of the problem; the text says what is wrong."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code


class Reply(NamedTuple):
    """A body, and the entity tag that came with it."""

    body: bytes
    etag: str | None


class Arbiter:
    """The service at ``url``; ``token`` goes along as a bearer token."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url.rstrip("/") + "/v1"
        self._headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._pool = urllib3.PoolManager(maxsize=2, retries=False)

    def ask(self, method: str, *path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        """``path``: segments below ``/v1``. Raises Away, Refused."""
        address = "/".join([self._url, *(quote(part, safe="") for part in path)])
        content = None if body is None else msgspec.json.encode(body)
        try:
            answer = self._pool.request(
                method, address, body=content, headers=self._headers | (headers or {}),
                timeout=urllib3.Timeout(connect=_CONNECT, read=_ANSWER),
            )  # fmt: skip
        except HTTPError as error:
            raise Away(f"{self._url}: {error}") from None
        if answer.status < 300:
            return Reply(answer.data, answer.headers.get("ETag"))
        problem = _problem(answer.data)
        text = f"{method} {address}: {answer.status} {problem.get('detail') or problem.get('title') or ''}"
        errors: list[dict[str, Any]] = problem.get("errors") or []
        for error in errors[:_SHOWN]:
            text += f"; {error.get('pointer')}: {error.get('detail')}"
        if answer.status >= 500 or answer.status == 429:
            raise Away(text)
        raise Refused(answer.status, str(problem.get("code") or ""), text[:1900])


def _problem(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
