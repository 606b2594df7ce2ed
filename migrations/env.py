"""Alembic's entry point: one transaction under a lock, so that replicas which start together take turns."""

from importlib import import_module
from pathlib import Path

from alembic import context
from sqlalchemy import MetaData, create_engine, pool, text

import app
from app.base.settings import Settings
from app.db.connecting import connect_arguments, with_driver
from app.db.database import is_newer, metadata

_TURN = 0x41524249  # any number that only migrations of Arbiter use


def _url() -> str:
    given = context.config.attributes.get("url") or Settings().database_url
    if given is None:
        raise SystemExit("DATABASE_URL is not set; `make migrate` and `make serve` set up their own database")
    return with_driver(str(given))


def _tables() -> MetaData:
    """What the code needs: every ``repository.py`` puts its tables on the metadata."""
    root = Path(app.__file__).parent
    for found in sorted(root.rglob("repository.py")):
        import_module(".".join((app.__name__, *found.relative_to(root).with_suffix("").parts)))
    return metadata


def run() -> None:
    engine = create_engine(_url(), poolclass=pool.NullPool, connect_args=connect_arguments(Settings()))
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=_tables(),
            compare_server_default=True,
            transaction_per_migration=False,
        )
        with context.begin_transaction():
            connection.execute(text("select pg_advisory_xact_lock(:turn)"), {"turn": _TURN})
            if not is_newer(context.get_context().get_current_revision()):
                context.run_migrations()
    engine.dispose()


if context.is_offline_mode():
    raise SystemExit("migrations run against a database, not as a script")
run()
