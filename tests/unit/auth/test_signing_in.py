"""Tokens that are remembered, sessions at a browser and signing in at a provider: no service, no database, no clock."""

import asyncio
import base64
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest

from app.auth import oidc as keys
from app.auth import repository
from app.auth.audit import Caller, acting, caller_of, welcome
from app.auth.oidc import Client, CodeFlow, Keys, OpenId, Provider, read_keys
from app.auth.repository import TokenRow
from app.auth.router import Session, Sessions
from app.auth.tokens import PREFIX, Tokens, digest_of
from app.base.errors import BadInput, NotFound, Unavailable
from app.db.database import Database
from tests.support.bounds import Bounded
from tests.support.instead import Clock as Moved
from tests.support.instead import Instead
from tests.support.oidc import AUDIENCE, ISSUER, OURS, Clock, Issuer, published, token

Json = dict[str, Any]
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ID = UUID(int=7)
ANN = Caller("token:ann", frozenset({"read"}))


class Stored:
    """What a database has of tokens and lines of the audit log, and how often it was asked."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.is_silent = self.away = False
        self.asked: list[float | None] = []
        self.rows: dict[bytes, tuple[bytes, TokenRow]] = {}
        self.lines: list[tuple[str, str, str, Json | None]] = []
        Instead(patch)(
            repository,
            by_hash=lambda _, digest: self.rows.get(digest),
            record=lambda _, *line: self.lines.append(line),
            add=self._add,
            revoke=self._revoke,
        )

    @contextmanager
    def session(self, seconds: float | None = None) -> Generator[None]:
        self.asked.append(seconds)
        if self.away:
            raise Unavailable("away")
        yield

    def token(self, secret: str, name: str = "ann", **more: Any) -> None:
        own: Json = {
            "id": ID, "name": name, "scopes": ["read"], "created_at": NOON, "created_by": "mo", "expires_at": None,
            "revoked_at": None,
        }  # fmt: skip
        self.rows[digest_of(secret)] = (digest_of(secret), TokenRow(**(own | more)))

    def _add(
        self, _: Any, identity: UUID, name: str, scopes: list[str], digest: bytes, author: str, expires: Any
    ) -> Any:
        row = TokenRow(identity, name, scopes, NOON, author, expires, None)
        self.rows[digest] = (digest, row)
        return row

    def _revoke(self, _: Any, identity: UUID) -> TokenRow | None:
        for digest, (_same, row) in self.rows.items():
            if row.id == identity:
                self.rows[digest] = (digest, row._replace(revoked_at=NOON))
                return row
        return None


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Stored:
    return Stored(monkeypatch)


def tokens(stored: Stored) -> tuple[Tokens, Clock]:
    clock = Clock()
    return Tokens(cast("Database", stored), clock), clock


def test_a_token_is_looked_up_again_every_two_seconds(stored: Stored) -> None:
    service, clock = tokens(stored)
    stored.token("s")
    assert service.remembered("s") is None
    for now in (0.0, 2.0):
        clock.now = now
        assert service.caller("s") == service.remembered("s") == ANN
    assert stored.asked == [None]
    clock.now = 2.1
    assert service.remembered("s") is None
    stored.rows.clear()
    assert service.caller("s") is None
    assert stored.asked == [None, 1.0], "whoever is known does not wait for long"
    assert service.caller("s") is None, "nobody is remembered too"
    assert len(stored.asked) == 2


def test_with_the_database_away_what_was_known_holds_for_ten_minutes(stored: Stored) -> None:
    service, clock = tokens(stored)
    stored.token("s")
    service.caller("s")
    stored.away = True
    for now in (3.0, 600.0):
        clock.now = now
        assert service.caller("s") == ANN
    asked = len(stored.asked)
    stored.is_silent = True
    assert (service.caller("s"), service.remembered("s"), len(stored.asked)) == (ANN, ANN, asked)
    clock.now = 600.1
    for secret in ("s", "another"):
        with pytest.raises(Unavailable):
            service.caller(secret)


@pytest.mark.parametrize(
    ("more", "welcome"),
    [
        ({"revoked_at": NOON}, False), ({"expires_at": datetime(2026, 1, 1, tzinfo=UTC)}, False),
        ({"expires_at": datetime(9999, 1, 1, tzinfo=UTC)}, True),
    ],
)  # fmt: skip
def test_who_is_let_in(stored: Stored, more: Json, welcome: bool) -> None:
    service, _ = tokens(stored)
    stored.token("s", **more)
    assert service.caller("s") == service.remembered("s") == (ANN if welcome else None)


def test_another_hash_is_nobody(stored: Stored) -> None:
    service, _ = tokens(stored)
    stored.token("s")
    stored.rows[digest_of("other")] = stored.rows[digest_of("s")]
    assert service.caller("other") is None


def test_guesses_push_out_guesses(stored: Stored, bounded: Bounded) -> None:
    bounded("app.auth.tokens", MOST_KEPT=2)
    service, _ = tokens(stored)
    stored.token("s")
    for secret in ("s", "a", "b", "c", "a"):
        service.caller(secret)
    assert len(stored.asked) == 5, "a was forgotten for c"
    assert (service.remembered("s"), service.caller("c"), len(stored.asked)) == (ANN, None, 5)


def test_a_token_is_made_and_revoked_with_a_line_each(stored: Stored) -> None:
    service, _ = tokens(stored)
    with acting("token:ops"):
        secret, row = service.create("ci", ["read"], None)
        assert service.caller(secret) == Caller("token:ci", frozenset({"read"}))
        assert service.revoke(row.id).name == "ci"
    assert (secret[:4], len(secret), row.created_by) == (PREFIX, 47, "token:ops")
    assert service.remembered(secret) is None, "at once"
    assert service.caller(secret) is None
    assert stored.lines == [
        ("token:ops", "token.create", str(row.id), {"name": "ci", "scopes": ["read"]}),
        ("token:ops", "token.revoke", str(row.id), {"name": "ci"}),
    ]
    with pytest.raises(NotFound, match=rf"^no token {ID}$"):
        service.revoke(ID)
    with pytest.raises(BadInput) as refused:
        service.create("a\nb", ["read"], None)
    assert [one.pointer for one in refused.value.problems] == ["/name"]


def test_refusals_say_how_many_were_not_written(stored: Stored) -> None:
    service, _ = tokens(stored)
    service.refused("ann", "refused.forbidden", "GET /x", "no")
    service.refused("ann", "refused.forbidden", "GET /x", "no", 3)
    assert stored.lines == [
        ("ann", "refused.forbidden", "GET /x", {"why": "no"}),
        ("ann", "refused.forbidden", "GET /x", {"why": "no", "unwritten": 3}),
    ]


def unstored(key: str | None) -> Sessions:
    return Sessions(cast("Database", None), cast("Tokens", None), key, 60)


def test_a_forged_or_old_cookie_of_nobody_is_none(clock: Moved) -> None:
    opened = unstored("k")
    cookie, nobody = opened.anonymous()
    assert opened.find(cookie) == nobody
    assert (nobody.caller, len(nobody.id)) == (None, 32)
    for text in ("", "x.y.z", cookie[:-1], unstored("other").anonymous()[0], unstored(None).anonymous()[0]):
        assert opened.find(text) is None
    now = datetime.now(UTC).timestamp()
    clock.drives("itsdangerous.timed")
    clock.now = now + 59
    assert opened.find(cookie) is not None
    clock.now = now + 62
    assert opened.find(cookie) is None


def test_forms_belong_to_their_session() -> None:
    opened = unstored("k")
    one, other = Session("a", None), Session("b", None)
    stamp = opened.stamp(one)
    assert opened.is_stamp(one, stamp)
    for session, given in ((other, stamp), (one, ""), (one, "ü")):
        assert not opened.is_stamp(session, given)
    assert unstored("other").stamp(one) != stamp


def test_who_asks_for_a_page() -> None:
    scope: Json = {}
    assert caller_of(scope, guarded=True) == Caller("anonymous", frozenset())
    assert caller_of(scope, guarded=False) == Caller("anonymous", frozenset({"admin"}))
    welcome(scope, ANN)
    assert caller_of(scope, guarded=True) == caller_of(scope, guarded=False) == ANN


class Site:
    """A provider that signs people in: what it was asked, and its answer to a code."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.endpoint = "https://login.example/authorize"
        self.answer: Any = {}

    def __call__(self, *question: Any) -> Any:
        self.asked.append(question)
        if isinstance(self.answer, Exception):
            raise self.answer
        if len(question) == 1:
            return {"authorization_endpoint": self.endpoint, "token_endpoint": f"{ISSUER}/token"}
        return self.answer


def flow(secret: str | None = None) -> tuple[CodeFlow, Site, Clock]:
    issuer, clock, site = Issuer(), Clock(), Site()
    api, own = (OpenId(Provider(ISSUER, audience), clock, issuer) for audience in (AUDIENCE, "client"))
    client = Client(ISSUER + "/", "client", secret)
    return CodeFlow(client, api, own, ask=site, clock=clock), site, clock


def test_the_browser_is_sent_to_the_provider_with_what_ties_it_to_us() -> None:
    made, site, clock = flow()
    where, kept = asyncio.run(made.begin("https://here/back"))
    parts = urlsplit(where)
    assert where.startswith(site.endpoint + "?")
    challenge = base64.urlsafe_b64encode(sha256(kept["verifier"].encode()).digest()).decode().rstrip("=")
    assert {name: value for name, (value,) in parse_qs(parts.query).items()} == {
        "response_type": "code", "client_id": "client", "redirect_uri": "https://here/back",
        "scope": "openid profile", "state": kept["state"], "nonce": kept["nonce"], "code_challenge": challenge,
        "code_challenge_method": "S256",
    }  # fmt: skip
    assert {len(value) for value in kept.values()} == {43}
    site.endpoint += "?tenant=1"
    for now, asked in ((600.0, 1), (600.1, 2)):
        clock.now = now
        where, _ = asyncio.run(made.begin("b"))
        assert len(site.asked) == asked
    assert where.startswith(site.endpoint + "&response_type=")
    assert site.asked == [(f"{ISSUER}/.well-known/openid-configuration",)] * 2


KEPT = {"nonce": "n", "verifier": "v", "state": "s"}


@pytest.mark.parametrize(
    ("identity", "access", "named"),
    [
        ({}, None, Caller("oidc:ann", frozenset({"read", "decide"}))),
        ({"scope": ""}, {"scope": "admin"}, Caller("oidc:ann", frozenset({"admin"}))),
        ({"scope": ""}, {"scope": "admin", "sub": "bob"}, Caller("oidc:ann", frozenset())),
        ({"nonce": "another"}, {}, None), ({"nonce": None}, {}, None), ({"aud": AUDIENCE}, {}, None),
        ({"sub": "a\nb"}, {}, None),
    ],
    ids=["alone", "with-access", "of-another", "wrong-nonce", "no-nonce", "not-for-us", "no-name"],
)  # fmt: skip
def test_whom_the_provider_names(identity: Json, access: Json | None, named: Caller | None) -> None:
    made, site, _ = flow("secret")
    site.answer = {"id_token": token(**({"aud": "client", "nonce": "n"} | identity))}
    if access is not None:
        site.answer["access_token"] = token(**access)
    assert asyncio.run(made.finish("code", KEPT, "https://here/back")) == named
    assert site.asked[-1] == (f"{ISSUER}/token", {
        "grant_type": "authorization_code", "code": "code", "redirect_uri": "https://here/back",
        "client_id": "client", "code_verifier": "v", "client_secret": "secret",
    })  # fmt: skip


def test_a_public_client_has_no_secret_and_no_answer_names_nobody() -> None:
    made, site, _ = flow()
    assert asyncio.run(made.finish("code", KEPT, "b")) is None
    assert "client_secret" not in site.asked[-1][1]


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (OSError("down"), "the provider can't be reached, or refuses"),
        (ValueError("no JSON"), "the provider can't be reached, or refuses"),
        (["a list"], "the provider answers something else than expected"),
    ],
)
def test_a_provider_that_does_not_answer(answer: Any, detail: str) -> None:
    made, site, _ = flow()
    asyncio.run(made.begin("b"))
    site.answer = answer
    with pytest.raises(Unavailable, match=f"^{detail}$"):
        asyncio.run(made.finish("code", KEPT, "b"))


def test_who_finds_no_place_among_those_who_ask_does_not_ask(bounded: Bounded) -> None:
    bounded("app.auth.oidc", PLACE_SECONDS=0.01)
    made, site, _ = flow()
    go, inside = threading.Event(), threading.Semaphore(0)

    def hang(*question: Any) -> Any:
        site.asked.append(question)
        inside.release()
        go.wait(60)
        return {"authorization_endpoint": "a", "token_endpoint": "t"}

    made._ask = hang  # pyright: ignore[reportPrivateUsage]

    async def run() -> None:
        asking = [asyncio.create_task(made.begin("b")) for _ in range(4)]
        while len(site.asked) < 4:
            await asyncio.sleep(0.001)
        with pytest.raises(Unavailable):
            await made.begin("b")
        assert len(site.asked) == 4
        go.set()
        await asyncio.gather(*asking)
        bounded("app.auth.oidc", PLACE_SECONDS=5.0)
        for _ in range(5):
            await made._asked("once more")  # pyright: ignore[reportPrivateUsage]

    asyncio.run(run())


def test_keys_of_a_document() -> None:
    ours = published(OURS, "k1")
    nameless = {name: value for name, value in ours.items() if name not in ("kid", "use")}
    bad = {"kty": "none", "kid": "x"}
    other, shared = ours | {"kid": "enc", "use": "enc"}, {"kty": "oct", "kid": "o", "k": "YQ"}
    document = {"keys": [bad, other, shared, ours, nameless, bad]}
    assert sorted(read_keys(document)) == ["", "k1"]


class Fetched:
    """Documents of keys, fetched in threads; a fetch may fail or hang."""

    def __init__(self) -> None:
        self.count = 0
        self.fails = False
        self.go = threading.Event()
        self.go.set()

    def __call__(self) -> Any:
        self.count += 1
        self.go.wait(60)
        if self.fails:
            raise OSError
        return {"keys": [published(OURS, "k1")]}


def test_when_keys_are_fetched_again() -> None:
    clock, fetched = Clock(), Fetched()
    published_keys = Keys(fetched, clock)

    def known(identity: str, now: float) -> bool | None:
        clock.now = now
        try:
            found = asyncio.run(published_keys.key(identity)) is not None
        except Unavailable:
            found = None
        running = published_keys._running  # pyright: ignore[reportPrivateUsage]
        if running is not None:
            running.exception(60)
        return found

    fetched.fails = True
    assert [known("k1", now) for now in (0.0, 1.0)] == [None, None]
    assert fetched.count == 1, "after a second it is tried again"
    fetched.fails = False
    assert (known("k1", 1.1), fetched.count) == (True, 2)
    assert (known("k9", 11.1), fetched.count) == (False, 2), "ten seconds long the document is all there is"
    assert (known("k9", 11.2), fetched.count) == (False, 3)
    assert (known("k1", 611.2), fetched.count) == (True, 3)
    fetched.fails = True
    assert (known("k1", 611.3), fetched.count) == (True, 4), "a known key is given whatever its age"
    assert (known("k1", 621.3), fetched.count) == (True, 4)
    assert (known("k9", 621.2), fetched.count) == (None, 4)
    assert (known("k1", 621.4), fetched.count) == (True, 5)


def test_where_no_thread_is_to_be_had_nobody_waits_and_keys_are_fetched_later(instead: Instead) -> None:
    clock, fetched = Clock(), Fetched()
    published_keys, thread = Keys(fetched, clock), threading.Thread

    def none(*_: Any, **__: Any) -> Any:
        def start() -> None:
            raise RuntimeError("can't start new thread")

        return SimpleNamespace(start=start)

    instead(keys.threading, Thread=none)
    for _ in range(2):
        with pytest.raises(Unavailable):
            asyncio.run(published_keys.key("k1"))
    assert fetched.count == 0
    instead(keys.threading, Thread=thread)
    clock.now = 1.1
    assert asyncio.run(published_keys.key("k1")) is not None


def test_a_provider_that_hangs_keeps_few_waiting_and_not_for_long(bounded: Bounded) -> None:
    bounded(keys, MOST_WAITING=2, WAIT_SECONDS=0.05)
    fetched = Fetched()
    fetched.go.clear()
    published_keys = Keys(fetched, Clock())

    async def run() -> None:
        waiting = [asyncio.create_task(published_keys.key("k1")) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await published_keys.key("k1")
        assert not any(one.done() for one in waiting), "the third was refused at once"
        for one in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(one, Unavailable)
        fetched.go.set()
        running = published_keys._running  # pyright: ignore[reportPrivateUsage]
        assert running is not None
        await asyncio.wrap_future(running)
        assert await published_keys.key("k1") is not None

    asyncio.run(run())
    assert fetched.count == 1, "all wait for the same"
