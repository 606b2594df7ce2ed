"""Signing in at the OpenID provider: there with a challenge, back with a code."""

from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Query
from starlette.responses import RedirectResponse, Response

from app.auth.code_flow import CodeFlow
from app.auth.guesses import address_of
from app.base.errors import Forbidden, NotFound
from app.console.cookies import cookie_of, drop_cookie, set_cookie
from app.console.rendering import rendered
from app.console.sign_in import Next, safe
from app.console.visit import PageRoute, Visit, Visiting
from app.http.openapi import page
from app.http.services import service

_COOKIE = "arbiter_flow"
_SECONDS = 600
Word = Annotated[str, Query(max_length=4096)]

router = APIRouter(route_class=PageRoute)


class ProviderSignIn:
    """``flow``: None where no provider knows the console."""

    def __init__(self, flow: CodeFlow | None) -> None:
        self.flow = flow


def _flow(visit: Visit) -> CodeFlow:
    found = service(visit.request, ProviderSignIn).flow
    if found is None:
        raise NotFound("no provider is set up for the console")
    return found


@router.get("/sign-in/provider", **page(needs=None))
async def there(visit: Visiting, next: Next = "/") -> Response:  # noqa: A002
    """To the provider, with a challenge that only this service can meet."""
    address, kept = await _flow(visit).begin(_back(visit))
    answer = RedirectResponse(address, 303, {"Cache-Control": "no-store"})
    named = await to_thread.run_sync(visit.sessions.remember, {**kept, "next": safe(visit, next)}, _SECONDS)
    set_cookie(answer, visit.request.scope, named, _SECONDS, _COOKIE)
    return answer


@router.get("/sign-in/done", **page(needs=None))
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
