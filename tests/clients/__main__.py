"""``python -m tests.clients [lint] [python] [typescript] [go] [java]``: the OpenAPI document in others' hands.

Lints the document, and generates a client in each language, compiles it and runs it against a live service: put a
configuration, decide, read the log. All of them without an argument. What this machine has no toolchain for is
skipped, and said (with CI=true it fails); everything else must work. What the locks name is fetched, with some
patience. The clients are left in ``dist/clients``; nothing else is written into the checkout.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from app.db.embedded import EmbeddedPostgres
from tests.clients.programs import Failed, Skipped
from tests.clients.steps import go, java, lint, python, typescript
from tests.support.live import ROOT, environment_of, serving

OPENAPI = ROOT / "openapi"
DIST = ROOT / "dist" / "clients"
_SERVICE = {"ARBITER_AUTHENTICATION": "required", "ARBITER_LOG_LEVEL": "warning", "WORKERS": "0"}

STEPS: dict[str, Callable[[Path, dict[str, str], Path], str]] = {
    "lint": lint, "python": python, "typescript": typescript, "go": go, "java": java,
}  # fmt: skip


@contextmanager
def service(folder: Path) -> Generator[dict[str, str]]:
    """A service that asks for tokens, on a PostgreSQL of its own: what a client needs to reach it."""
    server = EmbeddedPostgres(folder / "data", settings=("fsync=off",))
    url = server.start()
    try:
        with serving(url, folder / "data", **_SERVICE) as (address, _):
            secret = _token(url)
            yield {"ARBITER_URL": address, "ARBITER_TOKEN": secret}
    finally:
        server.stop()


def _token(url: str) -> str:
    command = [sys.executable, "-m", "app.cli", "token", "create", "clients", "--scope", "admin"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment_of({"DATABASE_URL": url}), check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def main(names: list[str]) -> int:
    """The exit status: 1 when a step fails."""
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "openapi"
        shutil.copytree(OPENAPI, folder, ignore=shutil.ignore_patterns("__pycache__", "node_modules", "build"))
        with service(Path(temporary)) as reach:
            for name in names:
                began = time.monotonic()
                try:
                    said = STEPS[name](folder, reach, DIST / name).strip().splitlines()
                    outcome = said[-1] if said else "done"
                except Skipped as reason:
                    outcome, failed = f"skipped: {reason}", failed or os.environ.get("CI") == "true"
                except Failed as error:
                    outcome, failed = f"FAILED: {error}", True
                sys.stdout.write(f"{name}: {outcome} ({time.monotonic() - began:.0f} s)\n")
                sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(STEPS)))
