"""``arbiter serve``, ``worker``, ``database`` and ``token``: the service's own processes, database and tokens.

Tokens are made straight on the database, so that a service which asks everybody for a token can get its first.
"""

import getpass
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

import msgspec
from cyclopts import App, Parameter

from app.base.identifiers import NAME
from app.cli.configuration import Token
from app.cli.output import BAD_INPUT, UNREACHABLE, announce, complain, say
from app.following.objects import FOLLOWED
from app.solver.model.configuration import EngineName

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.auth.tokens import Tokens
    from app.base.settings import Settings
    from app.jobs.service import Companion


def serve(
    *,
    host: Annotated[str | None, Parameter(help="Address to listen on [HOST, 127.0.0.1].")] = None,
    port: Annotated[int | None, Parameter(help="Port to listen on [PORT, 8080].")] = None,
    workers: Annotated[int | None, Parameter(help="Processes for large requests and snapshots [WORKERS, 1].")] = None,
    follow: Annotated[
        list[str] | None,
        Parameter(
            help="ENGINE:NAME or ENGINE:NAME:CONTEXT: follow that cluster beside the service; may be repeated.",
            negative=(),
        ),
    ] = None,
    token: Token = None,
) -> int:
    """Start the service, with a PostgreSQL of its own unless DATABASE_URL names one.

    With --follow a process beside it keeps the configuration and the snapshot NAME equal to a cluster, as
    `arbiter follow` does; --token is for that, with the scopes decide, read and admin, where the service wants one.
    """
    from app.base.settings import Settings
    from app.service.serve import run  # the server's packages, which no other command needs

    named = {"host": host, "port": port, "workers": workers}
    given = {name: value for name, value in named.items() if value is not None}
    try:
        settings = Settings(**given)  # pyright: ignore[reportArgumentType]
        clusters = [_cluster(cluster) for cluster in follow or ()]
        if len({name for _, name, _ in clusters}) < len(clusters):
            raise ValueError("--follow: two clusters of one name")
        if clusters and settings.authentication == "required" and not token:
            raise ValueError("--follow: the service wants a token: --token or ARBITER_TOKEN")
    except ValueError as error:
        complain(str(error))
        return BAD_INPUT
    return run(settings, announce, partial(_followers, clusters, token) if clusters else None)


def _cluster(given: str) -> tuple[EngineName, str, str | None]:
    """Engine, name and context. Raises ValueError."""
    engine, _, rest = given.partition(":")
    name, _, context = rest.partition(":")
    if engine not in FOLLOWED or not re.fullmatch(NAME, name):
        raise ValueError(f"--follow {given}: ENGINE:NAME is expected, with one of {', '.join(FOLLOWED)}")
    if find_spec("kubernetes") is None:
        raise ValueError("--follow: following a cluster needs the extra arbiter-preemption[kubernetes]")
    return engine, name, context or None


def _followers(clusters: list[tuple[EngineName, str, str | None]], token: str | None, url: str) -> "list[Companion]":
    from app.following.follower import MODULE, Beside
    from app.jobs.service import Companion

    wanted = [Beside(engine, name, url, token, context) for engine, name, context in clusters]
    return [
        Companion(MODULE, msgspec.json.encode(follower).decode(), f"follower {follower.cluster}") for follower in wanted
    ]


def worker() -> int:
    """Do the simulations of the database that DATABASE_URL names, until interrupted.

    `arbiter serve` starts one beside itself; more of them, on this machine or others, share the work.
    """
    from app.base import logs  # the server's packages, which few other commands need
    from app.base.settings import Settings
    from app.jobs.service import Companion

    try:
        settings = Settings()
    except ValueError as error:
        complain(str(error))
        return BAD_INPUT
    if settings.database_url is None:
        complain("DATABASE_URL must name the database of the service")
        return BAD_INPUT
    logs.configure(settings)
    announce("waiting for simulations")
    Companion("app.service.background", settings.model_dump_json()).run()
    return 0


database = App(name="database", help="The service's own database.")


@database.command
def upgrade() -> int:
    """Bring the database to this version's tables: the one of DATABASE_URL, else the service's own."""

    def act(url: str, settings: "Settings") -> int:
        from app.db.database import Database, head_revision, is_newer, migrate

        database = Database(url, settings)
        try:
            before, _ = database.migration_state()
        finally:
            database.close()
        migrate(url)
        after = head_revision()
        if is_newer(before):
            say(f"at {before}, which is newer than {after}: nothing to do")
        else:
            say(f"already at {after}" if before == after else f"from {before or 'an empty database'} to {after}")
        return 0

    return _on_database(act)


token = App(name="token", help="Tokens of the service: who may ask, read or administer.")


@token.command
def create(name: str, *, scope: list[Literal["decide", "read", "admin", "follow"]], days: float | None = None) -> int:
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


@token.command(name="list")
def listing() -> int:
    """All tokens, without their secrets."""

    def act(tokens: "Tokens") -> int:
        for row in tokens.every():
            state = "revoked" if row.revoked_at else f"until {row.expires_at:%Y-%m-%d}" if row.expires_at else "valid"
            say(f"{row.id}  {','.join(row.scopes):18} {state:16} {row.name}")
        return 0

    return _on_tokens(act)


@token.command
def revoke(id: UUID) -> int:  # noqa: A002
    """Revoke a token by its id."""

    def act(tokens: "Tokens") -> int:
        say(f"revoked {tokens.revoke(id).name}")
        return 0

    return _on_tokens(act)


def _on_tokens(act: "Callable[[Tokens], int]") -> int:
    """Do it on the tokens of that database; the exit code."""

    def on(url: str, settings: "Settings") -> int:
        from app.auth.audit import acting
        from app.auth.tokens import Tokens
        from app.db.database import Database, migrate

        migrate(url)
        database = Database(url, settings)
        try:
            with acting(f"cli:{getpass.getuser()}"):
                return act(Tokens(database))
        finally:
            database.close()

    return _on_database(on)


def _on_database(act: "Callable[[str, Settings], int]") -> int:
    """Do it on the database of DATABASE_URL, else on the service's own; the exit code."""
    from app.base.errors import BadInput, NotFound, Unavailable  # the database's packages: `decide` can do without
    from app.base.settings import Settings
    from app.db.embedded import EmbeddedError, EmbeddedPostgres

    settings = Settings()
    own = EmbeddedPostgres(settings.data_dir, say=complain) if settings.database_url is None else None
    try:
        return act(settings.database_url or (own.start() if own else ""), settings)
    except (EmbeddedError, Unavailable) as error:
        complain(str(error))
        return UNREACHABLE
    except (BadInput, NotFound) as error:
        complain(error.detail)
        return BAD_INPUT
    finally:
        if own is not None:
            own.stop()
