"""Running other people's programs: with a time limit, with patience for registries, and saying what is missing."""

import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from tests.support.live import environment_of

_QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "npm_config_update_notifier": "false"}
MOST_SECONDS = 300
PAUSES = (5.0, 20.0)
"""Seconds between attempts to fetch: a registry may be away for a moment."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NUMBERS = re.compile(r"[0-9]+(\.[0-9]+)*")


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
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=MOST_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command)}: no end after {MOST_SECONDS} s") from None
    said = _COLOUR.sub("", done.stdout)
    if done.returncode:
        raise Failed(f"{' '.join(command)}\n{said[-6000:]}")
    return said


def fetch(folder: Path, *command: str) -> None:
    """Run what asks a registry: again, after a pause, when it fails. Raises Failed."""
    for pause in PAUSES:
        try:
            run(folder, *command)
        except Failed:
            time.sleep(pause)
        else:
            return
    try:
        run(folder, *command)
    except Failed as error:
        raise Failed(f"can't fetch what is needed, tried {len(PAUSES) + 1} times: {error}") from None


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
