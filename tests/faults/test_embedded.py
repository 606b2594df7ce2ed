"""The embedded PostgreSQL when things go wrong around it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from app.base import logs
from app.base.settings import Settings
from app.db.embedded import EmbeddedError, EmbeddedPostgres

FAST = ("fsync=off",)


@pytest.fixture
def empty(open_folder: Path) -> Iterator[Path]:
    """A data folder that is not there yet; whatever still runs in it afterwards is stopped."""
    data = open_folder / "data"
    yield data
    if (data / "postgres" / "postmaster.pid").exists():
        last = EmbeddedPostgres(data)
        last.start()
        last.stop()


@pytest.fixture
def folder(empty: Path, data_folder: Path) -> Path:
    """One with a server that was set up and doesn't run."""
    assert empty == data_folder
    return data_folder


def answers(url: str) -> bool:
    try:
        with psycopg.connect(url.replace("+psycopg", "", 1), connect_timeout=2) as connection:
            return connection.execute("select 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def run(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url.replace("+psycopg", "", 1), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def server_pid(folder: Path) -> int:
    return int((folder / "postgres" / "postmaster.pid").read_text().splitlines()[0])


def test_it_is_postgresql_18_and_keeps_its_data(empty: Path) -> None:
    server = EmbeddedPostgres(empty, settings=FAST)
    url = server.start()
    assert str(run(url, "show server_version")[0][0]).startswith("18.")
    run(url, "create table kept as select 7 as n")
    server.stop()
    assert not answers(url)
    assert run(server.start(), "select n from kept") == [(7,)]
    server.stop()


def test_it_listens_on_no_network(folder: Path) -> None:
    server = EmbeddedPostgres(folder, settings=FAST)
    assert run(server.start(), "show listen_addresses") == [("",)]
    assert os.getpriority(os.PRIO_PROCESS, server_pid(folder)) > min(os.getpriority(os.PRIO_PROCESS, 0), 18)
    server.stop()


def test_two_services_share_one_server_and_the_last_stops_it(folder: Path) -> None:
    first, second = EmbeddedPostgres(folder, settings=FAST), EmbeddedPostgres(folder)
    url = first.start()
    pid = server_pid(folder)
    assert second.start() == url
    assert server_pid(folder) == pid
    first.stop()
    assert answers(url)
    second.stop()
    assert not answers(url)


def test_services_that_start_together_get_one_server(empty: Path) -> None:
    code = (
        "import sys, pathlib; from app.db.embedded import EmbeddedPostgres as E\n"
        "e = E(pathlib.Path(sys.argv[1])); print(e.start(), flush=True); sys.stdin.read(); e.stop()"
    )
    command = [sys.executable, "-c", code, str(empty)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    services = [subprocess.Popen(command, **pipes) for _ in range(3)]  # pyright: ignore[reportArgumentType]
    urls = {service.stdout.readline().strip() for service in services if service.stdout}
    assert len(urls) == 1
    assert answers(url := urls.pop())
    for service in services:
        service.communicate("")
        assert service.returncode == 0
    assert not answers(url)


def test_a_service_that_was_killed_holds_nobody_up(folder: Path) -> None:
    code = (
        "import sys, pathlib, time; from app.db.embedded import EmbeddedPostgres as E\n"
        "print(E(pathlib.Path(sys.argv[1])).start(), flush=True); time.sleep(60)"
    )
    killed = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    url = killed.stdout.readline().strip()
    killed.kill()
    killed.communicate()
    assert answers(url), "its server outlives it"
    following = EmbeddedPostgres(folder)
    assert following.start() == url
    following.stop()
    assert not answers(url), "and stops with the next service"


def test_a_server_that_was_killed_is_started_again(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    run(server.start(), "create table kept as select 7 as n")
    os.kill(server_pid(folder), signal.SIGKILL)
    following = EmbeddedPostgres(folder)
    assert run(following.start(), "select n from kept") == [(7,)]
    following.stop()
    server.stop()


def back(url: str, seconds: float = 60.0) -> bool:
    """Whether it answers again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answers(url):
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def watching() -> Iterator[Callable[[Path], tuple[EmbeddedPostgres, str]]]:
    """Starts servers that are watched, with their URLs; each is stopped at the end."""
    started: list[EmbeddedPostgres] = []

    def start(folder: Path) -> tuple[EmbeddedPostgres, str]:
        started.append(EmbeddedPostgres(folder))
        url = started[-1].start()
        started[-1].watch()
        return started[-1], url

    yield start
    for server in started:
        server.stop()


def kill(folder: Path) -> None:
    pid = server_pid(folder)
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
        assert time.monotonic() < end
        time.sleep(0.01)


Watching = Callable[[Path], tuple[EmbeddedPostgres, str]]


def test_a_watched_server_that_was_killed_is_back_in_seconds(
    folder: Path, watching: Watching, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure(Settings(log_format="json"))
    said = ""
    try:
        began = time.monotonic()
        server, url = watching(folder)
        soon = 5.0 + 5 * (time.monotonic() - began)  # 5 s, on a machine where nothing takes long
        run(url, "create table kept as select 7 as n")
        for times in (1, 2):
            kill(folder)
            assert back(url, soon)
            assert run(url, "select n from kept") == [(7,)]
            end = time.monotonic() + 60
            while (said := said + capsys.readouterr().err).count("is back") < times:
                assert time.monotonic() < end, said
                time.sleep(0.01)
        server.stop()
    finally:
        logs.configure(Settings(log_level="error"))
    assert not answers(url), "told to stop it stays away"
    said += capsys.readouterr().err
    assert (said.count("has ended"), said.count("is back")) == (2, 2)


def test_two_services_that_watch_one_server_start_it_once(folder: Path, watching: Watching) -> None:
    (first, url), (second, same) = watching(folder), watching(folder)
    assert url == same
    kill(folder)
    assert back(url)
    first.stop()
    assert answers(url), "the other one still uses it"
    second.stop()
    assert not answers(url)


def test_a_server_is_watched_where_its_sockets_have_a_folder_of_their_own(
    open_folder: Path, watching: Watching
) -> None:
    data = open_folder / ("long" * 25)
    server, url = watching(data)
    kill(data)
    assert back(url)
    server.stop()


def test_a_server_that_cannot_be_started_again_is_tried_again(folder: Path, watching: Watching) -> None:
    _, url = watching(folder)
    control = folder / "postgres" / "global" / "pg_control"
    hidden = control.rename(folder / "hidden")
    kill(folder)
    assert not back(url, 2)
    hidden.rename(control)
    assert back(url)


def test_a_stale_pid_file_that_names_another_process_is_cleared(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    server.start()
    server.stop()
    stale = ["1", str(folder / "postgres"), "1", "5432", str(folder / "postgres"), "", "0 0", "ready"]
    (folder / "postgres" / "postmaster.pid").write_text("\n".join(stale) + "\n")
    assert answers(server.start())
    server.stop()


def test_an_interrupted_setup_is_begun_again(empty: Path) -> None:
    half = empty / "postgres.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    server = EmbeddedPostgres(empty, settings=FAST)
    assert answers(server.start())
    server.stop()


def test_a_path_too_long_for_a_socket_works(open_folder: Path) -> None:
    server = EmbeddedPostgres(open_folder / ("long" * 25), settings=FAST)
    url = server.start()
    assert answers(url)
    again = EmbeddedPostgres(open_folder / ("long" * 25))
    assert again.start() == url
    again.stop()
    server.stop()


def test_a_path_with_spaces_and_umlauts_works(open_folder: Path) -> None:
    server = EmbeddedPostgres(open_folder / "my dätä 'here'", settings=FAST)
    assert answers(server.start())
    server.stop()


def test_a_folder_with_something_else_in_it_is_left_alone(empty: Path) -> None:
    (empty / "postgres").mkdir(parents=True)
    (empty / "postgres" / "thesis.txt").write_text("years of work")
    with pytest.raises(EmbeddedError, match="not empty"):
        EmbeddedPostgres(empty).start()
    assert (empty / "postgres" / "thesis.txt").read_text() == "years of work"


def test_a_folder_that_cannot_be_made_is_said(open_folder: Path) -> None:
    (open_folder / "file").write_text("")
    with pytest.raises(EmbeddedError, match="DATA_DIR"):
        EmbeddedPostgres(open_folder / "file" / "data").start()


def test_a_server_that_cannot_start_says_why(empty: Path) -> None:
    with pytest.raises(EmbeddedError, match="max_connections"):
        EmbeddedPostgres(empty, settings=("max_connections=none",)).start()
    working = EmbeddedPostgres(empty, settings=FAST)
    assert answers(working.start())
    working.stop()


def test_stopping_what_never_started_is_harmless(empty: Path) -> None:
    EmbeddedPostgres(empty).stop()
    assert not empty.exists()
