"""The public API as its own pages use it: the same operations, with the scopes of whoever looks, without a connection.

Every page is made of such calls, so it can show nothing that a program could not ask for, and can name each request.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlencode

import msgspec
from starlette.requests import Request
from starlette.types import Message, Scope

from app.auth.audit import Caller, allows
from app.base.errors import ArbiterError, Forbidden
from app.http.body import release
from app.http.responses import answer_to
from app.http.routing import Operations

_KEPT = (
    "type", "asgi", "http_version", "scheme", "root_path", "client", "server", "app", "state",
    "starlette.exception_handlers", "fastapi_middleware_astack", "extensions",
)  # fmt: skip
Query = Mapping[str, str | int | bool | None]
Json = dict[str, Any]


class ApiError(Exception):
    """The API's answer is a problem document (RFC 9457)."""

    def __init__(self, status: int, document: dict[str, Any], headers: Mapping[str, str]) -> None:
        super().__init__(status, document)
        self.status = status
        self.document = document
        self.headers = headers

    @property
    def detail(self) -> str:
        """What is wrong, in one sentence."""
        return str(self.document.get("detail", ""))

    @property
    def faults(self) -> list[dict[str, Any]]:
        """Every field at fault: ``pointer`` or ``parameter``, and ``detail``."""
        return list(self.document.get("errors", ()))


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; ``etag``: the version that it shows."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def etag(self) -> str | None:
        """The entity tag."""
        return self.headers.get("etag")

    def json(self) -> Any:
        """The document. Integers stay integers."""
        return msgspec.json.decode(self.body)

    def lines(self) -> list[Json]:
        """The documents, one a line."""
        return [msgspec.json.decode(line) for line in self.body.splitlines()]


@dataclass(frozen=True, slots=True)
class Call:
    """A request behind a page, as one would send it from elsewhere."""

    method: str
    target: str
    body: bytes | None


class Api:
    """Calls on behalf of ``caller``; ``calls``: those made so far."""

    def __init__(self, request: Request, caller: Caller) -> None:
        self._scope = request.scope
        self._operations: Operations = request.app.state.operations
        self._caller = caller
        self.calls: list[Call] = []

    def may(self, scope: str) -> bool:
        """Whether the caller has that scope."""
        return allows(self._caller.scopes, scope)

    async def get(self, path: str, query: Query | None = None) -> Any:
        """The JSON document at ``path``. Raises ApiError."""
        return (await self.call("GET", path, query)).json()

    async def find(self, path: str, query: Query | None = None) -> Any:
        """The same; None where there is none. Raises ApiError for anything else."""
        try:
            return await self.get(path, query)
        except ApiError as refused:
            if refused.status == 404:
                return None
            raise

    async def ask(self, path: str, body: Any, query: Query | None = None) -> Any:
        """The answer to a question, which a program would POST. Raises ApiError."""
        return (await self.call("POST", path, query, body)).json()

    async def call(
        self, method: str, path: str, query: Query | None = None, body: Any = None, headers: Query | None = None
    ) -> Reply:
        """The answer, where it is no error. ``body``: bytes, or what becomes JSON. Raises ApiError, Forbidden."""
        asked = {name: _word(value) for name, value in (query or {}).items() if value is not None}
        sent = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        search = urlencode(asked)
        raw = quote(path, safe="/:@!$&'()*+,;=~-._%")
        self.calls.append(Call(method, raw + (f"?{search}" if search else ""), sent))
        scope = self._request_scope(method, path, search, sent, headers or {})
        reply = await self._run(scope, sent or b"")
        if reply.status >= 400:
            raise ApiError(reply.status, reply.json(), reply.headers)
        return reply

    def _request_scope(self, method: str, path: str, search: str, body: bytes | None, headers: Query) -> Scope:
        """The scope of the call; ``path`` is as ``segment`` puts it together."""
        scope: Scope = {name: self._scope[name] for name in _KEPT if name in self._scope}
        said = {name.lower(): str(value) for name, value in headers.items() if value is not None}
        if body is not None:
            said |= {"content-type": said.get("content-type", "application/json"), "content-length": str(len(body))}
        decoded = unquote(path)
        scope.update(
            method=method, path=decoded, raw_path=path.encode(), query_string=search.encode(),
            headers=[(name.encode(), value.encode("utf-8")) for name, value in said.items()],
        )  # fmt: skip
        return scope

    async def _run(self, scope: Scope, body: bytes) -> Reply:
        match = self._operations.resolve(scope)
        needed = () if match.operation is None else match.operation.needs
        if match.operation is None or match.operation.page:
            said = {"title": "Not found", "status": 404, "detail": "there is no such operation"}
            return Reply(404, msgspec.json.encode(said), {})
        if needed and not any(map(self.may, needed)):
            raise Forbidden(f"this needs scope {' or '.join(needed)}")
        answer = _Answer(body)
        try:
            await self._operations.handle(scope, answer.receive, answer.send)
        except ArbiterError as error:
            await (await answer_to(Request(scope), error))(scope, answer.receive, answer.send)
        finally:
            release(scope)
        return answer.reply()


class _Answer:
    """One call's two ends."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._ended = asyncio.Event()
        self._status = 500
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []

    async def receive(self) -> Message:
        """The body, in one piece; then nothing before the answer is whole: who streams it waits for our going away."""
        if self._body is None:
            await self._ended.wait()
            return {"type": "http.disconnect"}
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        """A piece of the answer."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {name.decode().lower(): value.decode("latin-1") for name, value in message["headers"]}
        elif message["type"] == "http.response.body":
            self._pieces.append(message.get("body", b""))
            if not message.get("more_body"):
                self._ended.set()

    def reply(self) -> Reply:
        """All of it."""
        return Reply(self._status, b"".join(self._pieces), self._headers)


def status_of(problem: Json | None) -> int:
    """Of a page that shows ``problem``, or nothing that is wrong."""
    return 200 if problem is None else int(problem.get("status", 422))


def next_page(page: Json, path: str, wanted: Mapping[str, str], *, name: str = "cursor", part: str = "") -> str | None:
    """The address of what follows on ``page``, a page of a list; None on the last.

    ``name``: of the parameter that says where a page begins; ``part``: of the page of the console that shows it.
    """
    more = page.get("next_cursor")
    return f"{path}?{urlencode({**wanted, name: more})}{part}" if more else None


def segment(text: str) -> str:
    """``text`` as one part of a path, slashes and all."""
    return quote(text, safe="")


def _word(value: str | int | bool | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def names_of(api: Api, path: str) -> list[str]:
    """Of a list of stored things, the first 500."""
    return [entry["name"] for entry in (await api.get(path, {"limit": 500}))["items"]]


async def places_of(api: Api) -> list[tuple[Json, str | None]]:
    """Kept snapshots, each with the followed cluster whose it is."""
    clusters = {cluster["snapshot"]: cluster["name"] for cluster in (await api.get("/v1/clusters"))["items"]}
    return [(snapshot, clusters.get(snapshot["name"])) for snapshot in (await api.get("/v1/snapshots"))["items"]]
