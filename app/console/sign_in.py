"""Signing in with a token, out again, and what somebody is shown who has done neither."""

from typing import Annotated
from urllib.parse import quote, urlsplit

from anyio import to_thread
from fastapi import APIRouter, Query
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from app.auth.guesses import Guesses, address_of
from app.auth.service import Caller
from app.auth.sessions import Sessions
from app.base.errors import ArbiterError, Unavailable
from app.console.cookies import cookie_of, drop_cookie, set_cookie
from app.console.rendering import rendered
from app.console.visit import PageRoute, Visit, Visiting, failure
from app.http.openapi import page
from app.http.routing import Operations
from app.http.services import service

_LONGEST = 2048
Next = Annotated[str, Query(max_length=_LONGEST)]

router = APIRouter(route_class=PageRoute)


class PageVisitors:
    """Sessions as the middleware asks for them."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def caller(self, scope: Scope) -> Caller | None:
        """Whose session the cookie is. Raises Unavailable."""
        cookie = cookie_of(scope)
        found = None if cookie is None else self._sessions.find(cookie)
        return None if found is None else found.caller

    def ask_in(self, scope: Scope) -> Response:
        """The way to sign in, and back here after that.

        A link on another site leads here without the cookie, which is only sent from pages of ours: such a visit comes
        again from here before anybody is asked for anything.
        """
        headers = Headers(scope=scope)
        here = scope["path"] + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
        if scope["method"] == "GET" and headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return rendered("again.html", {"address": quote(here, safe="/?&=%+:,;@-._~")})
        address = f"/sign-in?next={quote(here if scope['method'] in ('GET', 'HEAD') else '/', safe='')}"
        if headers.get("hx-request") == "true":
            return Response(status_code=204, headers={"HX-Redirect": address, "Cache-Control": "no-store"})
        return RedirectResponse(address, 303, {"Cache-Control": "no-store"})

    def refusal(self, scope: Scope, refusal: ArbiterError) -> Response:
        """What somebody may not see, or not now."""
        document: dict[str, object] = {"title": refusal.title, "detail": refusal.detail, "errors": []}
        if isinstance(refusal, Unavailable):
            return rendered("bare.html", {"problem": document, "status": refusal.status}, refusal.status)
        return failure(Visit(Request(scope)), refusal.status, document)


@router.get("/sign-in", **page(needs=None))
def sign_in(visit: Visiting, next: Next = "/") -> Response:  # noqa: A002
    """Ask for a token, or show the way to the provider."""
    if visit.settings.authentication == "open" or visit.session.caller is not None:
        return visit.go(safe(visit, next))
    return _form(visit, next)


@router.post("/sign-in", **page(needs=None))
async def signed_in(visit: Visiting) -> Response:
    """Begin a session for whoever holds the token."""
    fields = await visit.form()
    secret, wanted = fields.get("token", "").strip(), fields.get("next", "/")[:_LONGEST]
    guesses, address = service(visit.request, Guesses), address_of(visit.request.scope)
    guesses.check(address)
    cookie = await to_thread.run_sync(visit.sessions.with_token, secret, address) if secret else None
    if secret and cookie is None:
        guesses.wrong(address)
    if cookie is None:
        return _form(visit, wanted, wrong="The token is unknown, expired or revoked." if secret else "Paste a token.")
    answer = visit.go(safe(visit, wanted))
    set_cookie(answer, visit.request.scope, cookie, visit.settings.console_session_seconds)
    return answer


@router.post("/sign-out", **page(needs=None))
async def sign_out(visit: Visiting) -> Response:
    """End the session, everywhere."""
    cookie = cookie_of(visit.request.scope)
    if cookie is not None:
        await to_thread.run_sync(visit.sessions.end, cookie)
    answer = visit.go("/sign-in" if visit.settings.authentication == "required" else "/")
    drop_cookie(answer, visit.request.scope)
    return answer


def _form(visit: Visit, wanted: str, wrong: str | None = None) -> Response:
    provider = visit.settings.oidc_client_id is not None
    return visit.show(
        "sign_in.html", 401 if wrong else 200, next=safe(visit, wanted), wrong=wrong, provider=provider,
    )  # fmt: skip


def safe(visit: Visit, wanted: str) -> str:
    """``wanted`` where it is a page of ours, else the first one: nobody is sent elsewhere after signing in."""
    parts = urlsplit(wanted)
    plain = wanted.isprintable() and wanted.startswith("/") and not wanted.startswith(("//", "/\\"))
    if not plain or "\\" in wanted or parts.scheme or parts.netloc:
        return "/"
    operations: Operations = visit.request.app.state.operations
    found = operations.found({"type": "http", "method": "GET", "path": parts.path})
    return wanted if found.operation is not None and found.operation.page else "/"
