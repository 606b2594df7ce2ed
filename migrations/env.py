"""Alembic's entry point: one transaction under a lock, so that replicas which start together take turns."""

from alembic import context
from sqlalchemy import create_engine, pool, text

from app.configurations import repository as configurations
from app.db import with_driver
from app.settings import Settings

_TURN = 0x41524249  # any number that only migrations of Arbiter use


def _url() -> str:
    given = context.config.attributes.get("url") or Settings().database_url
    if given is None:
        raise SystemExit("DATABASE_URL is not set; `make migrate` and `make serve` set up their own database")
    return with_driver(str(given))


def run() -> None:
    engine = create_engine(_url(), poolclass=pool.NullPool)
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=configurations.configurations.metadata,
            transaction_per_migration=False,
        )
        with context.begin_transaction():
            connection.execute(text("select pg_advisory_xact_lock(:turn)"), {"turn": _TURN})
            context.run_migrations()
    engine.dispose()


if context.is_offline_mode():
    raise SystemExit("migrations run against a database, not as a script")
run()
