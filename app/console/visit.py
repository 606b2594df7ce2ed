"""One visit of a page: who looks, with which session, what is asked of the API for it, and how it is answered.

With what each page needs: the cookie of a session, templates, the navigation.
"""

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Coroutine
from functools import cache
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from anyio import to_thread
from fastapi import Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import ChainableUndefined, Environment, FileSystemLoader
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope

from app.auth.audit import caller_of
from app.auth.router import Session, Sessions
from app.base.errors import ArbiterError, BadRequest, Forbidden, Unavailable
from app.base.settings import Settings
from app.console.api import Api, ApiError
from app.console.words import (
    amount,
    amounts,
    compact,
    figure,
    lasted,
    marked,
    moment,
    pretty,
    readable,
    seconds,
    settled,
)  # fmt: skip
from app.http.assets import HEADERS, address
from app.http.body import read_form
from app.http.responses import answer_to
from app.http.routing import Operations, service

Text = Annotated[str, Query(max_length=2048)]
Cursor = Annotated[str, Query(max_length=1024)]
Number = Annotated[int, Query(ge=1, le=10**7)]
"""Of a page of rows, from 1."""

_LONGEST_ADDRESS = 6000
_MOST_PACKED = 1 << 20
Packed = Annotated[str, Query(max_length=_LONGEST_ADDRESS)]


def packed(text: str) -> str | None:
    """``text`` as a part of an address; None: it is too long for one."""
    encoded = urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")
    return encoded if len(encoded) <= _LONGEST_ADDRESS else None


def unpacked(text: str) -> str:
    """What ``packed`` made it of. Raises BadRequest."""
    try:
        reader = zlib.decompressobj()
        inflated = reader.decompress(urlsafe_b64decode(text + "=" * (-len(text) % 4)), _MOST_PACKED)
        if not reader.eof:
            raise ValueError
        return inflated.decode()
    except (ValueError, zlib.error):
        raise BadRequest("the address is not whole: part of it was lost on the way") from None


NAME = "arbiter_session"
_LONGEST = 4000


def cookie_of(scope: Scope, name: str = NAME) -> str | None:
    """What the request of ``scope`` sends under ``name``."""
    jar = SimpleCookie()
    try:
        jar.load(Headers(scope=scope).get("cookie", ""))
    except CookieError:
        return None
    morsel = jar.get(_named(scope, name))
    return morsel.value if morsel is not None and 0 < len(morsel.value) <= _LONGEST else None


def set_cookie(answer: Response, scope: Scope, value: str, seconds: int | None, name: str = NAME) -> None:
    """Have the browser keep ``value``; for ``seconds``, or as long as it is open. No script reads it, and no other
    site's link or form sends that of a session."""
    answer.set_cookie(
        _named(scope, name), value, max_age=seconds, path="/", secure=_is_secure(scope), httponly=True,
        samesite="strict" if name == NAME else "lax",
    )  # fmt: skip


def drop_cookie(answer: Response, scope: Scope, name: str = NAME) -> None:
    """Have the browser forget it."""
    answer.delete_cookie(
        _named(scope, name), path="/", secure=_is_secure(scope), httponly=True,
        samesite="strict" if name == NAME else "lax",
    )  # fmt: skip


def _is_secure(scope: Scope) -> bool:
    return scope["scheme"] == "https"


def _named(scope: Scope, name: str) -> str:
    """Over TLS with the prefix that keeps neighbours from setting it."""
    return f"__Host-{name}" if _is_secure(scope) else name


@cache
def environment() -> Environment:
    """The templates, compiled once: everything is escaped and nothing is inline. What a document of the API leaves out
    counts as not there."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True, undefined=ChainableUndefined, trim_blocks=True, lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    cast(dict[str, Any], templates.globals).update(asset=address, size_unit=figure("size", "unit"))
    templates.filters.update(
        amount=amount, amounts=amounts, moment=moment, pretty=pretty, compact=compact,
        readable=readable, span=seconds, lasted=lasted,
    )  # fmt: skip
    return templates


def rendered(template: str, values: dict[str, Any], status: int = 200) -> HTMLResponse:
    """A page."""
    return HTMLResponse(marked(settled(environment().get_template(template).render(values))), status, HEADERS)


class Entry(NamedTuple):
    """A page of the navigation. ``needs``: the scope of what it shows."""

    title: str
    address: str
    needs: str


PAGES = (
    Entry("Overview", "/", "read"),
    Entry("Queues", "/queues", "read"),
    Entry("Nodes", "/nodes", "read"),
    Entry("Decisions", "/decisions", "read"),
    Entry("Why me", "/why", "read"),
    Entry("Who is next", "/next", "read"),
    Entry("Ask", "/ask", "decide"),
    Entry("Plan", "/plan", "decide"),
    Entry("Compare", "/compare", "decide"),
    Entry("Simulations", "/simulations", "read"),
    Entry("Forecasts", "/forecasts", "read"),
    Entry("Backtests", "/backtests", "read"),
    Entry("Sweeps", "/sweeps", "read"),
    Entry("Traces", "/traces", "read"),
    Entry("Configurations", "/configurations", "read"),
    Entry("Clusters", "/clusters", "read"),
    Entry("Access", "/access", "admin"),
)


class Shown(NamedTuple):
    """An entry on a page; ``current``: this is where one is."""

    title: str
    address: str
    current: bool


class _Allowed(Protocol):
    def may(self, scope: str) -> bool: ...


def entries(path: str, visitor: _Allowed) -> list[Shown]:
    """The pages in the order in which they are shown, those that ``visitor`` may see."""
    return [Shown(e.title, e.address, _is_at(path, e.address)) for e in PAGES if visitor.may(e.needs)]


def _is_at(path: str, address: str) -> bool:
    return path == address if address == "/" else path == address or path.startswith(f"{address}/")


_MOST_FORM_BYTES = 8 << 20
_MOST_BYTES_OF_NOBODY = 16 << 10
"""Of a form from somebody who has not signed in yet: a token, and where to go after that."""
_MOST_FIELDS = 2000
_A_WORD = 80
_MOST_SHOWN = 100_000


class Visit:
    """What a page works with."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.settings = service(request, Settings)
        self.caller = caller_of(request.scope, guarded=self.settings.authentication == "required")
        self.sessions = service(request, Sessions)
        self.api = Api(request, self.caller)
        self._form: dict[str, str] | None = None
        self._new: str | None = None
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The visitor's session; a new one of nobody where there is none."""
        if self._session is None:
            cookie = cookie_of(self.request.scope)
            self._session = None if cookie is None else self.sessions.find(cookie)
            if self._session is None:
                self._new, self._session = self.sessions.anonymous()
        return self._session

    def may(self, scope: str) -> bool:
        """Whether the visitor has that scope; templates hide what they may not do."""
        return self.api.may(scope)

    async def form(self) -> dict[str, str]:
        """The fields of a form of ours. Raises Forbidden for a forged one, BadRequest, TooLarge."""
        if self._form is not None:
            return self._form
        nobody = self.settings.authentication == "required" and not self.caller.scopes
        body = await read_form(self.request, _MOST_BYTES_OF_NOBODY if nobody else _MOST_FORM_BYTES)
        try:
            # A large one takes half a second, which others would have to wait for.
            self._form = (
                _fields(body) if len(body) <= _MOST_BYTES_OF_NOBODY else await to_thread.run_sync(_fields, body)
            )
        except ValueError:
            raise BadRequest("the form can't be read") from None
        return self._form

    def typed(self) -> list[tuple[str, str]]:
        """What somebody wrote into the form that was sent, where it is more than a word: it must not be lost."""
        return [(n, text) for n, text in (self._form or {}).items() if n != "stamp" and len(text) > _A_WORD]

    async def check_form(self) -> None:
        """Raises Forbidden unless the form comes from a page of this session."""
        if not self.sessions.is_stamp(self.session, (await self.form()).get("stamp", "")):
            raise Forbidden("the form is not from this session, or has grown old: load the page again")

    def show(self, template: str, status: int = 200, /, **values: Any) -> Response:
        """A page, with what every page has."""
        answer = rendered(template, {**self.common(), **values}, status)
        return self._keep(answer)

    def confirm(
        self, question: str, says: str, verb: str, action: str, back: tuple[str, str], **fields: str
    ) -> Response:
        """A page that asks whether to post ``fields`` to ``action``. ``back``: where one came from, and its title."""
        return self.show(
            "confirm.html", question=question, says=says, verb=verb, action=action, back=back[0], back_title=back[1],
            fields=fields,
        )  # fmt: skip

    def go(self, address: str) -> Response:
        """To another page of ours, after a write."""
        return self._keep(RedirectResponse(address, 303, {"Cache-Control": "no-store"}))

    def common(self) -> dict[str, Any]:
        """What the layout reads."""
        path = self.request.url.path
        return {
            "visit": self,
            "path": path,
            "here": path + (f"?{self.request.url.query}" if self.request.url.query else ""),
            "entries": entries(path, self),
            "stamp": self.sessions.stamp(self.session),
            "signed_in": self.session.caller,
            "guarded": self.settings.authentication == "required",
            "origin": str(self.request.base_url).rstrip("/"),
            "part": self.request.headers.get("hx-request") == "true",
        }

    def start(self, cursor: str) -> str | None:
        """The address of this page without ``cursor``, which says where a list begins; None: it has none."""
        asked = parse_qsl(self.request.url.query, keep_blank_values=True)
        rest = [(name, value) for name, value in asked if name != cursor]
        return f"{self.request.url.path}?{urlencode(rest)}" if len(rest) < len(asked) else None

    def curl(self) -> list[str]:
        """The requests behind this page, as one would send them from a shell."""
        return [_curl(self, call.method, call.target, call.body) for call in self.api.calls]

    def _keep(self, answer: Response) -> Response:
        if self._new is not None:
            set_cookie(answer, self.request.scope, self._new, None)
        return answer


def _fields(body: bytes) -> dict[str, str]:
    return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))


def _curl(visit: Visit, method: str, target: str, body: bytes | None) -> str:
    origin = str(visit.request.base_url).rstrip("/")
    parts = ["curl -s" if method == "GET" else f"curl -s -X {method}", _quoted(origin + target)]
    if visit.settings.authentication == "required":
        parts.append('-H "Authorization: Bearer $ARBITER_TOKEN"')
    if body is not None:
        sent = body.decode() if len(body) <= _MOST_SHOWN else "@request.json"
        parts += ["-H 'Content-Type: application/json'", f"--data-binary {_quoted(sent)}"]
    return " \\\n  ".join(parts)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _visit(request: Request) -> Visit:
    visit = request.scope.get("arbiter.visit")
    if not isinstance(visit, Visit):
        visit = request.scope["arbiter.visit"] = Visit(request)
    return visit


async def _visiting(request: Request) -> Visit:  # async: a plain function would cost a thread each time
    return _visit(request)


Visiting = Annotated[Visit, Depends(_visiting)]


class PageRoute(APIRoute):
    """Answers people: what goes wrong is a page too, and no form is taken that another site made up."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's own, with that around it."""
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                _refuse_unknown(request)
                if request.method not in ("GET", "HEAD"):
                    await _visit(request).check_form()
                return await inner(request)
            except ApiError as refused:
                return failure(_visit(request), refused.status, refused.document)
            except (ArbiterError, RequestValidationError, HTTPException) as error:
                return failure(_visit(request), *await _described(request, error))

        return handle


def _refuse_unknown(request: Request) -> None:
    """Raises RequestValidationError where the query holds what the page doesn't know."""
    operations: Operations = request.app.state.operations
    operation = operations.resolve(request.scope).operation
    assert operation is not None
    operation.refuse_unknown(request)


async def _described(request: Request, error: Exception) -> tuple[int, dict[str, Any]]:
    if isinstance(error, ArbiterError):
        answer = await answer_to(request, error)
        return answer.status_code, msgspec.json.decode(bytes(answer.body))
    if isinstance(error, RequestValidationError):
        faults = [{"parameter": str(fault["loc"][-1]), "detail": str(fault["msg"])} for fault in error.errors()]
        return 422, {"title": "Invalid parameters", "detail": "The address can't be read.", "errors": faults}
    assert isinstance(error, HTTPException)
    return error.status_code, {"title": "Error", "detail": error.detail}


def came_from(request: Request) -> str:
    """The page of ours that a form was sent from; the first one where the browser doesn't say."""
    parts = urlsplit(request.headers.get("referer", ""))
    if parts.netloc != request.url.netloc or not parts.path.startswith("/") or parts.path.startswith("//"):
        return "/"
    return parts.path + (f"?{parts.query}" if parts.query else "")


def failure(visit: Visit, status: int, document: dict[str, Any]) -> Response:
    """A page that says what is wrong."""
    try:
        return visit.show(
            "failure.html", status, problem=document, status=status, typed=visit.typed(), again=came_from(visit.request)
        )  # fmt: skip
    except Unavailable:  # nobody can say whose session it is: the page does without
        return rendered("bare.html", {"problem": document, "status": status}, status)
