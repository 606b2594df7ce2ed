"""One answer a key: what makes a request the same, what is kept of its answer, and for how long."""

from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.responses import Response

from app.auth.audit import acting
from app.base.errors import BadInput, Conflict, TooManyRequests
from app.configurations import repository
from app.configurations.repository import Once, Writes, _again  # pyright: ignore[reportPrivateUsage]
from app.db.database import Database

SAID = ("PUT", "/v1/x", "", "")


class Acts:
    """A write that counts how often it was done."""

    def __init__(self) -> None:
        self.done = 0

    def __call__(self, session: Any) -> Response:
        self.done += 1
        headers = {"ETag": f'"{self.done}"', "Location": "/here", "Retry-After": "9"}
        return Response(f"answer {self.done}", 201, headers, "text/plain")


def test_parts_of_a_request_do_not_run_into_one_another() -> None:
    digests = {
        Once("k", said).digest(body)
        for said, body in (
            (("a", "b"), b"c"), (("ab", ""), b"c"), (("", "ab"), b"c"), (("a", "bc"), b""), (("a",), b"bc"),
            (("a", "b"), b"d"), (("\ud800",), b""),
        )
    }  # fmt: skip
    assert len(digests) == 7
    assert Once("k", ("a", "b")).digest(b"c") == Once("other", ("a", "b")).digest(b"c")
    assert {len(digest) for digest in digests} == {32}
    parts = b"".join(bytes(7) + bytes([len(part)]) + part for part in (b"a", b"", b"bc"))
    assert Once("k", ("a", "")).digest(b"bc") == sha256(parts).digest(), "as another release has kept it"


def test_a_write_without_a_key_is_done_each_time(database: Database) -> None:
    writes, act = Writes(database, 60, 99, 1 << 20), Acts()
    for _ in range(2):
        assert writes.run(Once(None, SAID), act).status_code == 201
    assert act.done == 2


def test_a_key_is_answered_once_and_the_answer_is_given_again(database: Database) -> None:
    writes, act = Writes(database, 60, 99, 1 << 20), Acts()
    once = Once("k", SAID)
    first = writes.run(once, act, b"body")
    again = writes.run(once, act, b"body")
    assert (act.done, again.status_code, again.body) == (1, 201, first.body)
    kept = {"content-type": "text/plain; charset=utf-8", "etag": '"1"', "location": "/here"}
    assert {name: again.headers[name] for name in kept} == kept
    assert (again.headers["idempotency-replayed"], "retry-after" in again.headers) == ("true", False)
    assert "idempotency-replayed" not in first.headers
    with pytest.raises(BadInput, match="this Idempotency-Key was used for another request"):
        writes.run(once, act, b"another")
    assert writes.run(Once("l", SAID), act, b"body").body == b"answer 2"
    with acting("somebody else"):
        assert writes.run(once, act, b"another").body == b"answer 3"


@pytest.mark.parametrize(("entries", "size"), [(2, 1 << 20), (99, 2 * len(b"answer 1"))])
def test_so_many_answers_are_kept_of_each_actor(database: Database, entries: int, size: int) -> None:
    """Two here, by number or by the bytes of two: a third key is refused with what it would have done, and the others
    go on; whoever else writes has as many."""
    writes, act = Writes(database, 600, entries, size), Acts()
    for key in "ab":
        writes.run(Once(key, SAID), act)
    with pytest.raises(TooManyRequests, match="2 answers of yours are kept by their Idempotency-Key") as refused:
        writes.run(Once("c", SAID), act)
    with pytest.raises(TooManyRequests):
        writes.run(Once("c", SAID), act)
    assert 590 <= int(refused.value.headers["Retry-After"]) <= 600, "when the oldest of them goes"
    assert act.done == 2
    assert writes.run(Once("a", SAID), act).headers["idempotency-replayed"] == "true"
    assert writes.run(Once(None, SAID), act).body == b"answer 3"
    with acting("somebody else"):
        assert writes.run(Once("c", SAID), act).body == b"answer 4"
    with database.session() as session:
        session.execute(sa.text("update idempotency_keys set created_at = created_at - interval '11 minutes'"))
    assert writes.run(Once("c", SAID), act).body == b"answer 5", "what is older has gone"


def test_what_raises_is_not_kept(database: Database) -> None:
    def fails(session: Any) -> Response:
        raise ZeroDivisionError

    writes, act, once = Writes(database, 60, 99, 1 << 20), Acts(), Once("k", SAID)
    with pytest.raises(ZeroDivisionError):
        writes.run(once, fails)
    assert writes.run(once, act).body == b"answer 1"


def aged(database: Database, seconds: float) -> int:
    """Make all keys so much older; how many there are."""
    with database.session() as session:
        older = repository.keys.c.created_at - timedelta(seconds=seconds)
        session.execute(sa.update(repository.keys).values(created_at=older))
        return session.execute(sa.select(sa.func.count()).select_from(repository.keys)).scalar_one()


def test_keys_are_forgotten_after_their_time(database: Database) -> None:
    writes, act = Writes(database, 3600, 99, 1 << 20), Acts()
    for key in ("a", "b", "c"):
        writes.run(Once(key, SAID), act)
    aged(database, 3000)
    writes.run(Once("a", SAID), act)
    assert act.done == 3, "not yet"
    aged(database, 1200)
    writes.run(Once("a", SAID), act)
    assert (act.done, aged(database, 0)) == (4, 1), "others that are as old go with it"


def test_ones_own_key_goes_when_it_is_old_and_a_hundred_others_that_nobody_holds(database: Database) -> None:
    hour = timedelta(hours=1)
    with database.session() as session:
        old = {"request": b"", "created_at": sa.func.now() - hour}
        names = [("me", f"k{i:03}") for i in range(149)] + [("you", "k148")]
        session.execute(sa.insert(repository.keys).values([{"actor": who, "key": k, **old} for who, k in names]))
        repository.expire(session, "me", "k148", hour)
        kept = sa.select(repository.keys.c.actor, repository.keys.c.key)
        assert len(session.execute(kept).all()) == 150, "no older than that"
        hour -= timedelta(seconds=1)
    with database.session() as other, database.session(10) as session:
        other.execute(kept.where(repository.keys.c.key == "k000").with_for_update())
        repository.expire(session, "me", "k148", hour)
        left = {(who, key) for who, key in session.execute(kept)}
        assert len(left) == 150 - 1 - 100
        assert ("me", "k148") not in left
        assert ("me", "k000") in left


def test_a_key_that_went_between_may_be_sent_again() -> None:
    with pytest.raises(Conflict, match="has just expired; send it again"):
        _again(None, b"")
