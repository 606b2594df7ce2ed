"""``arbiter worker``."""

from app.cli.output import BAD_INPUT, announce, complain


def worker() -> int:
    """Do the simulations of the database that DATABASE_URL names, until interrupted.

    `arbiter serve` starts one beside itself; more of them, on this machine or others, share the work.
    """
    from app.base import logs  # the server's packages, which few other commands need
    from app.base.settings import Settings
    from app.jobs.companion import Companion

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
