"""Mutants that no test can tell from the code: each was looked at, and has its reason."""

import tomllib
from pathlib import Path

from tests.mutants.operators import Mutant

FILE = Path(__file__).with_name("equivalent.toml")


def equivalents() -> dict[tuple[str, str, str], str]:
    """Reason by path, line before and line after: told by their text, so that they may move in their module."""
    listed = tomllib.loads(FILE.read_text())["mutant"]
    return {(one["path"], one["before"], one["after"]): one["reason"] for one in listed}


def key(mutant: Mutant) -> tuple[str, str, str]:
    """What an entry names a mutant by."""
    return mutant.path, mutant.before, mutant.after
