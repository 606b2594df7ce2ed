"""What is past its retention, by each bound and by all; and which migrations are of newer code."""

from collections.abc import Iterator
from contextlib import closing
from uuid import UUID

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from app.base.errors import Unavailable
from app.base.settings import Settings
from app.db.database import Database, head_revision, is_newer, migrate, past_retention

ENTRIES = sa.Table(
    "entries", sa.MetaData(), sa.Column("id", sa.Uuid, primary_key=True), sa.Column("bytes", sa.Integer),
    prefixes=["TEMPORARY"],
)  # fmt: skip
SIZES = {1: 100, 2: 50, 3: 2_000_000_000, 4: 2_000_000_000, 5: 10}
"""Together more than an integer of 32 bits."""


@pytest.fixture
def session(migrated_url: str) -> Iterator[Session]:
    """A transaction in which there are five entries, the newest last."""
    with closing(Database(migrated_url, Settings())) as database, database.session() as made:
        ENTRIES.create(made.connection())
        made.execute(sa.insert(ENTRIES).values([{"id": UUID(int=i), "bytes": size} for i, size in SIZES.items()]))
        yield made
        made.rollback()


@pytest.mark.parametrize(
    ("before", "keep", "keep_bytes", "past"),
    [
        (3, None, None, [1, 2]), (9, None, None, [1, 2, 3, 4, 5]), (1, None, None, []),
        (None, 5, None, []), (None, 4, None, [1]), (None, 1, None, [1, 2, 3, 4]), (None, 0, None, [1, 2, 3, 4, 5]),
        (None, None, 10, [1, 2, 3, 4]), (None, None, 9, [1, 2, 3, 4, 5]), (None, None, 2_000_000_010, [1, 2, 3]),
        (None, None, 4_000_000_160, []), (None, None, 4_000_000_159, [1]), (2, 2, 4_000_000_060, [1, 2, 3]),
        (2, 5, None, [1]),
    ],
)  # fmt: skip
def test_each_bound_alone_takes_out_what_is_past_it(
    session: Session, before: int | None, keep: int | None, keep_bytes: int | None, past: list[int]
) -> None:
    bound = past_retention(
        ENTRIES.c.id, ENTRIES.c.bytes, before=None if before is None else UUID(int=before), keep=keep,
        keep_bytes=keep_bytes,
    )  # fmt: skip
    assert bound is not None
    found = session.execute(sa.select(ENTRIES.c.id).where(bound).order_by(ENTRIES.c.id)).scalars()
    assert [one.int for one in found] == past


def test_without_a_bound_nothing_is_past_it() -> None:
    assert past_retention(ENTRIES.c.id, ENTRIES.c.bytes, before=None, keep=None, keep_bytes=None) is None


def test_only_what_this_code_does_not_know_is_newer() -> None:
    assert [is_newer(migration) for migration in (None, "0001", head_revision(), "9999")] == [False] * 3 + [True]


def test_a_database_that_is_away_is_not_migrated() -> None:
    with pytest.raises(Unavailable, match="the database can't be reached"):
        migrate("postgresql://127.0.0.1:1/x")
