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
from typing import Any, TextIO

from tests.mutants.operators import Mutant
from tests.mutants.recordings import Reached

_MEMORY = 6 * 2**30
"""Bytes of data that tests of a mutant may hold: one that collects without end is killed by it."""
_PYTEST = [
    "-p", "tests.mutants.reach", "-p", "tests.mutants.forks", "-p", "no:cacheprovider", "-n", "0", "--tb=no",
    "-o", "faulthandler_timeout=0", "-o", "faulthandler_exit_on_timeout=false",
]  # fmt: skip
"""Without the limit of a single test: here it is of the whole run, and watched tests are slow."""
_START = 40.0
"""Seconds that a run of its own may take beside its tests; and these may take FACTOR times as long as on the code as it
is."""
_FACTOR = 5.0
_PATIENCE = 20.0
"""Seconds for a run to clean up after itself once it was told to stop."""


def may_notice(mutant: Mutant, tests: Sequence[Reached]) -> list[Reached]:
    """The tests that run the changed lines, then those whose processes may; all, where it happens at import,
    those that run something of the module first."""
    if mutant.function is None:
        return sorted(tests, key=lambda test: mutant.path not in test.lines)
    first, last = mutant.lines
    run = [test for test in tests if any(first <= line <= last for line in test.lines.get(mutant.path, ()))]
    return run + [test for test in tests if test.processes and test not in run]


class Workshop:
    """Runs tests in a copy of the tree."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "arbiter"
        self._scratch = folder / "tmp"
        self._chosen = folder / "chosen"
        self._reached = folder / "reached.json"
        self._scratch.mkdir()
        self._forks: tuple[TextIO, TextIO] | None = None

    def record(self, files: Sequence[str], limit: float) -> dict[str, Any]:
        """Run the tests of ``files`` and tell what each did (see ``reach``). Raises RuntimeError where none ran."""
        said = self._pytest(files, {"MUTANTS_RECORD": str(self._reached)}, limit)
        if not self._reached.exists():
            raise RuntimeError(f"the tests of the code as it is did not come to an end:\n{said[1]}")
        found = json.loads(self._reached.read_text())
        self._reached.unlink()
        return found

    @contextmanager
    def collected(self, tests: Sequence[str]) -> Generator[None]:
        """While this is open, ``tests`` are collected, and forks of that process meet mutants (see ``forks``)."""
        self._chosen.write_text("\n".join(tests))
        there, here = os.pipe(), os.pipe()
        process = self._start(
            _files(tests),
            {"MUTANTS_CHOSEN": str(self._chosen), "MUTANTS_FORKS": f"{there[0]},{here[1]}"},
            pass_fds=(there[0], here[1]),
            stdout=subprocess.DEVNULL,
        )
        os.close(there[0])
        os.close(here[1])
        with os.fdopen(there[1], "w", buffering=1) as requests, os.fdopen(here[0]) as answers:
            if answers.readline():
                self._forks = (requests, answers)
            try:
                yield
            finally:
                self._forks = None
                self._clear(process)

    def verdict(self, mutant: Mutant, tests: Sequence[Reached]) -> str:
        """``killed``, ``survived`` or ``timed out``: ``tests``, in order, up to the first failure.

        One that only waited is met again: the machine may have been busy.
        """
        module = self.root / mutant.path
        original = module.read_text()
        self._chosen.write_text("\n".join(test.name for test in tests))
        try:
            self._write(module, mutant.source)  # for the processes that a test starts
            said = self._meet(mutant, tests)
            if said == "waits":
                said = self._meet(mutant, tests)
        finally:
            self._write(module, original)
        return {"waits": "timed out", "endless": "timed out"}.get(said, said)

    def _meet(self, mutant: Mutant, tests: Sequence[Reached]) -> str:
        if mutant.function is not None and self._forks is not None:
            requests, answers = self._forks
            asked = {"path": mutant.path, "source": mutant.source, "line": mutant.function[1]}
            print(json.dumps(asked | {"tests": [(test.name, test.seconds) for test in tests]}), file=requests)
            said = answers.readline().strip()
            self._sweep()
            if said not in ("", "stale"):
                return said
        names = [test.name for test in tests]
        limit = _START + _FACTOR * sum(test.seconds for test in tests)
        code, _ = self._pytest([*_files(names), "-x"], {"MUTANTS_CHOSEN": str(self._chosen)}, limit)
        if code is None:
            return "waits"
        return "survived" if code == 0 else "killed"

    def _write(self, module: Path, source: str) -> None:
        """A compiled file knows its source by second and size, which two mutants may share: away with it."""
        module.write_text(source)
        Path(cache_from_source(str(module))).unlink(missing_ok=True)

    def _pytest(self, arguments: Sequence[str], environment: Mapping[str, str], limit: float) -> tuple[int | None, str]:
        """Exit code (None: not in time) and what it said last."""
        process = self._start(arguments, environment, stdout=subprocess.PIPE)
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

    def _start(
        self, arguments: Sequence[str], environment: Mapping[str, str], *, stdout: int, pass_fds: Sequence[int] = ()
    ) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *_PYTEST, *arguments],
            cwd=self.root, text=True, start_new_session=True, pass_fds=pass_fds,
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.STDOUT,
            env=_inherited() | {"PYTHONPATH": str(self.root), "TMPDIR": str(self._scratch)} | dict(environment),
        )  # fmt: skip
        _limit_memory(process.pid)
        return process

    def _clear(self, process: subprocess.Popen[str]) -> None:
        """Nothing that a run started outlives it."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._sweep()

    def _sweep(self) -> None:
        """Stop databases, which have sessions of their own, and remove temporary files."""
        for file in self._scratch.rglob("postmaster.pid"):
            with suppress(ProcessLookupError, ValueError, IndexError, OSError):
                os.kill(int(file.read_text().splitlines()[0]), signal.SIGQUIT)
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(exist_ok=True)
        self._scratch.chmod(0o755)


def _files(tests: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name.split("::")[0] for name in tests))


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
            if (checkout / path).is_file() or (checkout / path).is_symlink():
                (folder / "arbiter" / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(checkout / path, folder / "arbiter" / path, follow_symlinks=False)
        yield Workshop(folder)
