"""``arbiter database``."""

from cyclopts import App

from app.cli.output import UNREACHABLE, complain, say

commands = App(name="database", help="The service's own database.")


@commands.command
def upgrade() -> int:
    """Bring the database to this version's tables: the one of DATABASE_URL, else the service's own."""
    from app.base.errors import Unavailable
    from app.base.settings import Settings
    from app.db import (
        Database,
        head_revision,
        is_newer,
        migrate,
    )  # the database's packages, which `decide` can do without
    from app.db.embedded import EmbeddedError, EmbeddedPostgres

    settings = Settings()
    own = None
    try:
        if settings.database_url is None:
            own = EmbeddedPostgres(settings.data_dir, say=complain)
        url = settings.database_url or (own.start() if own else "")
        database = Database(url, settings)
        try:
            before, _ = database.migration_state()
        finally:
            database.close()
        migrate(url)
    except (EmbeddedError, Unavailable) as error:
        complain(str(error))
        return UNREACHABLE
    finally:
        if own is not None:
            own.stop()
    after = head_revision()
    if is_newer(before):
        say(f"at {before}, which is newer than {after}: nothing to do")
    else:
        say(f"already at {after}" if before == after else f"from {before or 'an empty database'} to {after}")
    return 0
