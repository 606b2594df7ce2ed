"""``python -m tests.clients [lint] [typescript] [go] [java]``: the OpenAPI document in others' hands.

Lints the document, and generates a client in each language, compiles it and runs it against a live service: put a
configuration, decide, read the log. All of them without an argument. What this machine has no toolchain for is
skipped, and said; everything else must work. What the locks name is fetched, with some patience. Nothing is written
into the checkout.
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
_QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "npm_config_update_notifier": "false"}
_SERVICE = {"ARBITER_AUTHENTICATION": "required", "ARBITER_LOG_LEVEL": "warning", "WORKERS": "0"}
_SECONDS = 300
_PAUSES = (5.0, 20.0)
"""Seconds between attempts to fetch: a registry may be away for a moment."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Skipped(Exception):
    """Something that is not ours is missing; the text says what."""


class Failed(Exception):
    """The text is what the program said."""


def needs(program: str, least: str, *asked: str) -> None:
    """Raises Skipped where ``program`` is missing, or older than ``least`` by what it says when it is asked."""
    if shutil.which(program) is None:
        raise Skipped(f"there is no {program}; {least} or newer would do")
    said = run(Path.cwd(), program, *asked)
    found = _NUMBERS.search(said)
    if found is None or _parts(found[0]) < _parts(least):
        raise Skipped(f"{program} is {found[0] if found else said.strip()[:80]}; {least} or newer would do")


def run(folder: Path, *command: str, given: Mapping[str, str] | None = None) -> str:
    """What the program says, without colours. Raises Failed."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment_of(_QUIET | dict(given or {})), check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command)}: no end after {_SECONDS} s") from None
    said = _COLOUR.sub("", done.stdout)
    if done.returncode:
        raise Failed(f"{' '.join(command)}\n{said[-6000:]}")
    return said


def fetch(folder: Path, *command: str) -> None:
    """Run what asks a registry: again, after a pause, when it fails. Raises Failed."""
    for pause in _PAUSES:
        try:
            run(folder, *command)
        except Failed:
            time.sleep(pause)
        else:
            return
    try:
        run(folder, *command)
    except Failed as error:
        raise Failed(f"can't fetch what is needed, tried {len(_PAUSES) + 1} times: {error}") from None


def lint(folder: Path, _: dict[str, str]) -> str:
    """Redocly's strict rules, and our own on top."""
    needs("node", "20.19", "--version")
    here = folder / "lint"
    fetch(here, "npm", "ci", "--no-audit", "--no-fund")
    run(here, "npm", "run", "lint")
    return "the document passes"


def typescript(folder: Path, service: dict[str, str]) -> str:
    """Types by openapi-typescript, calls by openapi-fetch."""
    needs("node", "20.19", "--version")
    here = folder / "clients" / "typescript"
    fetch(here, "npm", "ci", "--no-audit", "--no-fund")
    run(here, "npm", "run", "generate")
    run(here, "npm", "run", "compile")
    return run(here, "npm", "run", "--silent", "try", given=service)


def go(folder: Path, service: dict[str, str]) -> str:
    """A client by oapi-codegen."""
    needs("go", "1.24", "version")  # which fetches a newer one where a module asks for it
    here = folder / "clients" / "go"
    (here / "client").mkdir()
    fetch(here, "go", "mod", "download")
    fetch(here, "go", "mod", "download", "-modfile=generator.mod")
    run(here, "go", "tool", "-modfile=generator.mod", "oapi-codegen", "-config", "oapi-codegen.yaml", _DOCUMENT)
    run(here, "go", "build", "-o", "try.bin", "./try")
    return run(here, str(here / "try.bin"), given=service)


def java(folder: Path, service: dict[str, str]) -> str:
    """A client by openapi-generator, as a plugin of Maven."""
    needs("javac", "17", "-version")
    needs("mvn", "3.6.3", "--version")
    here = folder / "clients" / "java"
    fetch(here, "mvn", *_MAVEN, "dependency:resolve", "dependency:resolve-plugins")
    run(here, "mvn", *_MAVEN, "--offline", "compile")
    return run(here, "mvn", *_MAVEN, "--offline", "exec:java", given=service)


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


_DOCUMENT = "../../openapi.json"
_NUMBERS = re.compile(r"[0-9]+(\.[0-9]+)*")
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
                    said = STEPS[name](folder, reach).strip().splitlines()
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
