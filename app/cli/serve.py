"""``arbiter serve``."""

from typing import Annotated

from cyclopts import Parameter

from app.cli.output import BAD_INPUT, announce, complain


def serve(
    *,
    host: Annotated[str | None, Parameter(help="Address to listen on [HOST, 127.0.0.1].")] = None,
    port: Annotated[int | None, Parameter(help="Port to listen on [PORT, 8080].")] = None,
    workers: Annotated[int | None, Parameter(help="Processes for large requests and snapshots [WORKERS, 1].")] = None,
) -> int:
    """Start the service, with a PostgreSQL of its own unless DATABASE_URL names one."""
    from app.serve import run  # the server's packages, which no other command needs
    from app.settings import Settings

    named = {"host": host, "port": port, "workers": workers}
    given = {name: value for name, value in named.items() if value is not None}
    try:
        settings = Settings(**given)  # pyright: ignore[reportArgumentType]
    except ValueError as error:
        complain(str(error))
        return BAD_INPUT
    return run(settings, announce)
