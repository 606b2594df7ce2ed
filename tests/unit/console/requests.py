"""Requests made by hand: an app without a service behind it, its sessions, and its operations."""

from types import SimpleNamespace
from typing import Any, cast

from fastapi.exceptions import RequestValidationError
from starlette.requests import Request

from app.auth.audit import Caller, welcome
from app.auth.router import Sessions
from app.auth.tokens import Guesses, Tokens
from app.base.errors import Unavailable
from app.base.settings import Settings
from app.console.access import ProviderSignIn
from app.console.overview import Listeners
from app.http.body import Budget
from app.http.routing import Resolved
from tests.support.services import services

Json = dict[str, Any]
READER = Caller("reader", frozenset({"read"}))


class Database:
    """Away."""

    is_silent = True

    def session(self) -> Any:
        raise Unavailable("away")


class Known:
    """Tokens: ``secret`` is that of a reader."""

    def caller(self, secret: str) -> Caller | None:
        return READER if secret == "secret" else None


class Operations:
    """One operation at each path that ``places`` names: what needs which scope, and answers how."""

    def __init__(self, **places: Any) -> None:
        self._places = {"/" + name.replace("__", "/"): one for name, one in places.items()}
        self.ran: list[Json] = []

    def resolve(self, scope: Any) -> Resolved:
        one = self._places.get(scope["path"])
        return cast(Resolved, SimpleNamespace(place=one, operation=one, parameters={}))

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        first = await receive()
        self.ran.append({**scope, "body": first["body"], "more": first["more_body"]})
        await self._places[scope["path"]].run(scope, receive, send)


def operation(answer: Any = None, needs: str | None = None, *, page: bool = False) -> Any:
    async def run(scope: Any, receive: Any, send: Any) -> None:
        if isinstance(answer, Exception):
            raise answer
        await answer(scope, receive, send)

    def refuse_unknown(request: Request) -> None:
        if "unknown" in request.query_params:
            raise RequestValidationError([{"loc": ("query", "unknown"), "msg": "unknown parameter"}])

    return SimpleNamespace(needs=needs, page=page, run=run, refuse_unknown=refuse_unknown)


def request(
    operations: Operations | None = None, *, path: str = "/", method: str = "GET", headers: Json | None = None,
    query: str = "", settings: Json | None = None, caller: Caller | None = None, body: bytes = b"",
    flow: Any = None, scheme: str = "http",
) -> Request:  # fmt: skip
    given = Settings.model_construct(**{"authentication": "required", "oidc_client_id": None, **(settings or {})})
    sessions = Sessions(cast(Any, Database()), cast(Tokens, Known()), "key", 3600)
    found = services(given, sessions, Budget(1 << 20), ProviderSignIn(flow), Listeners(2), Guesses())
    state = SimpleNamespace(operations=operations or Operations(), services=found)
    said = {"host": "arbiter.test", **(headers or {})}
    scope: Json = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in said.items()], "scheme": scheme,
        "server": ("arbiter.test", 80), "root_path": "", "app": SimpleNamespace(state=state), "http_version": "1.1",
    }  # fmt: skip
    if caller is not None:
        welcome(scope, caller)
    sent = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return sent.pop(0) if sent else {"type": "http.disconnect"}

    return Request(scope, receive)
