"""A real service for tests: ``arbiter serve`` in a process of its own, on a port of its own."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.mortal import mortal

ROOT = Path(__file__).parents[2]
ADDRESS = re.compile(r"http://[0-9.]+:[0-9]+")


@dataclass(frozen=True, slots=True)
class Live:
    """``said``: its lines until it was up."""

    address: str
    said: list[str]
    process: subprocess.Popen[str]

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


@contextmanager
def serving(database_url: str, data_dir: Path, **environment: str) -> Generator[tuple[str, list[str]]]:
    """The address of a running service, and the lines that it said until it was up."""
    with running(database_url, data_dir, **environment) as live:
        yield live.address, live.said


@contextmanager
def running(database_url: str, data_dir: Path, *words: str, cwd: Path = ROOT, **environment: str) -> Generator[Live]:
    """A running service, started with ``words``; ended, unless it is by then."""
    given = {"DATABASE_URL": database_url, "DATA_DIR": str(data_dir), "PORT": "0"}
    process = started(*words, cwd=cwd, **(given | environment))
    assert process.stdout is not None
    try:
        said = welcome(process)
        found = ADDRESS.search("\n".join(said))
        assert found is not None, f"it said only {said}"
        yield Live(found[0], said, process)
    finally:
        process.terminate()
        process.stdout.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def started(*words: str, cwd: Path = ROOT, **environment: str) -> subprocess.Popen[str]:
    """``arbiter serve``, its standard output a pipe, as under a supervisor or before ``tee``."""
    return mortal(
        [sys.executable, Path(sys.executable).with_name("arbiter"), "serve", *words], signal.SIGTERM,
        cwd=cwd, env=environment_of(environment), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def welcome(process: subprocess.Popen[str], seconds: float = 60.0) -> list[str]:
    """The lines that a service says until it is up, or has ended.

    Raises TimeoutError when it is not up after ``seconds``; then it is killed.
    """
    assert process.stdout is not None
    deadline = time.monotonic() + seconds
    said = b""
    while not (said.endswith(b"\n") and b"curl" in said):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            process.kill()
            raise TimeoutError(f"it is not up after {seconds:.0f} s and said only {said.decode()!r}")
        chunk = os.read(process.stdout.fileno(), 65536)
        if not chunk:
            break
        said += chunk
    return said.decode().splitlines()


def environment_of(changes: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without what would reach the service or help it, and with ``changes``."""
    reaching = ("HOST", "PORT", "DATA_DIR", "DATABASE_URL", "WORKERS", "PYTHONUNBUFFERED")
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("ARBITER_") and name not in reaching
    }
    return kept | {"ARBITER_SIMULATION_WORKER": "elsewhere", "ARBITER_EXAMPLES": "off"} | dict(changes)
