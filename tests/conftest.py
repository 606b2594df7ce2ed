"""What tests share: one real PostgreSQL for the whole run, a database for each worker, a service on it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url
from starlette.testclient import TestClient

from app.auth.tokens import Tokens
from app.base import logs
from app.base.settings import Settings
from app.db.database import Database, migrate
from app.db.embedded import EmbeddedPostgres
from app.service.main import create_app
from tests.support.bounds import bounded
from tests.support.instead import clock, instead, machine
from tests.support.profiles import met
from tests.support.quick import goes_deeper
from tests.support.strict import pytest_runtest_makereport, pytest_runtest_setup, pytest_runtest_teardown

__all__ = [
    "bounded",
    "clock",
    "instead",
    "machine",
    "met",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
]

TESTS = Path(__file__).parent
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class JsonClient(TestClient):
    """Bodies of bytes are JSON, unless a test says what they are."""

    def request(self, method: str, url: Any, **more: Any) -> Any:
        """As `TestClient`'s."""
        if more.get("content") is not None:
            headers = dict(more.get("headers") or {})
            if not any(name.lower() == "content-type" for name in headers):
                more["headers"] = {**headers, "Content-Type": "application/json"}
        return super().request(method, url, **more)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pictures", action="store_true", help="keep a picture of every page in dist/screenshots")
    parser.addoption(
        "--quick", action="store_true", help="what says within minutes whether a change is sound: what `make test` runs"
    )
    parser.addoption(
        "--beyond-quick", action="store_true", help="leave out what `make test` runs and would be the same"
    )


WHOLE, PARTLY = ("unit", "api", "console"), ("vectors", "properties")
"""Rooms of quick tests, but for what is slow there: those that run as they always do, and those that mostly replay a
selection or try few examples."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether the room has no quick tests; None: others decide."""
    room = collection_path.parent == TESTS and collection_path.is_dir()
    return (room and collection_path.name not in WHOLE + PARTLY and config.getoption("--quick")) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is slow, or what is not, as the options say."""
    runs = dict.fromkeys(items, True)
    if config.getoption("--quick"):
        runs = {item: item.get_closest_marker("slow") is None for item in items}
    elif config.getoption("--beyond-quick"):
        runs = {item: not _is_quick(item) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if not runs[item]])
    items[:] = [item for item in items if runs[item]]


def _is_quick(item: pytest.Item) -> bool:
    """Whether it runs among the quick tests as it always does."""
    return (
        isinstance(item, pytest.Function)
        and any(item.path.is_relative_to(TESTS / room) for room in WHOLE + PARTLY)
        and item.get_closest_marker("slow") is None
        and item.module is not None
        and not goes_deeper(item.module.__name__)
    )


@pytest.fixture(scope="session", autouse=True)
def quiet() -> None:
    """Only errors are logged, and shown only of a test that fails. Services answer to the name of test clients."""
    os.environ["ARBITER_ALLOWED_HOSTS"] = "testserver"
    logs.configure(Settings(log_level="error"))


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[str]:
    """The URL of a PostgreSQL that all workers of this run share; the first starts it, the last stops it."""
    base = tmp_path_factory.getbasetemp()
    run = sha256(str(base if worker_id == "master" else base.parent).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"arbiter-tests-{run}"
    server = EmbeddedPostgres(folder, settings=FAST)
    yield server.start()
    server.stop()
    if not (folder / "postgres" / "postmaster.pid").exists():
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that PostgreSQL's account can reach: pytest shuts its own to others whenever some run starts."""
    folder = Path(tempfile.mkdtemp(prefix="arbiter-test-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def set_up() -> Iterator[Path]:
    """The data folder of an embedded PostgreSQL that has every table and doesn't run."""
    folder = Path(tempfile.mkdtemp(prefix="arbiter-test-"))
    server = EmbeddedPostgres(folder, settings=FAST)
    migrate(server.start())
    server.stop()
    (folder / "postgres" / "server.log").unlink()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def data_folder(open_folder: Path, set_up: Path) -> Path:
    """A data folder of this test's own where PostgreSQL need not be set up first, which takes a second."""
    data = open_folder / "data"
    subprocess.run(["cp", "-a", set_up, data], check=True)  # with the accounts that own its files
    return data


@pytest.fixture(scope="session")
def new_database(server_url: str, worker_id: str) -> Callable[..., str]:
    """Makes databases, empty ones or copies of ``template``; each call gives the URL of another one. They go with their
    server: dropping one takes a checkpoint."""
    url = make_url(server_url)
    made: list[str] = []

    def run(statement: str, *names: str) -> None:
        with psycopg.connect(host=str(url.query["host"]), user=url.username, autocommit=True) as connection:
            named = sql.SQL(statement).format(*map(sql.Identifier, names))  # pyright: ignore[reportArgumentType]
            connection.execute(named)

    def make(template: str = "template1") -> str:
        made.append(f"test_{worker_id}_{len(made)}")
        run("create database {} template {}", made[-1], template)
        return url.set(database=made[-1]).render_as_string(hide_password=False)

    return make


@pytest.fixture(scope="session")
def migrated_database(new_database: Callable[..., str]) -> Callable[[], str]:
    """Makes databases with every table: copies of one, which takes a tenth of the time of migrating each."""
    template = new_database()
    migrate(template)
    return lambda: new_database(make_url(template).database)


@pytest.fixture(scope="session")
def migrated_url(migrated_database: Callable[[], str]) -> str:
    """The database of this worker, with every table."""
    return migrated_database()


EMPTY = """
do $$
declare
    one text;
    filled text;
    has boolean;
begin
    for one in select quote_ident(tablename) from pg_tables
        where schemaname = 'public' and tablename <> 'alembic_version'
    loop
        execute 'select exists (select from ' || one || ')' into has;
        if has then filled := concat_ws(', ', filled, one); end if;
    end loop;
    if filled is not null then execute 'truncate ' || filled || ' cascade'; end if;
end $$
"""
"""Truncating makes a new file for every table and index, which takes long for all of them: only for those with rows."""


@pytest.fixture
def database_url(migrated_url: str) -> str:
    """The database of this worker, every table empty."""
    with psycopg.connect(migrated_url.replace("+psycopg", "", 1), autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")  # else the audit log refuses
        connection.execute(EMPTY)
    return migrated_url


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Settings of a service on this worker's database."""
    return Settings(database_url=database_url, data_dir=tmp_path, workers=0)


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    """Connections to this worker's database."""
    with closing(Database(settings.database_url, settings)) as made:
        yield made


@pytest.fixture
def service(settings: Settings) -> Iterator[TestClient]:
    """A running service, called in process."""
    with JsonClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def guarded(settings: Settings) -> Iterator[TestClient]:
    """A running service that asks who calls; its client is an administrator."""
    with JsonClient(
        create_app(settings.model_copy(update={"authentication": "required"})), raise_server_exceptions=False
    ) as client:
        app: Any = client.app
        secret, _ = app.state.services.of(Tokens).create("admin", ["admin"], None)
        client.headers["Authorization"] = f"Bearer {secret}"
        yield client


@pytest.fixture
def homeless() -> Iterator[TestClient]:
    """A running service without any database."""
    with JsonClient(create_app(Settings(database_url=None, workers=0)), raise_server_exceptions=False) as client:
        yield client
