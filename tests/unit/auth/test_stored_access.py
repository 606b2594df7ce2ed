"""Tokens, ended sessions and the audit log as the database keeps them, and as their operations tell them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
import sqlalchemy as sa
from starlette.responses import Response

from app.auth import repository, router
from app.auth.audit import Caller, acting
from app.auth.router import Sessions
from app.auth.tokens import Tokens, digest_of
from app.base.errors import BadRequest, NotFound, Unavailable
from app.base.settings import Settings
from app.db.database import Database
from tests.support.bounds import Bounded
from tests.support.instead import Instead

Json = dict[str, Any]


@pytest.fixture
def database(database: Database) -> Iterator[Database]:
    """Used by ``test:ann``."""
    with acting("test:ann"):
        yield database


def body(answer: Response) -> Any:
    return msgspec.json.decode(bytes(answer.body))


def test_a_token_is_told_once_and_kept_as_a_hash(database: Database) -> None:
    tokens = Tokens(database)
    later = datetime(2030, 1, 1, tzinfo=UTC)
    made = router.create_token(
        b'{"name":"ci","scopes":["read","decide","read"],"expires_at":"2030-01-01T00:00:00Z"}',
        tokens,
        Settings(authentication="required"),
    )
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    said = body(made)
    secret = said.pop("token")
    identity = UUID(said["id"])
    with database.session() as session:
        found = repository.by_hash(session, digest_of(secret))
        assert repository.by_hash(session, digest_of("other")) is None
    assert found is not None
    stored, row = found
    assert stored == digest_of(secret)
    assert (row.id, row.name, row.scopes, row.created_by) == (identity, "ci", ["read", "decide"], "test:ann")
    assert (row.expires_at, row.revoked_at) == (later, None)
    listed = body(router.list_tokens(tokens))["items"]
    assert listed == [said], "without its secret"
    caller = tokens.caller(secret)
    assert caller is not None
    assert (caller.name, caller.scopes) == ("token:ci", frozenset({"read", "decide"}))
    assert tokens.caller(secret + "x") is None


def test_a_token_is_revoked_once_and_alone(database: Database) -> None:
    tokens = Tokens(database)
    secrets = {name: tokens.create(name, ["read"], None) for name in ("one", "two")}
    (first, one), (second, _) = secrets["one"], secrets["two"]
    assert tokens.caller(first) is not None
    told = body(router.revoke_token(one.id, tokens))
    assert (told["name"], told["id"]) == ("one", str(one.id))
    when = tokens.revoke(one.id).revoked_at
    assert when is not None
    assert tokens.revoke(one.id).revoked_at == when, "when it was revoked stays"
    assert tokens.caller(first) is None
    assert tokens.caller(second) is not None
    assert [(row.name, row.revoked_at is None) for row in tokens.every()] == [("one", False), ("two", True)]
    with pytest.raises(NotFound, match=f"no token {UUID(int=7)}"):
        tokens.revoke(UUID(int=7))
    lines = tokens.audit_lines(None, 10, None, None)
    assert [(line.actor, line.action, line.target) for line in lines[2:]] == [
        ("test:ann", "token.revoke", str(one.id)), ("test:ann", "token.create", str(secrets["two"][1].id)),
        ("test:ann", "token.create", str(one.id)),
    ]  # fmt: skip
    assert (lines[2].detail, lines[3].detail) == ({"name": "one"}, {"name": "two", "scopes": ["read"]})


def test_the_audit_log_is_read_newest_first_by_actor_action_and_page(database: Database) -> None:
    tokens = Tokens(database)
    for number in range(4):
        tokens.refused("ab"[number % 2], f"GET {number // 2}", f"/x\0{number}", "why", number)

    def page(limit: int = 100, **more: Any) -> Json:
        return body(router.list_audit(tokens, limit=limit, **more))

    found = page()
    assert [line["target"] for line in found["items"]] == [f"/x\\x00{number}" for number in (3, 2, 1, 0)]
    assert "next_cursor" not in found
    assert [line["detail"] for line in found["items"][2:]] == [{"why": "why", "unwritten": 1}, {"why": "why"}]
    before = datetime.now(UTC)
    assert all(datetime.fromisoformat(line["at"]) <= before + timedelta(minutes=1) for line in found["items"])
    assert [line["id"] for line in page(actor="a")["items"]] == [found["items"][at]["id"] for at in (1, 3)]
    assert [line["id"] for line in page(action="GET 1")["items"]] == [line["id"] for line in found["items"][:2]]
    assert page(actor="a\0")["items"] == page(action="\0")["items"] == []
    assert "next_cursor" not in page(4)
    first = page(3)
    rest = page(3, cursor=first["next_cursor"])
    assert [line["id"] for line in first["items"] + rest["items"]] == [line["id"] for line in found["items"]]
    with pytest.raises(BadRequest):
        page(cursor="x")


BOB = Caller("oidc:bob", frozenset({"read", "decide"}))


def opened(database: Database, clock: list[float] | None = None, seconds: int = 60) -> Sessions:
    return Sessions(database, Tokens(database), "k" * 32, seconds, lambda: (clock or [0.0])[0])


def test_a_cookie_names_a_session_and_holds_nothing(database: Database) -> None:
    secret, _ = Tokens(database).create("ann", ["admin"], None)
    here = opened(database)
    by_token, by_provider = here.with_token(secret, "10.0.0.1"), here.with_caller(BOB)
    assert by_token is not None
    assert secret not in by_token
    assert here.with_token("arb_guess") is None
    found = [here.find(cookie) for cookie in (by_token, by_provider)]
    assert [one.caller for one in found if one is not None] == [Caller("token:ann", frozenset({"admin"})), BOB]
    for cookie in ("", "arbs_", by_token[:-1], by_token + "x"):
        assert here.find(cookie) is None
    listed = here.every()
    assert [(one.name, one.address) for one in listed] == [("token:ann", "10.0.0.1"), ("oidc:bob", "")]
    with database.session() as session:
        stored = session.execute(
            sa.text("select hash::text || name || coalesce(token::text, '') from sessions")
        ).scalars()
        assert not any(secret in row or by_token in row or by_provider in row for row in stored)
        assert repository.session_by_hash(session, digest_of(by_token)) == listed[0]


def test_a_session_ends_everywhere_for_every_copy_of_its_cookie(database: Database) -> None:
    clock = [0.0]
    here, there = opened(database), opened(database, clock)
    cookie, other = here.with_caller(BOB), here.with_caller(BOB)
    assert there.find(cookie) is not None
    here.end(cookie)
    here.end(cookie)
    here.end("arbs_forged")
    here.end("x")
    assert here.find(cookie) is None
    clock[0] = 2.0
    assert there.find(cookie) is not None, "it looks every two seconds"
    clock[0] = 2.1
    assert there.find(cookie) is None
    (left,) = here.every()
    assert here.revoke(left.id) == left
    assert here.find(other) is None
    with pytest.raises(NotFound):
        here.revoke(left.id)
    lines = [line.action for line in Tokens(database).audit_lines(None, 9, None, None)]
    assert lines == ["session.revoke", "session.end", "session.begin", "session.begin"]


def test_a_session_ends_with_its_token_and_its_time(database: Database) -> None:
    tokens = Tokens(database)
    secret, row = tokens.create("ann", ["admin"], None)
    soon, _ = tokens.create("soon", ["admin"], datetime.now(UTC) + timedelta(seconds=0.3))
    cookies = [opened(database).with_token(one) for one in (secret, soon)]
    assert all(cookie is not None and opened(database).find(cookie) for cookie in cookies)
    short = opened(database, seconds=0).with_caller(BOB)
    assert opened(database).find(short) is None
    tokens.revoke(row.id)
    time.sleep(0.3)
    assert [opened(database).find(cookie or "") for cookie in cookies] == [None, None]
    opened(database).with_caller(BOB)
    with database.session() as session:
        assert session.execute(sa.text("select count(*) from sessions")).scalar_one() == 3, "what is past is forgotten"


def test_with_the_database_away_who_is_known_stays(database: Database, instead: Instead) -> None:
    clock = [0.0]
    here = opened(database, clock)
    cookie, unknown = here.with_caller(BOB), here.with_caller(BOB)
    assert here.find(cookie) is not None

    def away(*_: Any) -> Any:
        raise Unavailable("away")

    instead(database, session=away)
    clock[0] = 599.0
    assert here.find(cookie) is not None
    with pytest.raises(Unavailable):
        here.find(unknown)
    clock[0] = 601.0
    with pytest.raises(Unavailable):
        here.find(cookie)


def test_what_ties_a_sign_in_together_is_kept_here_and_taken_once(database: Database) -> None:
    here = opened(database)
    said = {"verifier": "v", "state": "s"}
    named = here.remember(said, 60)
    assert here.recall(named, "t") is None, "another's"
    assert opened(database).recall(named, "s") == said
    assert here.recall(named, "s") is None, "once"
    assert here.recall(here.remember(said, -1), "s") is None, "in time"
    assert here.recall("forged", "s") is None


def test_who_is_signed_in_is_listed_and_sent_away(database: Database) -> None:
    here = opened(database)
    here.with_caller(BOB)
    (listed,) = body(router.list_sessions(here))["items"]
    assert (listed["name"], listed["scopes"]) == ("oidc:bob", ["decide", "read"])
    assert body(router.revoke_session(UUID(listed["id"]), here)) == listed
    assert body(router.list_sessions(here)) == {"items": []}


def test_nobody_fills_the_database_by_signing_in(database: Database, bounded: Bounded) -> None:
    """Three sessions of one name here, and three sign-ins of anybody: with one more the oldest goes."""
    bounded(repository, MOST_SESSIONS=3, MOST_SIGN_INS=3)
    here, ann = opened(database), Caller("oidc:ann", frozenset({"read"}))
    other = here.with_caller(ann)
    cookies = [here.with_caller(BOB) for _ in range(5)]
    assert [here.find(cookie) is not None for cookie in cookies] == [False, False, True, True, True]
    assert here.find(other) is not None, "nobody else's"
    begun = [here.remember({"state": "s"}, 60 + i) for i in range(5)]
    assert [here.recall(named, "s") is not None for named in begun] == [False, False, True, True, True]


def test_forged_cookies_push_nobody_out_who_is_signed_in(
    database: Database, bounded: Bounded, instead: Instead
) -> None:
    """While the database is away who is signed in stays so, however many cookies somebody has made up before."""
    bounded(router, MOST_KEPT=2)
    here = opened(database)
    cookie = here.with_caller(BOB)
    assert here.find(cookie) is not None
    assert [here.find(f"{router.PREFIX}{number}") for number in range(5)] == [None] * 5
    instead(database, session=_away)
    assert here.find(cookie) is not None


def _away(seconds: float | None = None) -> Any:
    raise Unavailable("away")
