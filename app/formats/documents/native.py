"""Parts of native documents that are kept as they are: what may be kept, and how an export puts it back."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, cast

from app.base.documents import Path
from app.solver.check import MAX_DEPTH
from app.solver.stopping import safe_point

Document = dict[str, Any]


def unkeepable(value: Any) -> str | None:
    """Why ``value`` can't be part of a configuration; None where it can. Without recursion."""
    pending: list[tuple[Any, int]] = [(value, 1)]
    while pending:
        one, depth = pending.pop()
        if depth > MAX_DEPTH:
            return f"nested deeper than {MAX_DEPTH} levels"
        if isinstance(one, dict):
            safe_point()
            pending += [(inner, depth + 1) for inner in cast(Document, one).values()]
        elif isinstance(one, list):
            pending += [(inner, depth + 1) for inner in cast(list[Any], one)]
        elif isinstance(one, int) and not -(2**63) <= one < 2**63:
            return "an integer past 64 bits"
        elif isinstance(one, float) and not isfinite(one):
            return "a number that is not finite"
    return None


def merged(made: Document, kept: Mapping[str, Any], at: Path = ()) -> list[Path]:
    """Put ``kept`` back into ``made``, in place. Items of lists that both have come after those of ``made``; of
    anything else that both have ``made`` holds. Returns where it does although they differ."""
    differing: list[Path] = []
    pending: list[tuple[Document, Mapping[str, Any], Path]] = [(made, kept, at)]
    while pending:
        into, more, here = pending.pop()
        for key, value in more.items():
            known = into.get(key)
            if known is None:
                into[key] = value
            elif isinstance(known, dict) and isinstance(value, dict):
                into[key] = inner = dict(cast(Document, known))
                pending.append((inner, cast(Document, value), (*here, key)))
            elif isinstance(known, list) and isinstance(value, list):
                listed = cast(list[Any], known)
                into[key] = [*listed, *(one for one in cast(list[Any], value) if one not in listed)]
            elif known != value:
                differing.append((*here, key))
    return differing
