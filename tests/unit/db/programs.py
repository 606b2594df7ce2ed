"""PostgreSQL's programs as the embedded server starts them, in this process: what they leave in files and locks is
real. A server is the lock that it inherits."""

import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import psycopg
import pytest

from app.db import embedded
from tests.support.instead import Instead, Machine

BEGAN = 1000.0


class Programs:
    """``ran``: commands, without what they are run by; ``how``: what each was given; ``fails``: what a program says."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []
        self.how: list[dict[str, Any]] = []
        self.fails: dict[str, str | OSError] = {}
        self.slept: list[float] = []
        self.connected: list[dict[str, Any]] = []
        self.statements: list[str] = []
        self.databases: set[str] = set()
        self.refuses = ""
        self.tick: Callable[[], None] = lambda: None
        """What happens while somebody sleeps."""
        self.ready = True
        self._now = BEGAN
        self._alive: dict[str, int] = {}

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Self:
        """In the place of processes, connections and clocks."""
        clock = SimpleNamespace(monotonic=lambda: self._now, sleep=self._sleep)
        connecting = SimpleNamespace(connect=self._connect, OperationalError=psycopg.OperationalError)
        process = SimpleNamespace(run=self._run, DEVNULL=-3, STDOUT=-2)
        Instead(monkeypatch)(
            embedded,
            time=clock,
            psycopg=connecting,
            subprocess=process,
            find_spec=lambda _: SimpleNamespace(origin="/programs/module.py"),
        )
        Machine(monkeypatch).is_used_by(1000)
        return self

    @property
    def did(self) -> list[str]:
        """Which programs ran, ``pg_ctl`` by what it was to do."""
        return [command[1] if command[0] == "pg_ctl" else command[0] for command in self.ran]

    def end(self, folder: Path) -> None:
        """The server in a data folder ends, and tidies up."""
        self.die(folder)
        (folder / "postmaster.pid").unlink()

    def die(self, folder: Path) -> None:
        """The server in a data folder ends at once."""
        os.close(self._alive.pop(str(folder)))

    def announce(self, folder: Path, sockets: str, state: str = "ready   ") -> None:
        """As a server does in line 5 and 8 of its postmaster.pid."""
        lines = ["71", str(folder), "1760000000", "5432", sockets, "", "  123  4", state]
        (folder / "postmaster.pid").write_text("\n".join(lines) + "\n")

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._now += 20.0
        self.tick()

    def _run(self, command: Sequence[str], **how: Any) -> Any:
        by = command.index(next(word for word in command if "/pginstall18/bin/" in word))
        words = [Path(command[by]).name, *command[by + 1 :]]
        self.ran.append(words)
        self.how.append({"by": [*command[:by]], **how})
        said = self.fails.get(self.did[-1], "")
        if isinstance(said, OSError):
            raise said
        if said:
            how["stdout"].write(f"{said}\n".encode())
            return SimpleNamespace(returncode=1)
        folder = Path(words[words.index("-D") + 1])
        if self.did[-1] == "initdb":
            (folder / "PG_VERSION").write_text("18\n")
        elif self.did[-1] == "start":
            self._start(folder, words, how["pass_fds"])
        else:
            self.end(folder)
        return SimpleNamespace(returncode=0)

    def _start(self, folder: Path, words: list[str], inherited: tuple[int, ...]) -> None:
        assert not (folder / "postmaster.pid").exists(), "a server does not start where one seems to run"
        (alive,) = inherited
        assert os.fstat(alive).st_ino == os.stat(folder.parent / "postgres.alive").st_ino
        self._alive[str(folder)] = os.dup(alive)
        options = words[words.index("-o") + 1]
        self.announce(folder, options.rpartition("unix_socket_directories=")[2], "ready" if self.ready else "starting")

    def _connect(self, **named: Any) -> Any:
        self.connected.append(named)
        if self.refuses:
            raise psycopg.OperationalError(self.refuses)
        return _Connection(self)


class _Connection:
    """One to the database ``postgres``."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def execute(self, statement: Any, parameters: Sequence[str] = ()) -> Any:
        """Looks for a database, or makes one."""
        if parameters:
            known = (1,) if parameters[0] in self._programs.databases else None
            return SimpleNamespace(fetchone=lambda: known)
        self._programs.statements.append(statement.as_string(None))
        self._programs.databases.add("arbiter")
        return None


def locked(path: Path) -> bool:
    """Whether somebody holds a lock on a file, alone or with others."""
    with path.open("rb+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
