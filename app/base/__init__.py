"""What was installed: its name, the folders that come with the code and are no code, and how it starts processes."""

import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

_APP = Path(__file__).parents[1]

DISTRIBUTION = "arbiter-preemption"
"""What this is called where packages come from: `arbiter` is somebody else's there. The command is `arbiter`."""


@cache
def shipped(name: Literal["examples", "migrations"]) -> Path:
    """The folder ``name``: inside the package where it was installed (the wheel puts it there), else in the checkout.

    Raises `FileNotFoundError` where neither is: the installation is broken.
    """
    for folder in (_APP / name, _APP.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the folder {name} is missing: it comes with Arbiter, beside or inside {_APP}")


@cache
def installed_version() -> str:
    """The version of what runs; `0` where it runs from a folder and was not installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "0"


def python() -> list[str]:
    """The interpreter, as a command begins: what is imported is what is installed, never what happens to lie in the
    folder that the service was started in (``-P``)."""
    return [sys.executable, "-P"]
