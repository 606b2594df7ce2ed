"""A copy of the tree, in which modules are changed and tests run; the checkout itself is never touched."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import Literal, NamedTuple

Verdict = Literal["killed", "timed out", "survived"]
_MEMORY = 6 * 2**30
"""Bytes of data that tests of a mutant may hold: one that collects without end is killed by it."""
_OWN_LIMIT = ["-o", "faulthandler_timeout=0", "-o", "faulthandler_exit_on_timeout=false"]
"""The limit here is of the whole run: watched tests are slow."""
_PATIENCE = 20.0
"""Seconds for a run to clean up after itself once it was told to stop."""


class Reached(NamedTuple):
    """What one test did on the code as it is."""

    name: str
    seconds: float
    functions: frozenset[str]
    """``path:first line`` of the functions that it called."""
    passed: bool


class Workshop:
    """Runs tests in a copy of the tree."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "arbiter"
        self._scratch = folder / "tmp"
        self._chosen = folder / "chosen"
        self._reached = folder / "reached.json"
        self._scratch.mkdir()

    def record(self, arguments: Sequence[str], limit: float) -> list[Reached]:
        """Run the tests that ``arguments`` name and tell what each reached. Raises RuntimeError where none ran."""
        said = self._pytest([*arguments, "--tb=no"], {"MUTANTS_RECORD": str(self._reached)}, limit)
        if not self._reached.exists():
            raise RuntimeError(f"the tests of the code as it is did not come to an end:\n{said[1]}")
        found = json.loads(self._reached.read_text())
        self._reached.unlink()
        return [
            Reached(name, one["seconds"], frozenset(one["functions"]), one["passed"]) for name, one in found.items()
        ]

    def verdict(self, path: str, source: str, tests: Sequence[str], limit: float) -> Verdict:
        """Run ``tests`` (names, in order) up to the first failure, with the module at ``path`` saying ``source``."""
        module = self.root / path
        original = module.read_text()
        self._chosen.write_text("\n".join(tests))
        files = list(dict.fromkeys(name.split("::")[0] for name in tests))
        try:
            self._write(module, source)
            code, _ = self._pytest([*files, "-x", "--tb=no"], {"MUTANTS_CHOSEN": str(self._chosen)}, limit)
        finally:
            self._write(module, original)
        if code is None:
            return "timed out"
        return "survived" if code == 0 else "killed"

    def _write(self, module: Path, source: str) -> None:
        """A compiled file knows its source by second and size, which two mutants may share: away with it."""
        module.write_text(source)
        Path(cache_from_source(str(module))).unlink(missing_ok=True)

    def _pytest(self, arguments: Sequence[str], environment: Mapping[str, str], limit: float) -> tuple[int | None, str]:
        """Exit code (None: not in time) and what it said last."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.mutants.reach",
            "-p",
            "no:cacheprovider",
            "-n",
            "0",
            *_OWN_LIMIT,
        ]
        process = subprocess.Popen(
            [*command, *arguments], cwd=self.root, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=_inherited() | {"PYTHONPATH": str(self.root), "TMPDIR": str(self._scratch)} | dict(environment),
        )  # fmt: skip
        _limit_memory(process.pid)
        code: int | None = None
        said = ""
        try:
            said = process.communicate(timeout=limit)[0]
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
        finally:
            self._clear(process)
        return code, "\n".join(said.splitlines()[-20:])

    def _clear(self, process: subprocess.Popen[str]) -> None:
        """Nothing that a run started outlives it: a database, for one, has a session of its own."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for file in self._scratch.rglob("postmaster.pid"):
            with suppress(ProcessLookupError, ValueError, IndexError, OSError):
                os.kill(int(file.read_text().splitlines()[0]), signal.SIGQUIT)
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(exist_ok=True)
        self._scratch.chmod(0o755)


def _inherited() -> dict[str, str]:
    """The environment without what would reach the service under test."""
    ours = ("CI", "HOST", "PORT", "DATA_DIR", "DATABASE_URL")
    return {name: value for name, value in os.environ.items() if name not in ours}


def _limit_memory(pid: int) -> None:
    if sys.platform == "linux":
        resource.prlimit(pid, resource.RLIMIT_DATA, (_MEMORY, _MEMORY))


@contextmanager
def workshop(checkout: Path) -> Generator[Workshop]:
    """A workshop with the files of ``checkout`` as they are now, without those that git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=checkout, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL's account looks into the folder for temporary files
        for path in filter(None, listed):
            if (checkout / path).is_file():
                (folder / "arbiter" / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(checkout / path, folder / "arbiter" / path)
        yield Workshop(folder)
