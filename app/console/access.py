"""Who may: signing in, with a token or at the OpenID provider, and out; tokens and sessions, each
with an end; who did what.

At the provider: there with a challenge, back with a code.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated
from urllib.parse import quote, urlsplit
from uuid import UUID

from anyio import to_thread
from fastapi import APIRouter, Query
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from app.auth.audit import SCOPES, Caller
from app.auth.oidc import CodeFlow
from app.auth.router import Sessions
from app.auth.tokens import Guesses
from app.base.errors import ArbiterError, Forbidden, NotFound, Unavailable
from app.console.api import ApiError, Json, next_page, status_of
from app.console.situation import paged
from app.console.visit import (
    Number,
    PageRoute,
    Text,
    Visit,
    Visiting,
    came_from,
    cookie_of,
    drop_cookie,
    failure,
    rendered,
    set_cookie,
)
from app.http.middleware import address_of
from app.http.openapi import page
from app.http.routing import Operations, service

_ROWS = 100
_LONGEST_DAYS = 36_500

access_pages = APIRouter(route_class=PageRoute)


@access_pages.get("/access", **page(needs="admin"))
async def access(visit: Visiting, page: Number = 1, sessions: Number = 1) -> Response:
    """Tokens, those that work first, and who is signed in."""
    return await _shown(visit, {}, page=page, sessions=sessions)


@access_pages.post("/access", **page(needs="admin"))
async def create(visit: Visiting) -> Response:
    """A new token: the answer shows its secret, this once."""
    fields = await visit.form()
    body: Json = {
        "name": fields.get("name", "").strip(),
        "scopes": [scope for scope in SCOPES if fields.get(f"scope-{scope}")],
    }
    if days := fields.get("days", "").strip():
        if not (days.isascii() and days.isdigit() and 1 <= int(days[:6]) <= _LONGEST_DAYS):
            detail = f"For how many days is a whole number from 1 to {_LONGEST_DAYS}."
            return await _shown(visit, fields, problem={"title": "Invalid input", "detail": detail})
        body["expires_at"] = f"{datetime.now(UTC) + timedelta(days=int(days)):%Y-%m-%dT%H:%M:%SZ}"
    try:
        token = await visit.api.ask("/v1/tokens", body)
    except ApiError as refused:
        return await _shown(visit, fields, problem=refused.document)
    return await _shown(visit, {}, token=token)


async def _shown(
    visit: Visit, fields: dict[str, str], *, page: int = 1, sessions: int = 1, token: Json | None = None,
    problem: Json | None = None,
) -> Response:  # fmt: skip
    tokens: list[Json] = (await visit.api.get("/v1/tokens"))["items"]
    now = datetime.now(UTC)
    tokens.sort(key=lambda listed: (_standing(listed, now) != "valid", listed["name"]))
    return visit.show(
        "access.html", status_of(problem), fields=fields, made=token, problem=problem, scopes=SCOPES,
        tokens=paged([(listed, _standing(listed, now)) for listed in tokens], page, _ROWS),
        sessions=paged((await visit.api.get("/v1/sessions"))["items"], sessions, _ROWS),
    )  # fmt: skip


def _standing(token: Json, now: datetime) -> str:
    if token.get("revoked_at"):
        return "revoked"
    return "expired" if token.get("expires_at") and datetime.fromisoformat(token["expires_at"]) <= now else "valid"


@access_pages.get("/access/tokens/{id}/revoke", **page(needs="admin"))
async def ask_to_revoke(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """Whether to."""
    whose = await _whose(visit, "/v1/tokens", id)
    named = "Revoke this token?" if whose is None else f"Revoke the token of {whose}?"
    return _confirm(visit, named, "Whoever uses it is refused from then on. It does not come back.", "Revoke it")


@access_pages.post("/access/tokens/{id}/revoke", **page(needs="admin"))
async def revoke(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """It works no longer. Raises ApiError."""
    await visit.api.call("DELETE", f"/v1/tokens/{id}")
    return visit.go("/access")


@access_pages.get("/access/sessions/{id}/end", **page(needs="admin"))
async def ask_to_end(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """Whether to."""
    whose = await _whose(visit, "/v1/sessions", id)
    named = "End this session?" if whose is None else f"End the session of {whose}?"
    return _confirm(visit, named, "They are signed out, and may sign in again while their token works.", "End it")


@access_pages.post("/access/sessions/{id}/end", **page(needs="admin"))
async def end(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """They are signed out. Raises ApiError."""
    await visit.api.call("DELETE", f"/v1/sessions/{id}")
    return visit.go("/access")


async def _whose(visit: Visit, path: str, identity: UUID) -> str | None:
    """The name of one of a list; None: it is not there."""
    listed: list[Json] = (await visit.api.get(path))["items"]
    return next((entry["name"] for entry in listed if entry["id"] == str(identity)), None)


def _confirm(visit: Visit, question: str, says: str, verb: str) -> Response:
    return visit.confirm(question, says, verb, visit.request.url.path, ("/access", "Access"))


@access_pages.get("/audit", **page(needs="admin"))
async def audit(visit: Visiting, actor: Text = "", action: Text = "", cursor: Text = "") -> Response:
    """Who did what, newest first."""
    wanted = {"actor": actor.strip(), "action": action.strip()}
    query = {name: text or None for name, text in wanted.items()}
    log: Json = await visit.api.get("/v1/audit", {**query, "cursor": cursor or None, "limit": _ROWS})
    return visit.show("audit.html", lines=log["items"], wanted=wanted, following=next_page(log, "/audit", wanted))


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
        session = None if cookie is None else self._sessions.find(cookie)
        return None if session is None else session.caller

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
    match = operations.resolve({"type": "http", "method": "GET", "path": parts.path})
    return wanted if match.operation is not None and match.operation.page else "/"


_COOKIE = "arbiter_flow"
_SECONDS = 600
Word = Annotated[str, Query(max_length=4096)]

provider_pages = APIRouter(route_class=PageRoute)


class ProviderSignIn:
    """``flow``: None where no provider knows the console."""

    def __init__(self, flow: CodeFlow | None) -> None:
        self.flow = flow


def _flow(visit: Visit) -> CodeFlow:
    flow = service(visit.request, ProviderSignIn).flow
    if flow is None:
        raise NotFound("no provider is set up for the console")
    return flow


@provider_pages.get("/sign-in/provider", **page(needs=None))
async def there(visit: Visiting, next: Next = "/") -> Response:  # noqa: A002
    """To the provider, with a challenge that only this service can meet."""
    address, secret = await _flow(visit).begin(_back(visit))
    answer = RedirectResponse(address, 303, {"Cache-Control": "no-store"})
    named = await to_thread.run_sync(visit.sessions.remember, {**secret, "next": safe(visit, next)}, _SECONDS)
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
    secret = await to_thread.run_sync(visit.sessions.recall, cookie_of(scope, _COOKIE) or "", state)
    if secret is None:
        raise Forbidden("this sign-in was not begun here, or took too long: begin again")
    if error or not code:
        raise Forbidden(f"the provider refuses: {error_description or error or 'no code'}")
    caller = await flow.finish(code, secret, _back(visit))
    if caller is None:
        raise Forbidden("the provider's answer can't be trusted: begin again")
    cookie = await to_thread.run_sync(visit.sessions.with_caller, caller, address_of(scope))
    answer = rendered("again.html", {"address": safe(visit, str(secret["next"]))})
    set_cookie(answer, scope, cookie, visit.settings.console_session_seconds)
    drop_cookie(answer, scope, _COOKIE)
    return answer


def _back(visit: Visit) -> str:
    return f"{str(visit.request.base_url).rstrip('/')}/sign-in/done"
