"""A small client of the service's REST interface, on the standard library."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from app.cli.output import BAD_INPUT, UNREACHABLE, complain, notice, tried

_SECONDS = 30


class Unreachable(Exception):
    """Nothing answers at the address; the text says why."""


class ApiError(Exception):
    """The service did not do it. ``what``: about which it was asked, where that is not what the command is about."""

    def __init__(self, reply: "Reply", what: str = "") -> None:
        super().__init__()
        self.reply = reply
        self.what = what


@dataclass(frozen=True, slots=True)
class Reply:
    """What the service answered, whatever its status."""

    status: int
    body: bytes
    etag: str | None

    @property
    def ok(self) -> bool:
        """Whether it did what was asked."""
        return 200 <= self.status < 300

    def done(self, what: str = "") -> "Reply":
        """Itself. Raises ApiError about ``what`` where the service did not do it."""
        if not self.ok:
            raise ApiError(self, what)
        return self

    def guard(self) -> dict[str, str]:
        """The header of a write over this alone; where there was nothing, only if there is still nothing."""
        return {"If-Match": self.etag} if self.ok and self.etag else {"If-None-Match": "*"}

    def json(self) -> Any:
        """The parsed body; an empty object where there is none, or no JSON."""
        try:
            return json.loads(self.body or b"{}")
        except ValueError:
            return {}


@dataclass(frozen=True, slots=True)
class Service:
    """The service at ``url``; ``token`` goes along as a bearer token."""

    url: str
    token: str | None = None

    @property
    def address(self) -> str:
        """``url``, or where the service of this machine is."""
        from app.base.settings import own_address

        return self.url or own_address()

    def get(self, path: str) -> Reply:
        """GET ``path``. Raises Unreachable."""
        return self.send("GET", path, None, {})

    def put(self, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        """PUT a JSON ``body``. Raises Unreachable."""
        return self.send("PUT", path, body, {"Content-Type": "application/json", **headers})

    def post(self, path: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        """POST a JSON ``body``, if any. Raises Unreachable."""
        return self.send("POST", path, body, {"Content-Type": "application/json", **headers} if body else headers)

    def delete(self, path: str, headers: Mapping[str, str]) -> Reply:
        """DELETE ``path``. Raises Unreachable."""
        return self.send("DELETE", path, None, headers)

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        address = self.address
        if not address.startswith(("http://", "https://")):
            raise Unreachable(f"{address}: not an http address")
        sent = {"Accept": "application/json", **headers}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(address.rstrip("/") + path, body, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as response:
                return Reply(response.status, response.read(), response.headers.get("ETag"))
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.read(), error.headers.get("ETag"))
        except OSError as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            how = "; `arbiter serve` starts the service" if isinstance(reason, ConnectionRefusedError) else ""
            raise Unreachable(f"{address}: {reason}{how}") from None


def segment(name: str) -> str:
    """``name`` as one segment of a path."""
    return quote(name, safe="")


def commented(comment: str | None) -> dict[str, str]:
    """The header that takes a comment along; headers travel as one byte a character."""
    return {} if not comment else {"X-Comment": comment.encode().decode("latin-1")}


def got(service: Service, path: str) -> Any:
    """The document that answers GET ``path``. Raises ApiError, Unreachable."""
    return service.get(path).done().json()


def posted(service: Service, path: str, body: dict[str, Any]) -> bytes:
    """The answer to POST ``path``. Raises ApiError, Unreachable."""
    return service.post(path, {}, json.dumps(body).encode()).done().body


def items(service: Service, path: str) -> Iterator[dict[str, Any]]:
    """Those of a list, page after page. Raises ApiError, Unreachable."""
    page = got(service, f"{path}?limit=100")
    yield from page["items"]
    while cursor := page.get("next_cursor"):
        page = got(service, f"{path}?limit=100&cursor={segment(cursor)}")
        yield from page["items"]


def guarded(act: Callable[[], int], what: str) -> int:
    """What ``act`` returns, or the exit code of what went wrong with ``what``, which is said on standard error."""
    try:
        return tried(what, act)
    except Unreachable as error:
        complain(str(error))
        return UNREACHABLE
    except ApiError as error:
        return _refused(error.what or what, error.reply)


def findings(body: Any) -> None:
    """Say what an operator should know."""
    for finding in body.get("findings", ()):
        notice(finding["severity"], finding["detail"], finding["rule"], "", finding["pointer"])


def _refused(what: str, reply: Reply) -> int:
    """Say why the service did not do it; the exit code."""
    body = reply.json()
    complain(f"{what}: {reply.status} {body.get('detail') or body.get('title') or 'refused'}")
    for problem in body.get("errors", ()):
        complain(f"  {problem.get('pointer') or '(document)'}: {problem.get('detail')}")
    findings(body)
    return BAD_INPUT if reply.status < 500 else UNREACHABLE
