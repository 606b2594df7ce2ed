"""What decisions find out about a compiled state that no decision changes: kept with it, for the next one.

Filled as needed. Two threads may fill the same entry, with the same value.
"""

from dataclasses import dataclass, field

from app.solver.engines.kai.compile.resources import Share

Key = tuple[int, int, int, str, int]
"""Place of a job among jobs: priority (negated), rank by gang, creation, id, number."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the pods of a state come to. Lists by job, pod, or resource and node; shares by queue, branches included.

    ``active``: pods that run; ``used``: those being released too. ``columns``: what each pod takes from a node, shares
    of a GPU left out; ``idle`` and ``free`` likewise leave them out. ``homeless``: running pods without a node, as job
    and place in it.
    """

    active: list[int]
    used: list[int]
    columns: list[tuple[tuple[int, int], ...]]
    free: list[list[int]]
    idle: list[list[int]]
    allocated: list[Share]
    fixed: list[Share]
    homeless: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Layout:
    """What follows from the nodes of a state alone, whoever runs there. Lists by node.

    ``by_name``: nodes in order of name, ``place``: the place of each there; ``usable``: what all nodes that take pods
    offer; ``open``: whether a pod without any constraint may run there; ``allowed``: the same by constraint.
    """

    by_name: list[int]
    place: list[int]
    everywhere: frozenset[int]
    has_cpu: list[bool]
    has_gpu: list[bool]
    usable: Share
    open: list[bool]
    allowed: dict[str, list[bool]]


class Victim:
    """A job, or what is left of one, that may be taken from.

    ``tasks``: its active pods, in the order in which they are taken. ``holds``: what those hold that run.
    ``others``: whether it has pods besides, which keep it in the order although nothing can be taken.
    """

    __slots__ = ("holds", "job", "key", "others", "tasks")

    def __init__(self, job: int, key: Key, tasks: list[int], holds: Share, *, others: bool) -> None:
        self.job = job
        self.key = key
        self.tasks = tasks
        self.holds = holds
        self.others = others


@dataclass(slots=True)
class Resident:
    """By job of the state: its pods in order, and the job as a victim before anything happened to it."""

    baseline: Baseline | None = None
    layout: Layout | None = None
    order: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    victims: dict[int, Victim] = field(default_factory=dict[int, Victim])
