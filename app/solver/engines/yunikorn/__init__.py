"""YuniKorn: guaranteed queues, preemption fences and nodes (yunikorn-core be3bb487 and its preemption design)."""

from typing import Any, Final

from app.solver.engine import Entitlement, Facts
from app.solver.engines.yunikorn.configuration import RELEASES
from app.solver.model.configuration import Queue
from app.solver.model.yunikorn import Queue as Block


def _offset(queue: Queue) -> dict[str, Any]:
    """YuniKorn: ``priority.offset`` shifts the priorities of what waits below a queue."""
    return {"yunikorn": Block(properties={"priority.offset": str(queue.priority)})} if queue.yunikorn is None else {}


FACTS: Final = Facts(
    name="yunikorn", title="YuniKorn", short="YuniKorn", schema="YuniKorn", releases=RELEASES,
    cpu="vcore", places=True, weights=False, offsets_priority=_offset,
    root=Queue(name="root", yunikorn=Block(parent=True)),
    formats="app.formats.yunikorn.system",
    entitlement=Entitlement(word="guaranteed", field="guaranteed", above="Over guaranteed", remaining="remaining"),
)  # fmt: skip
