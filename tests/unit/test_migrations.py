import json
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from uuid import UUID

import pytest
import zstandard
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from app.base.settings import Settings
from app.db.database import MIGRATIONS, Database, head_revision, migrate


@contextmanager
def connected(url: str) -> Generator[Connection]:
    with create_engine(url, poolclass=NullPool).begin() as connection:
        yield connection


def tables(url: str) -> set[str]:
    with connected(url) as connection:
        return set(inspect(connection).get_table_names()) - {"alembic_version"}


def test_up_down_and_up_again(new_database: Callable[[], str]) -> None:
    url = new_database()
    database = Database(url, Settings())
    assert database.migration_state() == (None, head_revision())
    migrate(url)
    assert database.migration_state() == (head_revision(), head_revision())
    whole = tables(url)
    assert {"configurations", "configuration_revisions", "decisions"} <= whole
    migrate(url, "base")
    assert tables(url) == set()
    assert database.migration_state()[0] is None
    migrate(url)
    assert tables(url) == whole
    database.close()


def test_each_step_goes_down_and_up(new_database: Callable[[], str]) -> None:
    url = new_database()
    migrate(url)
    for _ in ScriptDirectory(str(MIGRATIONS)).walk_revisions():
        migrate(url, "-1")
        migrate(url, "+1")
        migrate(url, "-1")
    assert tables(url) == set()


def test_nothing_of_a_migration_stays_below(new_database: Callable[[], str]) -> None:
    url = new_database()
    migrate(url)
    migrate(url, "base")
    with connected(url) as connection:
        left = connection.execute(
            text("select proname from pg_proc join pg_namespace n on n.oid = pronamespace where nspname = 'public'")
        )
        assert left.fetchall() == []


def test_migrations_make_the_tables_that_the_code_uses(migrated_url: str) -> None:
    """As ``alembic check`` does."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["url"] = migrated_url
    command.check(config)


def test_a_table_that_no_migration_makes_is_noticed(new_database: Callable[[], str]) -> None:
    url = new_database()
    migrate(url)
    with connected(url) as connection:
        connection.execute(text("alter table configurations drop column deleted_at"))
    with pytest.raises(CommandError, match="deleted_at"):
        test_migrations_make_the_tables_that_the_code_uses(url)


def test_a_revision_once_stored_stays_as_it_is(database_url: str) -> None:
    with connected(database_url) as connection:
        connection.execute(text("insert into configurations (name, revision) values ('c', 1)"))
        connection.execute(
            text("insert into configuration_revisions (name, revision, digest, document) values ('c', 1, 'd', '{}')")
        )
    for statement in ("update configuration_revisions set document = '[]'", "delete from configuration_revisions"):
        with pytest.raises(DBAPIError, match="immutable"), connected(database_url) as connection:
            connection.execute(text(statement))


def test_simulations_that_had_a_name_before_are_found_by_it(new_database: Callable[[], str]) -> None:
    url = new_database()
    migrate(url, "0028")
    row = "insert into jobs (id, kind, actor, created_at, about, request) values (:id, :kind, 'mo', now(), :about, '')"
    told = {
        1: ("simulation", {"name": "Gro\u00dfe \0 Runde"}),
        2: ("simulation", {"variants": [""]}),
        3: ("sweep", {"name": "of another kind"}),
    }
    with connected(url) as connection:
        for number, (kind, about) in told.items():
            said = {"id": UUID(int=number), "kind": kind, "about": json.dumps(about).encode()}
            connection.execute(text(row), said)
    migrate(url)
    with connected(url) as connection:
        folded = connection.execute(text("select folded from jobs order by id")).scalars().all()
    assert folded == ["grosse \ufffd runde", None, None]


def test_comparisons_that_were_kept_before_have_their_cause(new_database: Callable[[], str]) -> None:
    url = new_database()
    migrate(url, "0029")
    row = (
        "insert into shadow (id, cluster, engine, outcome, ask, seen_at, bytes, record) "
        "values (:id, 'c', 'kueue', 'differs', 'a', now(), 1, :record)"
    )
    with connected(url) as connection:
        for number, record in enumerate(({"cause": "tie"}, {}, {"cause": "victims"}, {"cause": "tie"})):
            packed = zstandard.ZstdCompressor().compress(json.dumps(record).encode())
            connection.execute(text(row), {"id": UUID(int=number), "record": packed})
    migrate(url)
    with connected(url) as connection:
        causes = connection.execute(text("select cause from shadow order by id")).scalars().all()
    assert causes == ["tie", "unknown", "victims", "tie"]


@pytest.mark.slow
def test_replicas_that_start_together_take_turns(new_database: Callable[[], str]) -> None:
    url = new_database()
    command = [sys.executable, "-c", "import sys; from app.db.database import migrate; migrate(sys.argv[1])", url]
    replicas = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [(replica.communicate()[1], replica.returncode) for replica in replicas] == [("", 0)] * 3
    assert "configurations" in tables(url)
