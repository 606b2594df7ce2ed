"""Recorded decisions of KAI Scheduler and YuniKorn as objects of a cluster, and what they did to their victims."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from app.solver.model.configuration import EngineName
from tests.cluster.recorded import kai, yunikorn
from tests.cluster.recorded.made import Inexpressible, Recorded
from tests.vectors.files import HERE, read

_MAKERS: dict[EngineName, tuple[Callable[[dict[str, Any], str], Recorded], tuple[str, ...]]] = {
    "kai": (kai.recorded, ("decision", "decision-defaults", "fresh-decision", "minimal-pairs")),
    "yunikorn": (yunikorn.recorded, ("preempt", "fresh-preempt")),
}


def expressible(engine: EngineName, left_out: Counter[str] | None = None) -> Iterator[Recorded]:
    """All committed decisions that objects can say. ``left_out``: counts the others, by what can't be said."""
    make, files = _MAKERS[engine]
    number = 0
    for file in files:
        for vector in read(HERE / engine / f"{file}.jsonl.gz"):
            try:
                made = make(vector, f"v{number:03}-")
            except Inexpressible as why:
                if left_out is not None:
                    left_out[str(why)] += 1
            else:
                number += 1
                yield made
