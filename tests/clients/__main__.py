"""``python -m tests.clients [lint] [typescript] [go] [java]``: the OpenAPI document in others' hands.

Lints the document, and generates a client in each language, compiles it and runs it against a live service: put a
configuration, decide, read the log. All of them without an argument. What this machine has no toolchain for, or can't
fetch, is skipped, and said; everything else must work. Nothing is written into the checkout.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from app.embedded import EmbeddedPostgres
from tests.live import ROOT, environment_of, serving

OPENAPI = ROOT / "openapi"
REDOCLY = "@redocly/cli@2.77.0"
GO_GENERATOR = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
_QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "npm_config_update_notifier": "false"}
_SERVICE = {"ARBITER_AUTHENTICATION": "required", "ARBITER_LOG_LEVEL": "warning", "WORKERS": "0"}
_SECONDS = 600
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Skipped(Exception):
    """Something that is not ours is missing; the text says what."""


class Failed(Exception):
    """The text is what the program said."""


def run(folder: Path, *command: str, fetching: bool = False, given: Mapping[str, str] | None = None) -> str:
    """What the program says. ``fetching``: its failure only says that something can't be had from here."""
    program = shutil.which(command[0])
    if program is None:
        raise Skipped(f"there is no {command[0]}")
    try:
        done = subprocess.run(
            [program, *command[1:]], cwd=folder, env=environment_of(_QUIET | dict(given or {})), check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise (Skipped if fetching else Failed)(f"{' '.join(command)}: no end after {_SECONDS} s") from None
    if done.returncode and fetching:
        last = (done.stdout.strip().splitlines() or ["it says nothing"])[-1]
        raise Skipped(f"`{' '.join(command)}` can't fetch what it needs: {last[:200]}")
    if done.returncode:
        raise Failed(f"{' '.join(command)}\n{done.stdout[-6000:]}")
    return done.stdout


def lint(folder: Path, _: dict[str, str]) -> str:
    """Redocly's strict rules, and our own on top."""
    run(folder, "npx", "--yes", REDOCLY, "--version", fetching=True)
    run(folder, "npx", "--yes", REDOCLY, "lint", "--config", "redocly.yaml", "openapi.json")
    return "the document passes"


def typescript(folder: Path, service: dict[str, str]) -> str:
    """Types by openapi-typescript, calls by openapi-fetch."""
    here = folder / "clients" / "typescript"
    run(here, "npm", "ci", "--no-audit", "--no-fund", fetching=True)
    run(here, "npm", "run", "generate")
    run(here, "npm", "run", "compile")
    return run(here, "npm", "run", "--silent", "try", given=service)


def go(folder: Path, service: dict[str, str]) -> str:
    """A client by oapi-codegen."""
    here = folder / "clients" / "go"
    (here / "client").mkdir()
    run(here, "go", "mod", "download", fetching=True)
    run(here, "go", "install", GO_GENERATOR, fetching=True, given={"GOBIN": str(here / "bin"), "GOFLAGS": ""})
    run(here, str(here / "bin" / "oapi-codegen"), "-config", "oapi-codegen.yaml", "../../openapi.json")
    run(here, "go", "build", "-o", "try.bin", "./try")
    return run(here, str(here / "try.bin"), given=service)


def java(folder: Path, service: dict[str, str]) -> str:
    """A client by openapi-generator, as a plugin of Maven."""
    here = folder / "clients" / "java"
    run(here, "javac", "-version")
    run(here, "mvn", *_MAVEN, "dependency:resolve", "dependency:resolve-plugins", fetching=True)
    run(here, "mvn", *_MAVEN, "compile")
    return run(here, "mvn", *_MAVEN, "exec:java", given=service)


_MAVEN = ("--quiet", "--batch-mode", "--no-transfer-progress", "-Dstyle.color=never")
STEPS: dict[str, Callable[[Path, dict[str, str]], str]] = {
    "lint": lint, "typescript": typescript, "go": go, "java": java,
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
        shutil.copytree(OPENAPI, folder, ignore=shutil.ignore_patterns("python", "node_modules", "build", "target"))
        with service(Path(temporary)) as reach:
            for name in names:
                began = time.monotonic()
                try:
                    said = _COLOUR.sub("", STEPS[name](folder, reach)).strip().splitlines()
                    outcome = said[-1] if said else "done"
                except Skipped as reason:
                    outcome = f"skipped: {reason}"
                except Failed as error:
                    outcome, failed = f"FAILED: {error}", True
                sys.stdout.write(f"{name}: {outcome} ({time.monotonic() - began:.0f} s)\n")
                sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(STEPS)))
