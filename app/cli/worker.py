"""``arbiter worker``."""

from app.cli.output import BAD_INPUT, announce, complain


def worker() -> int:
    """Do the simulations of the database that DATABASE_URL names, until interrupted.

    `arbiter serve` starts one beside itself; more of them, on this machine or others, share the work.
    """
    from app.background import run  # the server's packages, which few other commands need
    from app.settings import Settings

    try:
        settings = Settings()
    except ValueError as error:
        complain(str(error))
        return BAD_INPUT
    if settings.database_url is None:
        complain("DATABASE_URL must name the database of the service")
        return BAD_INPUT
    announce("waiting for simulations")
    return run(settings)
