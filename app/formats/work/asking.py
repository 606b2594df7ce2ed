"""What every system's reader of work needs: the cluster it is for, names of queues and resources, ids that are free."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from app.formats.documents.reader import Findings
from app.formats.kubernetes.amounts import Steps
from app.formats.work.pod_sets import Work
from app.formats.work.read import Beside
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.state import Ask


@dataclass(frozen=True, slots=True)
class Planned:
    """One object, as messages name it, and the asks that it became."""

    title: str
    asks: list[Ask]


@dataclass(slots=True)
class Cluster:
    """What work is planned for. ``queue``: the one that all of it goes to, whatever the objects say; ``created_at``:
    since when the asks wait; ``taken``: ids that running and waiting work has, ``running``: those of what runs;
    ``counted``: the resources that queues or nodes have; ``gpus``: MiB of a GPU, by node (KAI); ``dynamic``: queues
    that the work itself makes (YuniKorn)."""

    configuration: Configuration
    beside: Beside
    findings: Findings
    created_at: datetime
    queue: str | None = None
    taken: set[str] = field(default_factory=set[str])
    running: set[str] = field(default_factory=set[str])
    counted: set[str] = field(default_factory=set[str])
    gpus: dict[str, int] = field(default_factory=dict[str, int])
    dynamic: list[Queue] = field(default_factory=list[Queue])

    def free(self, wanted: str) -> str:
        """``wanted``, or the first like it that nobody has; taken from now on."""
        found, number = wanted, 1
        while found in self.taken:
            number += 1
            found = f"{wanted}-{number}"
        self.taken.add(found)
        return found

    @property
    def queues(self) -> dict[str, Queue]:
        """By name."""
        return {queue.name: queue for queue in self.configuration.queues}

    def left_out(self, work: Work, detail: str, *below: str, rule: str = "no-queue") -> None:
        """An object that can't be planned, and why."""
        at = (*work.made.root.at, *below)
        self.findings.add(rule, "error", at, f"{work.title}: {detail}")


def near(names: Iterable[str], most: int = 10) -> str:
    """The names that there are, for a message."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(repr(name) for name in listed[:most]) + more if listed else "none"


def resource_names(configuration: Configuration) -> set[str]:
    """Every resource that some queue of the configuration has a quota of."""
    found: set[str] = set()
    for queue in configuration.queues:
        found.update(queue.quota or ())
        for group in queue.resource_groups or ():
            found.update(group.resources)
            for flavor in group.flavors:
                found.update(flavor.quota)
    return found


def as_counted(requests: Steps, names: Collection[str]) -> Steps:
    """``requests`` as a configuration counts them that knows GPUs by the one name ``gpu``."""
    if "gpu" not in names:
        return requests
    out: Steps = {}
    for name, value in requests.items():
        counted = "gpu" if name.endswith("/gpu") and name not in names else name
        out[counted] = out.get(counted, 0) + value
    return out
