"""Nobody past here without a name and the scope that the request needs."""

from base64 import b64decode
from contextlib import suppress
from functools import partial

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.auth.audit import ANONYMOUS, Caller, Kind, Refusals, Visitors, acting, allows, welcome
from app.auth.oidc import OpenId
from app.auth.tokens import PREFIX, Guesses, Tokens, address_of
from app.base.errors import ArbiterError, Forbidden, Unauthorized, Unavailable
from app.http.responses import answer_to
from app.http.routing import Found, is_for_people

_LOOKUPS = 10
"""Tokens looked up at once, in threads of their own: requests that wait for the database may take all others."""
_WRITES = 2
"""Refusals written down at once."""


class AuthenticationMiddleware:
    """Bearer tokens: the service's own, or those of an OpenID Connect provider. On pages, sessions too.

    ``visitors``: who looks at pages; None where there are none.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens,
        provider: OpenId | None,
        refusals: Refusals,
        guesses: Guesses,
        visitors: Visitors | None = None,
    ) -> None:
        self.app = app
        self._visitors = visitors
        self._tokens = tokens
        self._provider = provider
        self._refusals = refusals
        self._guesses = guesses
        self._lookups = CapacityLimiter(_LOOKUPS)
        self._writes = CapacityLimiter(_WRITES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = scope["app"].state.operations.found(scope) if scope["type"] == "http" else None
        if found is None or _is_public(found):
            await self.app(scope, receive, send)
            return
        who = ANONYMOUS
        try:
            caller = await self._visitor(scope, found) or await self._caller(scope, found)
            who = caller.name
            welcome(scope, caller)
            needed = () if found.operation is None else found.operation.needs
            if needed and not allows(caller.scopes, *needed):
                raise Forbidden(
                    f"this needs scope {' or '.join(needed)}; {who} has {', '.join(sorted(caller.scopes)) or 'none'}"
                )
        except ArbiterError as refusal:
            await self._refuse(who, refusal, scope, receive, send)
            return
        with acting(who):
            await self.app(scope, receive, send)

    async def _visitor(self, scope: Scope, found: Found) -> Caller | None:
        """Whose session a page is asked for with. The API takes no cookies: no other site can make use of one."""
        if self._visitors is None or not is_for_people(scope, found):
            return None
        return await to_thread.run_sync(self._visitors.caller, scope, limiter=self._lookups)

    async def _caller(self, scope: Scope, found: Found) -> Caller:
        """Whose token it is. Raises Unauthorized, TooManyRequests, Unavailable."""
        basic = found.operation is not None and found.operation.basic
        secret = _secret(Headers(scope=scope).get("authorization") or "", basic=basic)
        if not secret:
            raise Unauthorized("send Authorization: Bearer with a token")
        known = self._tokens.remembered(secret) if secret.startswith(PREFIX) else None
        if known is not None:
            return known
        address = address_of(scope)
        self._guesses.check(address)
        if secret.startswith(PREFIX):
            caller = await to_thread.run_sync(self._tokens.caller, secret, limiter=self._lookups)
        elif self._provider is not None:
            caller = await self._provider.caller(secret)
        else:
            caller = None
        if caller is None:
            self._guesses.wrong(address)
            raise Unauthorized("the token is unknown, expired or revoked", invalid=True)
        return caller

    async def _refuse(self, who: str, refusal: ArbiterError, scope: Scope, receive: Receive, send: Send) -> None:
        found: Found = scope["app"].state.operations.found(scope)
        page = self._visitors is not None and is_for_people(scope, found)
        if page and isinstance(refusal, Unauthorized):
            assert self._visitors is not None
            await self._visitors.ask_in(scope)(scope, receive, send)
            return
        if not isinstance(refusal, Unavailable):
            kind: Kind = "forbidden" if isinstance(refusal, Forbidden) else "unauthenticated"
            missed = self._refusals.add(who, kind)
            if missed is not None:
                target = f"{scope['method']} {scope['path']}"[:512]
                write = partial(self._tokens.refused, who, f"refused.{kind}", target, refusal.detail, missed)
                with suppress(Unavailable):  # refusing does not wait for the log; the request log has the line
                    await to_thread.run_sync(write, limiter=self._writes)
        answer = self._visitors.refusal(scope, refusal) if self._visitors is not None and page else None
        await (answer or await answer_to(Request(scope), refusal))(scope, receive, send)


def _secret(header: str, *, basic: bool) -> str:
    """The token: as a bearer's; where ``basic`` credentials are taken also as the password of callers that know no
    other way than a user and a password in an address, as kube-scheduler's extenders. Nobody is asked for one, so that
    no browser sends it by itself."""
    kind, _, rest = header.strip().partition(" ")
    if kind.lower() == "bearer":
        return rest.strip()
    if kind.lower() != "basic" or not basic:
        return ""
    try:
        return b64decode(rest.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _is_public(found: Found) -> bool:
    """Whether nobody has to say who they are; what is not there at all is for callers with a name."""
    if found.operation is not None:
        return not found.operation.needs
    return found.place is not None and found.place.is_public
