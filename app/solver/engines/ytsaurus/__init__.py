"""YTsaurus: fair share, starvation and preemption at a node's heartbeat."""

from typing import Final

from app.solver.engine import Entitlement, Facts
from app.solver.engines.ytsaurus.settings import RELEASES

_RESOURCES: Final = frozenset({"cpu", "gpu", "memory", "user_memory", "user_slots", "network"})

FACTS: Final = Facts(
    name="ytsaurus", title="YTsaurus", short="YTsaurus", schema="Ytsaurus", releases=RELEASES, places=True,
    gpu="gpu", resources=_RESOURCES, own_resources=frozenset({"user_slots", "network"}),
    formats="app.formats.ytsaurus.orchid",
    entitlement=Entitlement(word="strong guarantee", field="strong_guarantee", above="Above guarantee"),
)  # fmt: skip
