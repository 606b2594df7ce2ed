"""What a queue uses beside what is promised to it, and what it has above that, in its engine's own words.

All amounts are those of ``POST /v1/shares``, in whole units. Kueue and YuniKorn say themselves what is above; for KAI
and YTsaurus it is the use that the answer states less the promise that it states.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.console.api import Json

_MOST = 12


class Words(NamedTuple):
    """``promise``: what an engine calls that which a queue may count on; ``above``: what is used beyond it."""

    promise: str
    above: str


WORDS = {
    "kueue": Words("nominal", "Borrowed"),
    "kai": Words("deserved", "Over quota"),
    "yunikorn": Words("guaranteed", "Over guaranteed"),
    "ytsaurus": Words("strong guarantee", "Above guarantee"),
}
_PROMISED = {"kueue": "fair_share", "kai": "deserved", "yunikorn": "guaranteed", "ytsaurus": "strong_guarantee"}


class Use(NamedTuple):
    """One resource. ``promised``: None where nothing is stated or it is unlimited; ``share``: the fair share."""

    resource: str
    used: float
    promised: float | None
    above: float
    share: float | str | None


def uses(engine: str, line: Json) -> list[Use]:
    """Resources of a queue's line in the answer that it uses or that are promised to it."""
    promised = line.get(_PROMISED[engine], {})
    share = line.get("fair_share", {})
    found: list[Use] = []
    for resource in dict.fromkeys((*promised, *line.get("usage", ()))):
        used, due = line["usage"].get(resource, 0), _number(promised, resource)
        if used or due:
            found.append(Use(resource, used, due, _above(engine, line, resource, due), share.get(resource)))
    return found[:_MOST]


def _above(engine: str, line: Json, resource: str, promised: float | None) -> float:
    if engine == "kueue":
        return line["borrowed"].get(resource, 0)
    if engine == "yunikorn":  # what is left of the guarantee is below nothing when more is used
        return max(0, -line["remaining"].get(resource, 0))
    return 0 if promised is None else max(0, line["usage"].get(resource, 0) - promised)


def _number(amounts: Mapping[str, Any], resource: str) -> float | None:
    found = amounts.get(resource)
    return found if isinstance(found, int | float) else None
