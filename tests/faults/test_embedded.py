"""The embedded PostgreSQL when things go wrong around it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from app.embedded import EmbeddedError, EmbeddedPostgres

FAST = ("fsync=off",)


@pytest.fixture
def folder(open_folder: Path) -> Iterator[Path]:
    """A data folder; whatever still runs in it afterwards is stopped."""
    data = open_folder / "data"
    yield data
    if (data / "postgres" / "postmaster.pid").exists():
        last = EmbeddedPostgres(data)
        last.start()
        last.stop()


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


def test_it_is_postgresql_18_and_keeps_its_data(folder: Path) -> None:
    server = EmbeddedPostgres(folder, settings=FAST)
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


def test_services_that_start_together_get_one_server(folder: Path) -> None:
    code = (
        "import sys, pathlib; from app.embedded import EmbeddedPostgres as E\n"
        "e = E(pathlib.Path(sys.argv[1])); print(e.start(), flush=True); sys.stdin.read(); e.stop()"
    )
    command = [sys.executable, "-c", code, str(folder)]
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
        "import sys, pathlib, time; from app.embedded import EmbeddedPostgres as E\n"
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


def test_a_stale_pid_file_that_names_another_process_is_cleared(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    server.start()
    server.stop()
    stale = ["1", str(folder / "postgres"), "1", "5432", str(folder / "postgres"), "", "0 0", "ready"]
    (folder / "postgres" / "postmaster.pid").write_text("\n".join(stale) + "\n")
    assert answers(server.start())
    server.stop()


def test_an_interrupted_setup_is_begun_again(folder: Path) -> None:
    half = folder / "postgres.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    server = EmbeddedPostgres(folder, settings=FAST)
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


def test_a_folder_with_something_else_in_it_is_left_alone(folder: Path) -> None:
    (folder / "postgres").mkdir(parents=True)
    (folder / "postgres" / "thesis.txt").write_text("years of work")
    with pytest.raises(EmbeddedError, match="not empty"):
        EmbeddedPostgres(folder).start()
    assert (folder / "postgres" / "thesis.txt").read_text() == "years of work"


def test_a_folder_that_cannot_be_made_is_said(open_folder: Path) -> None:
    (open_folder / "file").write_text("")
    with pytest.raises(EmbeddedError, match="DATA_DIR"):
        EmbeddedPostgres(open_folder / "file" / "data").start()


def test_a_server_that_cannot_start_says_why(folder: Path) -> None:
    with pytest.raises(EmbeddedError, match="max_connections"):
        EmbeddedPostgres(folder, settings=("max_connections=none",)).start()
    working = EmbeddedPostgres(folder, settings=FAST)
    assert answers(working.start())
    working.stop()


def test_stopping_what_never_started_is_harmless(folder: Path) -> None:
    EmbeddedPostgres(folder).stop()
    assert not folder.exists()
