"""``--set PATH=VALUE``: fields of a configuration to set, on the command line."""

import json
from typing import Annotated, Any

from cyclopts import Parameter

from app.solver.model.problems import InvalidInput, Problem

Fields = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative=(),
        help="With this field of the configuration, as queues.research.quota.gpu.guaranteed=12; may be given several "
        "times.",
    ),
]


def fields_of(words: list[str]) -> dict[str, Any]:
    """Each path with its value: JSON, or the text itself. Raises InvalidInput."""
    return dict(map(_field, words))


def _field(word: str) -> tuple[str, Any]:
    path, equals, text = word.partition("=")
    if not equals or not path:
        raise InvalidInput([Problem(pointer="", detail=f"--set {word!r}: a path, = and a value are expected")])
    try:
        return path, json.loads(text)
    except ValueError:
        return path, text
