"""Migrations: which there are, which a database has, and bringing it up to date."""

from functools import cache

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.exc import OperationalError

from app.base.errors import Unavailable
from app.base.shipped import shipped
from app.db.connecting import with_driver

MIGRATIONS = str(shipped("migrations"))


def head_revision() -> str:
    """The newest migration that this code has."""
    head = ScriptDirectory(MIGRATIONS).get_current_head()
    assert head is not None, "migrations is empty"
    return head


@cache
def _own_revisions() -> frozenset[str]:
    return frozenset(script.revision for script in ScriptDirectory(MIGRATIONS).walk_revisions())


def is_newer(migration: str | None) -> bool:
    """Whether only newer code than this knows the migration that a database is at.

    Migrations only add, so that instances of two versions can share a database: this code works on it all the same.
    """
    return migration is not None and migration not in _own_revisions()


def migrate(url: str, target: str = "head") -> None:
    """Bring the database to ``target``; one that newer code has migrated stays as it is.

    Several processes at once take turns. Raises Unavailable.
    """
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    config.attributes["url"] = with_driver(url)
    move = command.downgrade if target == "base" or target.startswith("-") else command.upgrade
    try:
        move(config, target)
    except OperationalError as error:
        raise Unavailable("the database can't be reached") from error
