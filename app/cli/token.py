"""``arbiter token``: straight on the database, so that a service which asks everybody for a token can get its first."""

import getpass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from cyclopts import App

from app.cli.output import BAD_INPUT, UNREACHABLE, complain, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.auth.service import Tokens

commands = App(name="token", help="Tokens of the service: who may ask, read or administer.")


@commands.command
def create(name: str, *, scope: list[Literal["decide", "read", "admin"]], days: float | None = None) -> int:
    """Create a token and print it, once.

    Parameters
    ----------
    name: who will use it.
    scope: what it allows; may be given several times.
    days: until it expires; never when left out.
    """
    try:
        expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    except (OverflowError, ValueError):
        complain(f"--days {days:g}: no calendar goes that far")
        return BAD_INPUT

    def act(tokens: "Tokens") -> int:
        secret, _ = tokens.create(name, list(dict.fromkeys(scope)), expires)
        say(secret)
        return 0

    return _on_tokens(act)


@commands.command(name="list")
def listing() -> int:
    """All tokens, without their secrets."""

    def act(tokens: "Tokens") -> int:
        for row in tokens.every():
            state = "revoked" if row.revoked_at else f"until {row.expires_at:%Y-%m-%d}" if row.expires_at else "valid"
            say(f"{row.id}  {','.join(row.scopes):18} {state:16} {row.name}")
        return 0

    return _on_tokens(act)


@commands.command
def revoke(id: UUID) -> int:  # noqa: A002
    """Revoke a token by its id."""

    def act(tokens: "Tokens") -> int:
        say(f"revoked {tokens.revoke(id).name}")
        return 0

    return _on_tokens(act)


def _on_tokens(act: "Callable[[Tokens], int]") -> int:
    """Do it on the tokens of DATABASE_URL's database, else of the service's own; the exit code."""
    from app.auth import actor  # the database's packages, which `decide` can do without
    from app.auth.service import Tokens
    from app.base.errors import BadInput, NotFound, Unavailable
    from app.base.settings import Settings
    from app.db import Database, migrate
    from app.db.embedded import EmbeddedError, EmbeddedPostgres

    settings = Settings()
    own = EmbeddedPostgres(settings.data_dir, say=complain) if settings.database_url is None else None
    acting = actor.become(f"cli:{getpass.getuser()}")
    try:
        url = settings.database_url or (own.start() if own else "")
        migrate(url)
        database = Database(url, settings)
        try:
            return act(Tokens(database))
        finally:
            database.close()
    except (EmbeddedError, Unavailable) as error:
        complain(str(error))
        return UNREACHABLE
    except (BadInput, NotFound) as error:
        complain(error.detail)
        return BAD_INPUT
    finally:
        actor.leave(acting)
        if own is not None:
            own.stop()
