"""Serve: the database, the example configuration, the address to look at, then the service itself."""

import asyncio
import faulthandler
import json
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import FrameType
from typing import Any, cast

import msgspec
import structlog
import uvicorn
from fastapi import FastAPI

from app.auth.audit import acting
from app.base import logs, shipped
from app.base.decoding import convert
from app.base.errors import PreconditionFailed, Unavailable
from app.base.settings import Settings
from app.configurations.service import Configurations, Editor, Intent, drafted
from app.db.database import Database, migrate
from app.db.embedded import EmbeddedError, EmbeddedPostgres
from app.http.openapi import Preconditions
from app.http.protocol import BulkProtocol, Connections
from app.http.protocol import Limits as ConnectionLimits
from app.jobs.service import Companion
from app.service.main import create_app
from app.simulations.router import SIMULATION
from app.solver.model.configuration import Configuration
from app.workers.dispatcher import Dispatcher

NAME = "example"
_EXAMPLES = shipped("examples")
_DECISIONS = ("yunikorn-guarantee", "ytsaurus-starvation", "kai-reclaim")
Json = dict[str, Any]
Send = Callable[[str, str, bytes, str], None]
"""Sends a request: method, path, body, its media type. Raises what goes wrong."""
_JSON, _LINES = "application/json", "application/x-ndjson"


def fill(send: Send) -> None:
    """What an empty service on somebody's own machine begins with, so that there is something to look at on every page
    of the console: decisions of every engine, one that waits, a snapshot with what waits beside it, a trace and two
    simulations.

    They are requests that anybody could send; nothing of them is special.
    """
    first = _example("kueue-classic")
    stored: Json = {**first, "configuration": NAME}
    waiting = json.loads(json.dumps(stored))
    waiting["asks"][0] |= {"id": "embeddings-large"}
    waiting["asks"][0]["tasks"][0]["count"] = 12
    for request in (*map(_example, _DECISIONS), stored, waiting):
        send("POST", "/v1/decisions", _json(request), _JSON)
    snapshot: Json = {"engine": first["engine"], "configuration": NAME, "state": first["state"], "asks": first["asks"]}
    send("PUT", f"/v1/snapshots/{NAME}", _json(snapshot), _JSON)
    send("PUT", f"/v1/traces/{NAME}?format=ndjson", b"\n".join(map(_json, SIMULATION["trace"]["jobs"])), _LINES)
    send("POST", "/v1/simulations", _json({**SIMULATION, "trace": NAME}), _JSON)
    send("POST", "/v1/simulations", _json(_example("loops/kueue-fair-sharing")), _JSON)


def _example(name: str) -> Json:
    return json.loads((_EXAMPLES / f"{name}.json").read_bytes())


def _json(document: Json) -> bytes:
    return json.dumps(document).encode()


EXAMPLE = shipped("examples") / "kueue-classic.json"
_EXAMPLE_SECONDS = 60.0
_RETRY_SECONDS = 5.0
_SWITCH_SECONDS = 0.0002
"""After which a thread that wants the interpreter gets it: the log writer must not hold answers up for longer."""
_BACKLOG = 2048
_ACCEPTED_AT_ONCE = 64
PROMISED_SECONDS = 10
"""From being told to stop until the process is gone."""
_FINISH_SECONDS = 4
"""Of these, what requests under way have to finish."""

_OTHER_FILES = 256
"""Files that are not connections: the database, workers, logs, and sockets accepted or closed within one turn."""
_FEWEST = 16

log = structlog.stdlib.get_logger("arbiter.serve")


def run(settings: Settings, say: Callable[[str], None], beside: Callable[[str], list[Companion]] | None = None) -> int:
    """Serve until interrupted; the exit status. ``beside``: what runs as long, given the service's address."""
    if settings.is_exposed and settings.authentication == "open":
        say(f"{settings.host} can be reached from elsewhere: set ARBITER_AUTHENTICATION=required, or HOST=127.0.0.1")
        return 1
    logs.configure(settings)
    _end_in_order()
    sys.setswitchinterval(_SWITCH_SECONDS)
    listening = _listen(settings, say)
    if listening is None:
        return 1
    own = EmbeddedPostgres(settings.data_dir, say=say) if settings.database_url is None else None
    companions: list[Companion] = []
    try:
        url = own.start() if own is not None else settings.database_url
        if own is not None:
            own.watch()
        settings = settings.model_copy(update={"database_url": url})
        first = prepare(settings, say) and own is not None
        _welcome(settings, listening.getsockname()[1], say)
        if settings.simulation_worker == "beside":
            companions.append(Companion("app.service.background", settings.model_dump_json()))
        if beside is not None:
            companions += beside(_address(settings.host, listening.getsockname()[1]))
        for companion in companions:
            companion.start()
        fills = first and settings.examples == "on" and settings.authentication == "open"
        Server(create_app(settings, companions), fill=fills).run(sockets=[listening])
    except EmbeddedError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()
        for companion in companions:
            companion.close()
        if own is not None:
            own.stop()
    return 0


class Server(uvicorn.Server):
    """Ends within ``PROMISED_SECONDS`` of being told to: requests may finish, then solving is given up, then what waits
    for the decision log is written. Should anything hold out, the process says where it hangs and ends all the same."""

    def __init__(self, app: FastAPI, *, fill: bool = False) -> None:
        """``fill``: begin with examples, sent as anybody could once it listens."""
        limits = _limits(app.state.services.of(Settings))
        protocol = cast(type[asyncio.Protocol], partial(BulkProtocol, among=Connections(limits)))
        super().__init__(
            uvicorn.Config(
                app, http=protocol, loop="asyncio", lifespan="on", log_config=None, access_log=False,
                server_header=False, date_header=True, proxy_headers=False, backlog=_ACCEPTED_AT_ONCE,
                timeout_graceful_shutdown=_FINISH_SECONDS + 1, timeout_keep_alive=round(limits.idle),
            )
        )  # fmt: skip
        self._app = app
        self._fill = fill
        signal.signal(signal.SIGHUP, self.handle_exit)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. An event loop accepts in one turn as many as it lets wait; more may wait than be accepted at once."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(_BACKLOG)
        if self._fill and sockets:
            threading.Thread(target=_filled, args=(sockets[0].getsockname()[:2],), name="examples", daemon=True).start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end; told again, don't wait for requests."""
        faulthandler.dump_traceback_later(PROMISED_SECONDS - 0.5, exit=True)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for requests, for as long as is promised."""
        give_up = threading.Thread(target=self._app.state.services.of(Dispatcher).close, name="give-up", daemon=True)
        timer = asyncio.get_running_loop().call_later(_FINISH_SECONDS, give_up.start)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()


def within_files(connections: int) -> int:
    """At most ``connections``, and no more than the files that this process may open leave room for."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections if files == resource.RLIM_INFINITY else max(_FEWEST, min(connections, files - _OTHER_FILES))


def _limits(settings: Settings) -> ConnectionLimits:
    wanted = settings.max_connections
    if (room := within_files(wanted)) < wanted:
        log.warning("fewer connections: the limit of open files is too low", connections=room, wanted=wanted)
    return ConnectionLimits(
        connections=room, head=settings.head_timeout, body=settings.body_timeout, idle=settings.idle_timeout,
        answer=settings.answer_timeout, untaken=settings.answers_memory_bytes,
    )  # fmt: skip


def _end_in_order() -> None:
    """Being told to stop unwinds like Ctrl-C, so that the database is stopped as well."""
    for signalled in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signalled, signal.default_int_handler)


def _listen(settings: Settings, say: Callable[[str], None]) -> socket.socket | None:
    """Take the port first: a taken one is said before anything is set up."""
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
        # Connections inherit it. An event loop only sees to it for sockets it made itself, and without it every
        # answer waits 40 ms for the acknowledgement of its own headers.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        say(f"can't listen on {settings.host}:{settings.port}: {error.strerror or error}; set HOST or PORT")
        return None


def _filled(address: tuple[str, int]) -> None:
    """Send the examples. What can't be sent is missing from the first look, and nothing else."""

    def send(method: str, path: str, body: bytes, media: str) -> None:
        connection = HTTPConnection(*address, timeout=_EXAMPLE_SECONDS)
        try:
            connection.request(method, path, body, {"Content-Type": media})
            answer = connection.getresponse()
            if answer.status >= 400:
                raise OSError(f"{method} {path}: {answer.status} {answer.read(500)!r}")
        finally:
            connection.close()

    try:
        fill(send)
    except (OSError, HTTPException) as error:
        log.warning("the examples could not all be stored", error=str(error))


def prepare(settings: Settings, say: Callable[[str], None]) -> bool:
    """Migrate, and store the example in an empty service: whether it was. A database that is away only costs what needs
    it."""
    try:
        return migrated(settings)
    except Unavailable as error:
        say(f"{error.detail}: serving what needs no database until it is back (/readyz)")
        threading.Thread(target=_migrate_later, args=(settings,), daemon=True).start()
        return False


def _migrate_later(settings: Settings) -> None:
    while True:
        time.sleep(_RETRY_SECONDS)
        try:
            migrated(settings)
        except Unavailable:
            continue
        log.info("the database is back and migrated")
        return


def migrated(settings: Settings) -> bool:
    """Whether nothing was there before. Raises Unavailable."""
    assert settings.database_url is not None
    database = Database(settings.database_url, settings)
    try:
        database.migration_state()
        migrate(settings.database_url)
        return _store_example(database, settings)
    finally:
        database.close()


def _store_example(database: Database, settings: Settings) -> bool:
    stored = Configurations(database, settings.configuration_cache_bytes)
    if stored.page(None, 1):
        return False
    request = msgspec.json.decode(EXAMPLE.read_bytes())
    draft = drafted(convert({"engine": request["engine"], **request["configuration"]}, Configuration), None)
    intent = Intent(Preconditions(None, ("*",)), "what an empty service starts with")
    # Another service on it may be faster.
    with acting("service"), suppress(PreconditionFailed), database.session() as session:
        Editor(stored).put(session, NAME, draft, intent)
    return True


def _welcome(settings: Settings, port: int, say: Callable[[str], None]) -> None:
    address = _address(settings.host, port)
    where = EXAMPLE.relative_to(Path.cwd()) if EXAMPLE.is_relative_to(Path.cwd()) else EXAMPLE
    say(f"Arbiter listens on {address}")
    if settings.console == "on":
        say(f"Console:           {address}/")
    say(f"Documentation:     {address}/docs")
    say("Try a decision:")
    say(f"  curl -s {address}/v1/decisions -H 'Content-Type: application/json' -d @{where}")


def _address(host: str, port: int) -> str:
    return f"http://{_shown(host)}:{port}"


def _shown(host: str) -> str:
    """``host`` as a browser on this machine reaches it."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)
    return f"[{reachable}]" if ":" in reachable and not reachable.startswith("[") else reachable
