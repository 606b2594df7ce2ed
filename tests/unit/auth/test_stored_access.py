"""Tokens, ended sessions and the audit log as the database keeps them, and as their operations tell them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
import sqlalchemy as sa
from starlette.responses import Response

from app.auth import repository, router
from app.auth.actor import become, leave
from app.auth.service import Tokens, digest_of
from app.base.errors import BadRequest, NotFound
from app.base.settings import Settings
from app.db import Database

Json = dict[str, Any]


@pytest.fixture
def database(database: Database) -> Iterator[Database]:
    """Used by ``test:ann``."""
    acting = become("test:ann")
    yield database
    leave(acting)


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


def test_ended_sessions_are_known_until_their_cookies_are_over(database: Database) -> None:
    with database.session() as session:
        now = session.execute(sa.select(sa.func.now())).scalar_one()
        hour = timedelta(hours=1)
        repository.end_session(session, "old", now - hour)
        repository.end_session(session, "now", now)
        assert repository.every_ended_session(session) == {"now"}
        repository.end_session(session, "later", now + hour)
        repository.end_session(session, "later", now - hour)  # it was over already
        assert repository.every_ended_session(session) == {"now", "later"}
        kept = session.execute(sa.select(repository.ended_sessions.c.id)).scalars().all()
        assert sorted(kept) == ["later", "now"]
