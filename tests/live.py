"""A real service for tests: ``arbiter serve`` in a process of its own, on a port of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ADDRESS = re.compile(r"http://[0-9.]+:[0-9]+")


@contextmanager
def serving(database_url: str, data_dir: Path, **environment: str) -> Iterator[tuple[str, list[str]]]:
    """The address of a running service, and the lines that it said until it was up."""
    given = {"DATABASE_URL": database_url, "DATA_DIR": str(data_dir), "PORT": "0", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "serve"],
        cwd=ROOT, env=environment_of(given | environment), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        said: list[str] = []
        for line in process.stdout:
            said.append(line.rstrip("\n"))
            if "curl" in line:
                break
        found = _ADDRESS.search("\n".join(said))
        assert found is not None, f"it said only {said}"
        yield found[0], said
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(30)


def environment_of(changes: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without what would reach the service, and with ``changes``."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("ARBITER_") and name not in ("HOST", "PORT", "DATA_DIR", "DATABASE_URL")
    }
    return kept | dict(changes)
