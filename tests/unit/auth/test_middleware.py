"""Who gets past: by bearer, by password, by session; what is refused, how it is told and what is written of it."""

import asyncio
import json
from base64 import b64encode
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.responses import Response

from app.auth.audit import SCOPES, Caller, Refusals, Visitors, allows, caller_of, current_actor
from app.auth.oidc import OpenId
from app.auth.tokens import AuthenticationMiddleware, Guesses, Tokens
from app.base.errors import ArbiterError, Unavailable
from app.http.routing import Operation, Place, Resolved

Json = dict[str, Any]
ANN = Caller("token:ann", frozenset({"read"}))


class Held:
    """The service's own tokens: some remembered, others looked up; and the refusals that were written down."""

    def __init__(self) -> None:
        self.known = {"arb_known": ANN}
        self.stored = {"arb_stored": Caller("token:bob", frozenset({"admin"}))}
        self.away = False
        self.looked: list[str] = []
        self.written: list[tuple[Any, ...]] = []

    def remembered(self, secret: str) -> Caller | None:
        return self.known.get(secret)

    def caller(self, secret: str) -> Caller | None:
        self.looked.append(secret)
        if self.away:
            raise Unavailable("away")
        return self.stored.get(secret)

    def refused(self, *line: Any) -> None:
        if self.away:
            raise Unavailable("away")
        self.written.append(line)


class Issuing:
    """A provider that knows one token."""

    async def caller(self, token: str) -> Caller | None:
        return Caller("oidc:eve", frozenset({"decide"})) if token == "jwt" else None


class Pages:
    """Pages for people."""

    def __init__(self, visitor: Caller | None = None) -> None:
        self.visitor = visitor

    def caller(self, scope: Any) -> Caller | None:
        return self.visitor

    def ask_in(self, scope: Any) -> Response:
        return Response("sign in", 303)

    def refusal(self, scope: Any, refusal: ArbiterError) -> Response:
        return Response(f"page: {refusal.detail}", refusal.status)


def operation(needs: str | None, *, page: bool = False, basic: bool = True) -> Operation:
    return Operation(cast("Any", None), () if needs is None else (needs,), [], [], page, basic=basic)


def place(**operations: Operation) -> Place:
    import re

    return Place("/x", re.compile("/x"), operations)


def meaning(needs: str | None, *, page: bool = False) -> Resolved:
    found = operation(needs, page=page)
    return Resolved(place(GET=found), found, {})


class Door:
    """The middleware around an application that tells who acts."""

    def __init__(self, found: Resolved, *, pages: Pages | None = None, provider: bool = True) -> None:
        self.tokens, self.counted = Held(), list[str]()
        self.found = found
        self.inside: list[tuple[str, Any]] = []
        self.clock = 0.0
        self._middleware = AuthenticationMiddleware(
            self._application, cast("Tokens", self.tokens), cast("OpenId", Issuing()) if provider else None,
            Refusals(self.counted.append, lambda: 0.0), Guesses(lambda: self.clock), cast("Visitors | None", pages),
        )  # fmt: skip

    async def _application(self, scope: Any, receive: Any, send: Any) -> None:
        self.inside.append((current_actor(), None if scope["type"] != "http" else caller_of(scope, guarded=True).name))
        if scope["type"] == "http":
            await Response(b"in")(scope, receive, send)

    def __call__(self, header: str | None = None, path: str = "/x", **more: Any) -> tuple[int, str]:
        """Status, and who acted or what was said."""
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        app = SimpleNamespace(state=SimpleNamespace(operations=SimpleNamespace(resolve=lambda _: self.found)))
        headers = [] if header is None else [(b"authorization", header.encode())]
        scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "app": app, "query_string": b"",
                 "server": ("h", 80), "scheme": "http", **more}  # fmt: skip
        self.inside.clear()

        async def asked() -> str:
            await self._middleware(scope, cast("Any", None), send)
            return current_actor()

        assert asyncio.run(asked()) == "anonymous", "nobody acts afterwards"
        if not sent:
            return 0, ""
        if self.inside:
            return sent[0]["status"], self.inside[0][0]
        body = b"".join(message.get("body", b"") for message in sent[1:]).decode()
        return sent[0]["status"], json.loads(body)["detail"] if body[:1] == "{" else body


NO_TOKEN = "send Authorization: Bearer with a token"
UNKNOWN = "the token is unknown, expired or revoked"


def basic(text: str) -> str:
    return "Basic " + b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, (401, NO_TOKEN)), ("", (401, NO_TOKEN)), ("Bearer", (401, NO_TOKEN)), ("Bearer  ", (401, NO_TOKEN)),
        ("Digest arb_known", (401, NO_TOKEN)), ("arb_known", (401, NO_TOKEN)),
        ("Bearer arb_known", (200, "token:ann")), ("  bEARER   arb_known ", (200, "token:ann")),
        ("Bearer arb_stored", (200, "token:bob")), ("Bearer arb_guess", (401, UNKNOWN)),
        (basic("any:arb_known"), (200, "token:ann")), (basic("arb_known"), (401, NO_TOKEN)),
        (basic("a:b:c"), (401, UNKNOWN)), ("Basic ???", (401, NO_TOKEN)), ("Basic /w==", (401, NO_TOKEN)),
        ("Bearer guess", (401, UNKNOWN)),
        ("Bearer jwt", (403, "this needs scope read; oidc:eve has decide")),
    ],
)  # fmt: skip
def test_who_gets_in(header: str | None, expected: tuple[int, str]) -> None:
    door = Door(meaning("read"))
    assert door(header) == expected
    assert not door.inside or door.inside == [(expected[1], expected[1])]


def test_passwords_are_taken_where_an_operation_says_so_alone() -> None:
    found = operation("read", basic=False)
    assert Door(Resolved(place(GET=found), found, {}))(basic("any:arb_known")) == (401, NO_TOKEN)


def test_whoever_guesses_is_slowed_down_and_nobody_else_is() -> None:
    door = Door(meaning("read"))
    answers = [door(f"Bearer arb_{i}", client=("10.0.0.1", 1))[0] for i in range(12)]
    assert answers == [401] * 10 + [429] * 2
    assert len(door.tokens.looked) == 10, "nothing is looked up any more"
    assert door("Bearer guess", client=("10.0.0.1", 2))[0] == 429
    assert door("Bearer arb_known", client=("10.0.0.1", 3))[0] == 200, "who is known is"
    assert door("Bearer arb_11", client=("10.0.0.2", 1))[0] == 401
    door.clock = 6.0
    assert [door(f"Bearer arb_{i}", client=("10.0.0.1", 1))[0] for i in range(2)] == [401, 429]
    v6 = [door(f"Bearer arb_{i}", client=(f"2001:db8:1:2::{i}", 1))[0] for i in range(11)]
    assert v6 == [401] * 10 + [429], "one network"


def test_what_is_known_is_not_looked_up() -> None:
    door = Door(meaning("read"))
    door("Bearer arb_known")
    assert door.tokens.looked == []
    door("Bearer arb_stored")
    door("Bearer jwt")
    assert door.tokens.looked == ["arb_stored"]


def test_without_a_provider_its_tokens_are_none() -> None:
    assert Door(meaning("decide"), provider=False)("Bearer jwt") == (401, UNKNOWN)
    assert Door(meaning("decide"))("Bearer jwt") == (200, "oidc:eve")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (meaning(None), (200, "anonymous")),
        (Resolved(None, None, {}), (401, NO_TOKEN)),
        (Resolved(place(GET=operation(None)), None, {}), (200, "anonymous")),
        (Resolved(place(GET=operation(None), PUT=operation("admin")), None, {}), (401, NO_TOKEN)),
        (meaning("admin"), (401, NO_TOKEN)),
    ],
    ids=["public", "nothing", "public-other-method", "guarded-other-method", "guarded"],
)
def test_what_is_public(found: Resolved, expected: tuple[int, str]) -> None:
    assert Door(found)() == expected


def test_what_is_not_there_is_for_callers_with_a_name() -> None:
    assert Door(Resolved(None, None, {}))("Bearer arb_known") == (200, "token:ann")


def test_what_is_no_request_passes() -> None:
    door = Door(meaning("admin"))
    assert door(type="lifespan") == (0, "")
    assert door.inside == [("anonymous", None)]


def test_refusals_are_counted_and_written_down() -> None:
    door = Door(meaning("admin"))
    door("Bearer arb_known", path="/" + "x" * 600)
    door("Bearer arb_guess")
    detail = "this needs scope admin; token:ann has read"
    assert door.tokens.written == [
        ("token:ann", "refused.forbidden", ("GET /" + "x" * 600)[:512], detail, 0),
        ("anonymous", "refused.unauthenticated", "GET /x", UNKNOWN, 0),
    ]
    for _ in range(10):
        door()
    assert (len(door.tokens.written), door.counted[:2], len(door.counted)) == (
        11, ["forbidden", "unauthenticated"], 12,
    )  # fmt: skip


def test_a_caller_without_scopes_has_none() -> None:
    door = Door(meaning("read"))
    door.tokens.known["arb_none"] = Caller("token:none", frozenset())
    assert door("Bearer arb_none") == (403, "this needs scope read; token:none has none")


def test_a_database_that_is_away_is_no_refusal() -> None:
    door = Door(meaning("read"))
    door.tokens.away = True
    assert door("Bearer arb_stored") == (503, "away")
    assert door.counted == []
    assert door() == (401, NO_TOKEN), "refusing does not wait for the log"


def test_pages_know_sessions() -> None:
    page = meaning("read", page=True)
    assert Door(page, pages=Pages(ANN))() == (200, "token:ann")
    assert Door(page, pages=Pages())("Bearer arb_known") == (200, "token:ann")
    assert Door(page, pages=Pages())() == (303, "sign in")
    assert Door(meaning("read"), pages=Pages(ANN))() == (401, NO_TOKEN), "the API takes no sessions"
    assert Door(page)() == (401, NO_TOKEN)
    refused = Door(meaning("admin", page=True), pages=Pages(ANN))
    assert refused() == (403, "page: this needs scope admin; token:ann has read")
    assert refused.counted == ["forbidden"]
    unknown = Door(page, pages=Pages())
    assert unknown("Bearer arb_guess") == (303, "sign in")
    assert unknown.counted == [], "asking in is no refusal"


def test_a_scope_is_enough_by_itself_and_admin_for_all() -> None:
    for needed in SCOPES:
        assert [held for held in SCOPES if allows(frozenset({held}), needed)] == sorted(
            {needed, "admin"}, key=SCOPES.index
        )
    assert not allows(frozenset(), "read")
