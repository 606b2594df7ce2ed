"""``arbiter serve``."""

import re
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from app.cli.configuration import Token
from app.cli.output import BAD_INPUT, announce, complain
from app.following.kinds import FOLLOWED
from app.solver.model.configuration import EngineName

if TYPE_CHECKING:
    from app.jobs.companion import Companion

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


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
        clusters = [_cluster(one) for one in follow or ()]
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
    if engine not in FOLLOWED or not _NAME.fullmatch(name):
        raise ValueError(f"--follow {given}: ENGINE:NAME is expected, with one of {', '.join(FOLLOWED)}")
    if find_spec("kubernetes") is None:
        raise ValueError("--follow: following a cluster needs the extra arbiter[kubernetes]")
    return engine, name, context or None


def _followers(clusters: list[tuple[EngineName, str, str | None]], token: str | None, url: str) -> "list[Companion]":
    from app.following.beside import MODULE, Beside
    from app.jobs.companion import Companion

    wanted = [Beside(engine, name, url, token, context) for engine, name, context in clusters]
    return [Companion(MODULE, msgspec.json.encode(one).decode()) for one in wanted]
