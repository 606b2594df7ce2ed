"""Which running tasks an ask may preempt at all, by fence, priorities, guarantees, and on which nodes; what its search
comes to."""

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.solver.compiled import ROOTLESS
from app.solver.engines.yunikorn.configuration import Amounts
from app.solver.engines.yunikorn.guarantees import SURE, Allowance, Need, claim_of, levels, over_any, over_guarantee
from app.solver.engines.yunikorn.overlay import Held, Overlay, Request
from app.solver.engines.yunikorn.state import Bools, CompiledState, Ints
from app.solver.model.decision import Change, Explanation
from app.solver.question import safe_point

T = TypeVar("T")
NEVER = -(2**62)
ALWAYS = 2**62
"""Priority ceilings of a leaf: nobody there, and everybody whatever their priority."""
Protection = Callable[[int], str | None]
"""Why a leaf's guarantee keeps its tasks from the ask; None when it does not."""


class Reach(msgspec.Struct, frozen=True):
    """How far an ask may reach. ``fence``: the queue below which victims are looked for; ``at_limit``: the fence is
    there because that queue can't take the ask; ``claim``: see ``claim_of`` (None with the released rules, which
    judge by what is left of the guarantee); ``ceiling``: by queue, the highest priority of a candidate; ``excluded``:
    by leaf, why it gives nobody."""

    fence: int
    at_limit: bool
    claim: int | None
    ceiling: list[int]
    excluded: dict[int, str]


def path_limits(state: CompiledState, queue: int) -> dict[int, Amounts]:
    """By queue of the path: the effective limit, the smallest of its own and its ancestors' (root: the nodes). Not to
    be changed."""
    if (known := state.lazy.limits.get(queue)) is not None:
        return known
    limits: dict[int, Amounts] = {}
    tightest: Amounts = {}
    for q in reversed(state.configuration.paths[queue]):
        for r, amount in (state.limit[q] or {}).items():
            tightest[r] = min(amount, tightest.get(r, amount))
        limits[q] = dict(tightest)
    state.lazy.limits[queue] = limits
    return limits


def reach(overlay: Overlay, request: Request) -> Reach:
    """Fence and priority ceilings (YuniKorn: findPreemptionFenceRoot, findEligiblePreemptionVictims)."""
    fence, at_limit, priorities = _fence(overlay, request)
    queues = overlay.state.configuration
    lawful = queues.rules.keeps_guarantees
    claim = claim_of(overlay, request) if lawful else None
    extent = Reach(fence, at_limit, claim, [NEVER] * len(queues.tree), {})
    protection = _by_law(overlay, request, claim) if lawful else _as_shipped(overlay, request)
    _descend(overlay, request, protection, priorities, extent)
    return extent


def _fence(overlay: Overlay, request: Request) -> tuple[int, bool, dict[int, int]]:
    """Up from the asking leaf to the first queue that is fenced, or can't take the ask, or is the root.

    Usage that is being preempted counts in full here, and a queue at its limit is a fence: victims elsewhere
    would not help.
    """
    queues = overlay.state.configuration
    limits = path_limits(overlay.state, request.queue)
    priority = request.priority
    priorities: dict[int, int] = {}
    for q in queues.paths[request.queue]:
        settings = queues.settings[q]
        priority = settings.priority_offset if settings.priority_fence else priority + settings.priority_offset
        priorities[q] = priority
        if queues.tree.parent[q] == ROOTLESS or settings.preemption_policy == "fence":
            return q, False, priorities
        if any(overlay.used(q, r) + request.amounts.get(r, 0) > most for r, most in limits[q].items()):
            return q, True, priorities
    raise AssertionError("a path ends at the root")


def _descend(
    overlay: Overlay, request: Request, protection: Protection, priorities: dict[int, int], extent: Reach
) -> None:
    """Down from the fence. A branch with a priority fence is eligible as a whole or not at all; otherwise the
    offset of every queue on the way is taken off. Fences of preemption don't matter on the way down."""
    queues = overlay.state.configuration
    todo = [(extent.fence, priorities[extent.fence], False)]
    while todo:
        q, priority, fenced = todo.pop()
        if q == request.queue:
            continue
        if queues.leaf[q]:
            disabled = queues.settings[q].preemption_policy == "disabled"
            why_not = "preemption-disabled" if disabled else protection(q)
            if why_not is not None:
                extent.excluded[q] = why_not
            else:
                extent.ceiling[q] = ALWAYS if fenced else priority
            continue
        for child in queues.tree.children[q]:
            if child in priorities:
                todo.append((child, priorities[child], fenced))
                continue
            settings = queues.settings[child]
            if not settings.priority_fence:
                todo.append((child, priority - settings.priority_offset, fenced))
            elif settings.priority_offset <= priority:
                todo.append((child, priority, True))
            else:
                extent.excluded.update(
                    (leaf, "priority-fence") for leaf in queues.tree.under(child) if queues.leaf[leaf]
                )


def _by_law(overlay: Overlay, request: Request, claim: int | None) -> Protection:
    """Laws 4 and 5."""
    queues = overlay.state.configuration
    shared = frozenset(queues.paths[request.queue])

    def of(leaf: int) -> str | None:
        if claim is None or claim in queues.paths[leaf]:
            return "no-claim"
        return None if over_guarantee(overlay, request, leaf, shared) else "within-guarantee"

    return of


def _as_shipped(overlay: Overlay, request: Request) -> Protection:
    """What remains of the guarantee is unknown, or negative in some resource, whatever the ask needs."""
    level = levels(overlay.state.configuration, request.queue)
    return lambda leaf: None if over_any(level[leaf], overlay.slack) else "within-guarantee"


def candidates(overlay: Overlay, request: Request, extent: Reach) -> Ints:
    """Canonical indices of the tasks that the ask may preempt."""
    return np.flatnonzero(_mask(overlay, request, extent))


def _mask(overlay: Overlay, request: Request, extent: Reach) -> Bools:
    state = overlay.state
    ceiling = np.array(extent.ceiling, dtype=np.int64)
    mask = state.eligible & (state.priority <= ceiling[state.queue])
    if overlay.gone is not None:
        mask &= ~overlay.gone
    mask &= state.shares_a_type(request.amounts)
    if state.configuration.rules.spares_application and request.application in state.queue_of:
        mask &= state.workload != state.application(request.application)
    return mask


Keeper = Callable[[int], str | None]
"""The rule that keeps a task, by its canonical index; None for a candidate."""


def fates(overlay: Overlay, request: Request, extent: Reach) -> Iterator[tuple[int, str]]:
    """Every task that is no candidate, and the rule that keeps it; for explanations."""
    of = keeper(overlay, request, extent)
    return ((task, rule) for task in range(overlay.state.task_count) if (rule := of(task)) is not None)


def keeper(overlay: Overlay, request: Request, extent: Reach) -> Keeper:
    """The rule that keeps each task, worked out when it is asked for."""
    state = overlay.state
    shares = state.shares_a_type(request.amounts)
    inside = set(state.configuration.tree.under(extent.fence))
    spared = state.application(request.application) if state.configuration.rules.spares_application else None

    def of(task: int) -> str | None:
        q = int(state.queue[task])
        if q == request.queue:
            return "asking-queue"
        if q not in inside:
            return "outside-the-fence"
        return extent.excluded.get(q) or of_itself(task) or against(task, q)

    def of_itself(task: int) -> str | None:
        if state.tasks[task].required_node is not None:
            return "bound-to-its-node"
        if state.tasks[task].state != "running" or (overlay.gone is not None and overlay.gone[task]):
            return "already-leaving"
        return "on-no-node" if state.tasks[task].node is None else None

    def against(task: int, q: int) -> str | None:
        if not shares[task]:
            return "no-common-resource"
        if int(state.priority[task]) > extent.ceiling[q]:
            return "higher-priority"
        return "same-application" if int(state.workload[task]) == spared else None

    return of


RESERVATION_AGE = (2 * 60 * 60 + 2) * 10**6
"""Microseconds after which a reservation of a lower priority may be cancelled (YuniKorn: 2 x 60 min + 2 s)."""
IMPOSSIBLE = 2**31


class Pool(msgspec.Struct, frozen=True):
    """``usable``: by node. ``cancelled``: reservations of others that give way, on whatever node; ``held``: those that
    don't, on nodes that would be usable without them."""

    usable: Bools
    cancelled: list[tuple[int, Held]]
    held: list[tuple[int, Held]]


def pool(overlay: Overlay, request: Request, now: int) -> Pool:
    """Nodes that may be preempted on: schedulable, big enough, not kept for another ask."""
    state = overlay.state
    usable = state.schedulable.copy()
    for r, amount in request.needs.items():
        usable &= column(state.capacity, r) >= amount
    cancelled: list[tuple[int, Held]] = []
    closed: list[tuple[int, Held]] = []
    for node, holders in overlay.held.items():
        if any(held.is_of(request) for held in holders):
            continue
        weak = [(node, held) for held in holders if _gives_way(held, request, now)]
        cancelled += weak
        if usable[node] and not weak:
            usable[node] = False
            closed.append((node, holders[0]))
    return Pool(usable, cancelled, closed)


def among_feasible(request: Request, usable: Bools) -> Bools:
    """Of the nodes those that pass the ask's predicates."""
    if request.feasible is None:
        return usable
    return usable & np.isin(np.arange(len(usable)), sorted(request.feasible))


def only(usable: Bools, nodes: list[int]) -> Bools:
    """Of the nodes those that are among ``nodes``."""
    among = np.zeros_like(usable)
    among[nodes] = usable[nodes]
    return among


def _gives_way(held: Held, request: Request, now: int) -> bool:
    return (
        not held.required
        and not held.triggered
        and held.priority < request.priority
        and now - held.created > RESERVATION_AGE
    )


def column(table: Ints, resource: int) -> Ints:
    """One resource of a nodes x resources table; zeros for one that no node has."""
    return table[:, resource] if resource < table.shape[1] else np.zeros(len(table), dtype=table.dtype)


def fits(overlay: Overlay, request: Request) -> Bools:
    """By node: whether the ask fits into what is free now (missing is 0, negative is 0)."""
    room: Bools | None = None
    for r, amount in request.needs.items():
        enough = column(overlay.free, r) >= amount
        room = enough if room is None else np.logical_and(room, enough, out=room)
    return np.ones(len(overlay.state.node_names), dtype=bool) if room is None else room


def at_least(
    state: CompiledState, candidates: Ints, needs: Sequence[tuple[int, Ints, Bools | None]]
) -> NDArray[np.int64]:
    """By node: a number of victims that no choice among ``candidates`` can undercut; IMPOSSIBLE when none can do.

    ``needs``: (resource, missing amount by node, which candidates help or None for all). Sums are in doubles
    with a margin: a bound may be too low, never too high.
    """
    size = len(state.node_names)
    bound = np.zeros(size, dtype=np.int64)
    for resource, missing, helps in needs:
        chosen = candidates if helps is None else candidates[helps]
        gain = state.column(resource)[chosen].astype(np.float64)
        total = np.bincount(state.node[chosen], weights=gain, minlength=size)
        short = missing.astype(np.float64) * (1 - SURE)
        count = np.ceil(short / gain.max(initial=1.0)).clip(0, IMPOSSIBLE).astype(np.int64)
        bound = np.maximum(bound, count)
        bound[total < short] = IMPOSSIBLE
    return bound


def in_order(
    state: CompiledState, nodes: Ints, bound: NDArray[np.int64], search: Callable[[int], tuple[int, T] | None]
) -> Iterator[tuple[int, int, T]]:
    """(value, node, what was found) by value, then node name, searching a node only when its turn may have come.

    ``search`` gives a node's exact value, never below ``bound``, or None when the node is out.
    """
    rank = state.node_rank
    order = nodes[np.lexsort((rank[nodes], bound[nodes]))].tolist()
    waiting: list[tuple[int, int, int, T]] = []
    for node in order:
        safe_point()
        turn = (int(bound[node]), int(rank[node]))
        while waiting and waiting[0][:2] < turn:
            value, _, ready, victims = heapq.heappop(waiting)
            yield value, ready, victims
        result = search(node)
        if result is not None:
            heapq.heappush(waiting, (result[0], int(rank[node]), node, result[1]))
    while waiting:
        value, _, ready, victims = heapq.heappop(waiting)
        yield value, ready, victims


def best_for_placing(overlay: Overlay, room: Bools) -> int | None:
    """Of the nodes with room the one that plain scheduling takes: the least used in vcore and memory, then by name
    (YuniKorn: fair). None: there is none."""
    state, use = overlay.state, np.where(room, overlay.use(), np.inf)
    first = int(use.argmin()) if len(use) else None
    if first is None or not room[first]:
        return None
    if state.in_order:
        return first
    least = np.flatnonzero(use == use[first])
    return int(least[state.node_rank[least].argmin()])


Kind = Literal["admit", "preempt", "wait"]

REASONS: dict[str, tuple[str, str]] = {
    "too-many-applications": ("ApplicationLimit", "as many applications run as may, and this one does not run yet"),
    "user-limit": ("NotEnoughUserQuota", "its user or group may have no more; preemption is not tried for that"),
    "preemption-off": ("PreemptionDisabled", "preemption is off in this partition"),
    "never-preempts": (
        "PreemptionPreconditionsFailed", "the ask's own policy is Never: it does not preempt others",
    ),
    "already-triggered": (
        "PreemptionPreconditionsFailed", "the ask has triggered preemption before and waits for its outcome",
    ),
    "too-young": ("PreemptionPreconditionsFailed", "the ask is younger than its queue's preemption.delay"),
    "checked-lately": ("PreemptionPreconditionsFailed", "the last preemption check was less than 15 s ago"),
    "attempts-exhausted": (
        "PreemptionAttemptsExhausted", "the queue's preemption attempts of this cycle are used up",
    ),
    "queue-guarantees": (
        "QueueGuaranteesCheckFailed", "preemption is for queues below their guarantee, and this ask's is not",
    ),
    "no-candidates": ("NoPreemptionVictims", "nobody inside the fence may be preempted for this ask"),
    "no-node": ("PreemptionDoesNotHelp", "no node can make room for the ask"),
    "nodes-held": ("PreemptionDoesNotHelp", "every node that could make room for the ask is held for another"),
    "no-victims": ("PreemptionDoesNotHelp", "no victim would help the ask"),
    "shortfall": ("PreemptionShortfall", "preemption would help, but what it frees is short of the ask"),
    "resources-releasing": ("ResourcesReleasing", "what the ask needs is being released already"),
    "required-node": ("NoVictimForRequiredNode", "nothing that may be preempted makes room on the required node"),
    "required-node-barred": (
        "NoRoomOnRequiredNode", "the required node has room, or could make some, that the ask may not have",
    ),
    "required-node-released": ("ResourcesReleasing", "preemption for the required node was triggered before"),
}  # fmt: skip
"""By stage that failed: the condition's reason, and what it means."""


class Found(msgspec.Struct, frozen=True):
    """A node and the tasks to preempt for it, in order; or ``failed``, a key of REASONS."""

    node: int = -1
    victims: list[int] = []
    failed: str | None = None


Common = tuple[CompiledState, Hashable, tuple[int, ...], Sequence[Need]]
"""What asks have in common that find the same victims, one after the other: a state, who takes them, the ceilings of
the reach, and what limits lack."""


class Alone:
    """Victims each of whom makes room alone, one on a node, by the nodes' names. ``of``: an ask, and what others have
    in common with it that take the next one; ``given``: the last one, until it is evicted; ``signs``: what
    the reach of an ask that takes one hangs on while they alone evict."""

    __slots__ = ("_among", "_enough", "_on", "_order", "given", "of", "signs", "state")

    def __init__(self, state: CompiledState, of: tuple[Request, Common], among: Ints, enough: Bools) -> None:
        self.state, self.of, self.given = state, of, list[int]()
        self.signs: tuple[int | None, list[bool]] | None = None
        self._among, self._enough, self._on = among, enough, state.node[among]
        where = np.unique(self._on[enough])
        self._order = iter(where[state.node_rank[where].argsort()].tolist())

    def next(self, allowance: Allowance) -> Found | None:
        """The first of the next node, by opposite age; None: that is not plain."""
        state, node = self.state, next(self._order, None)
        if node is None:
            return None
        there = np.flatnonzero(self._on == node)
        tasks: list[int] = self._among[there].tolist()
        created = [-state.created(task) for task in tasks]
        first = created.index(min(created))
        self.given: list[int] | None = [tasks[first]]
        return Found(node, self.given) if self._enough[there[first]] and allowance.lets(tasks[first]) else None


class Outcome(msgspec.Struct, frozen=True):
    """What became of one allocation ask: success, or a failure with its reason.

    ``victims``: canonical task indices in the order of taking; ``failed``: a key of REASONS; ``detail``: the facts;
    ``cancelled``: reservations of others that give way; ``attempted``: it used up one of its queue's attempts;
    ``holds``: it waits, and keeps the node that it requires from others."""

    kind: Kind
    node: int | None = None
    victims: list[int] = []
    failed: str | None = None
    detail: str = ""
    cancelled: list[tuple[int, Held]] = []
    attempted: bool = False
    holds: bool = False

    @property
    def reason(self) -> str:
        """Why it waits, in a sentence."""
        text = REASONS[self.failed or ""][1]
        return f"{text}: {self.detail}" if self.detail else text

    @staticmethod
    def wait(failed: str, detail: str = "", cancelled: list[tuple[int, Held]] | None = None) -> "Outcome":
        """Nothing to do now, and why."""
        return Outcome("wait", failed=failed, detail=detail, cancelled=cancelled or [])


class Silent:
    """What a search tells of itself, at each moment that matters, with what it has at hand: here nobody asked why.

    This forgets it, at the cost of a call; ``explain.Recorder`` keeps it. Neither answers, so that explaining can't
    change what is decided."""

    __slots__ = ()
    on = False

    def searching(self, overlay: Overlay, request: Request, within: Reach | None, among: Sequence[int] | Ints) -> None:
        """The candidates are known: within the reach of the ask, or (None) on the node that it requires."""

    def opened(self, pool: Pool) -> None:
        """It is known which nodes may be preempted on."""

    def forbidden(self, tasks: Ints) -> None:
        """Law 2 keeps these candidates, each by itself."""

    def searched(self, node: int, taken: Sequence[int], victims: Sequence[int] | None) -> None:
        """A node was searched: who was taken, and who of them is needed; None: it can't make room."""

    def decided(self, overlay: Overlay, request: Request, outcome: Outcome) -> None:
        """What becomes of one allocation ask; ``overlay`` as it was before."""

    def step(self, rule: str, detail: str) -> None:
        """Something that is not part of the search."""

    def blocked(self, blocker: str, changes: Iterable[Change]) -> None:
        """What the ask waits for, and what would let it in."""

    def explanation(self, overlay: Overlay, outcomes: Sequence[tuple[Request, Outcome]]) -> Explanation | None:
        """Everything told about an ask, None when nobody asked."""


SILENT = Silent()


_LISTED = 5


def counted(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def joined(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``; of many the first few."""
    shown = list(names[:_LISTED])
    if len(names) > _LISTED:
        shown.append(f"{len(names) - _LISTED} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
