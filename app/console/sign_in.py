"""Signing in, with a token or at the OpenID provider, out again, and what somebody is shown who has done neither.

At the provider: there with a challenge, back with a code.
"""

from typing import Annotated
from urllib.parse import quote, urlsplit

from anyio import to_thread
from fastapi import APIRouter, Query
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from app.auth.callers import Caller
from app.auth.oidc import CodeFlow
from app.auth.sessions import Sessions
from app.auth.tokens import Guesses, address_of
from app.base.errors import ArbiterError, Forbidden, NotFound, Unavailable
from app.console.visit import (
    PageRoute,
    Visit,
    Visiting,
    came_from,
    cookie_of,
    drop_cookie,
    failure,
    rendered,
    set_cookie,
)
from app.http.openapi import page
from app.http.routing import Operations, service

_LONGEST = 2048
Next = Annotated[str, Query(max_length=_LONGEST)]

sign_in_pages = APIRouter(route_class=PageRoute)


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
        if scope["method"] not in ("GET", "HEAD"):
            here = came_from(Request(scope))  # its text is kept there, in the browser
        address = f"/sign-in?next={quote(here, safe='')}"
        if headers.get("hx-request") == "true":
            return Response(status_code=204, headers={"HX-Redirect": address, "Cache-Control": "no-store"})
        return RedirectResponse(address, 303, {"Cache-Control": "no-store"})

    def refusal(self, scope: Scope, refusal: ArbiterError) -> Response:
        """What somebody may not see, or not now."""
        document: dict[str, object] = {"title": refusal.title, "detail": refusal.detail, "errors": []}
        if isinstance(refusal, Unavailable):
            return rendered("bare.html", {"problem": document, "status": refusal.status}, refusal.status)
        return failure(Visit(Request(scope)), refusal.status, document)


@sign_in_pages.get("/sign-in", **page(needs=None))
def sign_in(visit: Visiting, next: Next = "/") -> Response:  # noqa: A002
    """Ask for a token, or show the way to the provider."""
    if visit.settings.authentication == "open" or visit.session.caller is not None:
        return visit.go(safe(visit, next))
    return _form(visit, next)


@sign_in_pages.post("/sign-in", **page(needs=None))
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


@sign_in_pages.post("/sign-out", **page(needs=None))
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


_COOKIE = "arbiter_flow"
_SECONDS = 600
Word = Annotated[str, Query(max_length=4096)]

provider_pages = APIRouter(route_class=PageRoute)


class ProviderSignIn:
    """``flow``: None where no provider knows the console."""

    def __init__(self, flow: CodeFlow | None) -> None:
        self.flow = flow


def _flow(visit: Visit) -> CodeFlow:
    found = service(visit.request, ProviderSignIn).flow
    if found is None:
        raise NotFound("no provider is set up for the console")
    return found


@provider_pages.get("/sign-in/provider", **page(needs=None))
async def there(visit: Visiting, next: Next = "/") -> Response:  # noqa: A002
    """To the provider, with a challenge that only this service can meet."""
    address, kept = await _flow(visit).begin(_back(visit))
    answer = RedirectResponse(address, 303, {"Cache-Control": "no-store"})
    named = await to_thread.run_sync(visit.sessions.remember, {**kept, "next": safe(visit, next)}, _SECONDS)
    set_cookie(answer, visit.request.scope, named, _SECONDS, _COOKIE)
    return answer


@provider_pages.get("/sign-in/done", **page(needs=None))
async def back(
    visit: Visiting, code: Word = "", state: Word = "", error: Word = "", error_description: Word = "",
    iss: Word = "", session_state: Word = "",
) -> Response:  # fmt: skip
    """Back with a code: a session begins, on a page of ours, since a cookie for us alone is not sent from elsewhere."""
    del iss, session_state  # some providers send them; the id token says who they are
    flow, scope = _flow(visit), visit.request.scope
    kept = await to_thread.run_sync(visit.sessions.recall, cookie_of(scope, _COOKIE) or "", state)
    if kept is None:
        raise Forbidden("this sign-in was not begun here, or took too long: begin again")
    if error or not code:
        raise Forbidden(f"the provider refuses: {error_description or error or 'no code'}")
    caller = await flow.finish(code, kept, _back(visit))
    if caller is None:
        raise Forbidden("the provider's answer can't be trusted: begin again")
    cookie = await to_thread.run_sync(visit.sessions.with_caller, caller, address_of(scope))
    answer = rendered("again.html", {"address": safe(visit, str(kept["next"]))})
    set_cookie(answer, scope, cookie, visit.settings.console_session_seconds)
    drop_cookie(answer, scope, _COOKIE)
    return answer


def _back(visit: Visit) -> str:
    return f"{str(visit.request.base_url).rstrip('/')}/sign-in/done"
