"""Goes ahead of the compiled state in a run that nobody watches: usage and priorities, kept up to date change by
change; and rounds whose outcome is plain from these, since quota is there, or nobody's going could make room.

Source: Kueue ``pkg/scheduler`` (flavorassigner, classical preemption), as ``flavors`` and ``preemption`` have it.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import le
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.solver import kubernetes, rounds
from app.solver.compiled import ROOTLESS
from app.solver.engines.kueue.amounts import Amounts
from app.solver.engines.kueue.configuration import CompiledConfiguration
from app.solver.engines.kueue.cycle import may_shrink
from app.solver.engines.kueue.flavors import borrowing_level, may_preempt_while_borrowing, refusals, requests
from app.solver.engines.kueue.nomination import BEST, WORST, Fit, Mode, Suit, preferred, stops_search
from app.solver.engines.kueue.overlay import Usage
from app.solver.engines.kueue.state import NO_PRIORITY, CompiledState, instant, leaving
from app.solver.kubernetes import PODS
from app.solver.model.kueue import FlavorFungibility
from app.solver.model.state import Ask, Workload

_Column = NDArray[np.int64]
_NOWHERE = -1
_MOST_WISHES = 4096


class _Running:
    """What runs. ``queues``: node of its queue; ``shapes``: index of what it uses; ``_was``: where it stood when the
    columns were last taken, -1 where it is another since. Where somebody leaves, the last one takes the place."""

    def __init__(self, loaded: CompiledState) -> None:
        self.workloads = list(loaded.workloads)
        self.places = {workload.id: i for i, workload in enumerate(self.workloads)}
        self.queues = array("q", loaded.queue.tolist())
        self.shapes = array("q", loaded.shape.tolist())
        self._priorities = array("q", loaded.priority.tolist())
        self._was = array("q", range(len(self.workloads)))

    def add(self, workload: Workload, node: int, shape: int) -> None:
        """It runs from now on."""
        self.places[workload.id] = len(self.workloads)
        self.workloads.append(workload)
        self.queues.append(node)
        self.shapes.append(shape)
        self._priorities.append(workload.priority)
        self._was.append(_NOWHERE)

    def replace(self, i: int, workload: Workload) -> None:
        """The one at ``i`` is another, and counts for as much."""
        self.workloads[i] = workload
        self._was[i] = _NOWHERE

    def remove(self, i: int) -> None:
        """The one at ``i`` runs no longer."""
        del self.places[self.workloads[i].id]
        last = self.workloads.pop()
        if i < len(self.workloads):
            self.workloads[i], self.places[last.id] = last, i
        for column in (self.queues, self.shapes, self._priorities, self._was):
            of_last = column.pop()
            if i < len(column):
                column[i] = of_last

    def columns(self) -> tuple[_Column, _Column, _Column, _Column]:
        """Queues, priorities, shapes and where each stood when they were last taken, as of now."""
        columns = np.array(self.queues), np.array(self._priorities), np.array(self.shapes), np.array(self._was)
        self._was = array("q", range(len(self.workloads)))
        return columns


class Ahead(rounds.Ahead[CompiledState]):
    """What the cycles of a run look at, kept up to date: for most of them sums by queue and priority are enough, and
    for the others a state is made of it. See ``Rounds.ahead``. ``plain``: whether nothing that runs is drained or
    brings costs of its own. ``_last``: the last state made, or the one it began with. ``_use``: by node, by priority,
    what runs there uses of each flavor-resource; under ``_COUNT`` how many there are. ``_leaving``, ``_protected``: the
    ids of those that are evicted, or not preemptible. ``_vain``: by queue and what is asked for, priority and amounts
    of asks that nobody's going could help.
    """

    def __init__(self, loaded: CompiledState) -> None:
        """``loaded``: without topologies, and with no usage that no quota covers."""
        self.configuration = loaded.configuration
        self.usage = Usage.of(loaded)
        self._last = loaded
        self._shapes = loaded.shapes.copy(loaded.shapes.nodes)
        self._running = _Running(loaded)
        self._use: list[dict[int, dict[int, int]]] = [{} for _ in loaded.configuration.tree.names]
        self._lowest = [NO_PRIORITY] * len(self._use)
        self._vain: dict[tuple[int, tuple[int, ...]], list[tuple[int, tuple[int, ...]]]] = {}
        self._wishes: dict[tuple[str, bytes], Wish | None] = {}
        self._leaving, self._protected = dict[str, None](), dict[str, None]()
        self._costly = self._drained = 0
        for i, workload in enumerate(loaded.workloads):
            self._count(workload, int(loaded.queue[i]), loaded.amounts(i))

    @property
    def plain(self) -> bool:
        return not self._drained and not self._costly

    def moved(self, name: str, after: Workload | None) -> bool:
        """The workload is ``after`` now, or gone. False where it uses what no quota covers: nothing that is asked
        from then on is right."""
        place = self._running.places.get(name)
        if place is not None:
            before = self._running.workloads[place]
            self._mark(before, -1)
            if after is not None and _uses_alike(before, after):
                self._running.replace(place, after)
                self._mark(after, 1)
                return True
            self._leave(place, before)
        if after is None:
            return True
        node = self.configuration.tree.index[after.queue]
        shape = self._shapes.shape_of(after, node)
        amounts, cells = self._shapes.amounts[shape], self.configuration.quotas.cells[node]
        if self.configuration.is_cohort[node] or not all(fr in cells for fr, _ in amounts):
            return False
        self._running.add(after, node, shape)
        self.usage.add(node, amounts)
        self._count(after, node, amounts)
        return True

    def _leave(self, place: int, workload: Workload) -> None:
        """It uses nothing any more. Only that makes room: what was in vain before somebody starts is in vain after."""
        self._vain.clear()
        node, shape = self._running.queues[place], self._running.shapes[place]
        self._running.remove(place)
        amounts, priority = self._shapes.amounts[shape], workload.priority
        self.usage.remove(node, amounts)
        by_priority = self._use[node]
        use = by_priority[priority]
        use[_COUNT] -= 1
        if use[_COUNT]:
            for fr, amount in amounts:
                use[fr] -= amount
        else:
            del by_priority[priority]
            if priority == self._lowest[node]:
                self._lowest[node] = min(by_priority, default=NO_PRIORITY)

    def _count(self, workload: Workload, node: int, amounts: Amounts) -> None:
        """It uses so much."""
        self._mark(workload, 1)
        priority = workload.priority
        use = self._use[node].setdefault(priority, {_COUNT: 0})
        use[_COUNT] += 1
        for fr, amount in amounts:
            use[fr] = use.get(fr, 0) + amount
        self._lowest[node] = min(self._lowest[node], priority)

    def _mark(self, workload: Workload, sign: int) -> None:
        """What few workloads have."""
        for marked, those in ((leaving(workload), self._leaving), (not workload.preemptible, self._protected)):
            if marked and sign > 0:
                those[workload.id] = None
            elif marked:
                del those[workload.id]
        self._drained += sign * (workload.kueue is not None and workload.kueue.drained)
        self._costly += sign * bool(workload.disruption_cost_milestones)

    def state(self, follow: Callable[[], CompiledState]) -> CompiledState:
        """The state of now, for one cycle."""
        del follow
        places, workloads = self._running.places, list(self._running.workloads)
        queue, priority, shape, was = self._running.columns()
        state = CompiledState(
            self.configuration, workloads, queue, priority,
            evicted=frozenset(map(places.__getitem__, self._leaving)),
            protected=frozenset(map(places.__getitem__, self._protected)),
        )  # fmt: skip
        state.shapes, state.shape = self._shapes, shape
        state.quotas, state.used = self.usage.quotas, self.usage.used
        state.known(self._costly > 0, self._lowest)
        state.settled_as(self._last)
        if (before := self._last.places) is not None:
            state.places = before.moved(was, workloads, priority)
        self._last = state
        return state

    def wish(self, shape: bytes | None, ask: Ask) -> "Wish | None":
        """See ``wish_of``; equal for asks of a queue with one ``shape``."""
        if shape is None:
            return wish_of(self.configuration, ask)
        key = ask.queue, shape
        if key not in self._wishes:
            if len(self._wishes) >= _MOST_WISHES:
                self._wishes.clear()
            self._wishes[key] = wish_of(self.configuration, ask)
        return self._wishes[key]

    def in_vain(self, queue: int, ask: Ask, wish: "Wish") -> bool:
        """Whether an ask of the queue was in vain that wanted the same or less, and counts for as much or more."""
        priority = ask.priority or 0
        for higher, amounts in self._vain.get((queue, wish.frs), ()):
            if priority <= higher and all(map(le, amounts, wish.amounts)):
                return True
        return False

    def note_vain(self, queue: int, ask: Ask, wish: "Wish") -> None:
        """Of nothing that it wants enough is there, or could be freed."""
        self._vain.setdefault((queue, wish.frs), []).append((ask.priority or 0, wish.amounts))

    def could_free(self, queue: int, fr: int, amount: int, priority: int) -> bool:
        """Whether ``amount`` of ``fr`` could be there for an ask of ``queue`` once somebody has gone: False only where
        no search for victims finds any, whatever else the ask wants. Whoever the policies let it touch is thought gone
        at once, in a classical search only those whom an attempt may take."""
        configuration, usage = self.configuration, self.usage
        policy, quotas = configuration.policy[queue], usage.quotas
        cell = quotas.cells[queue][fr]
        own = self._within_reach(policy.within_cluster_queue, queue, fr, priority)
        short = amount - usage.available_cell(cell) - own
        if short <= 0:
            return True
        if policy.reclaim_within_cohort == "Never" or configuration.tree.parent[queue] == ROOTLESS:
            return False
        if not (configuration.fair_sharing or policy.borrow_within_cohort):
            used = usage.used[cell]
            # Others go for an ask with room of its own below their common cohort, or that stays within nominal quota.
            reclaims = any(usage.fits_by_level(usage.quotas.tree.path(queue), {fr: amount})[:-1])
            if not reclaims and (used >= quotas.nominal[cell] or used + amount - own > quotas.nominal[cell]):
                return False
        for other in configuration.queues_of(queue):
            if other != queue:
                short -= self._within_reach(policy.reclaim_within_cohort, other, fr, priority)
        return short <= 0

    def _within_reach(self, policy: str, node: int, fr: int, priority: int) -> int:
        """What those use of ``fr`` whom ``policy`` lets an ask touch, and more at most."""
        if policy == "Never":
            return 0
        highest = NO_PRIORITY if policy == "Any" else priority - (policy == "LowerPriority")
        return sum([use.get(fr, 0) for of, use in self._use[node].items() if of <= highest])


_COUNT = -1


def _uses_alike(before: Workload, after: Workload) -> bool:
    """Whether it counts for as much as before, as where an eviction begins: what it uses is told by its tasks."""
    return after.tasks is before.tasks and after.queue == before.queue and after.priority == before.priority


class _Offer(NamedTuple):
    """A flavor that an ask may have of a resource group. ``place``: where the scan stops that ends here, -1 at the last
    of the group; ``cells``: of its queue, with resource, flavor-resource and what it asks for."""

    flavor: str
    place: int
    cells: tuple[tuple[str, int, int, int], ...]


class Wish(NamedTuple):
    """What an ask could take, by resource group that it needs. ``frs``, ``amounts``: all of it in order."""

    groups: tuple[tuple[_Offer, ...], ...]
    frs: tuple[int, ...]
    amounts: tuple[int, ...]


def wish_of(configuration: CompiledConfiguration, ask: Ask) -> Wish | None:
    """None: what it comes to is not plain, for it may shrink, has several pod sets, names its flavors and the like.
    Raises QuantityError."""
    queue, task = configuration.tree.index[ask.queue], ask.tasks[0]
    covering, cells = configuration.covering[queue], configuration.quotas.cells[queue]
    if len(ask.tasks) > 1 or may_shrink(ask.tasks) or task.flavors is not None or task.topology_request is not None:
        return None
    wanted = requests(configuration, queue, task, task.count)
    if not wanted or PODS in covering or not all(amount > 0 and r in covering for r, amount in wanted.items()):
        return None
    judged = refusals(configuration, task)
    wish: list[tuple[_Offer, ...]] = []
    for g, group in enumerate(configuration.groups[queue]):
        mine = [(resource, amount) for resource, amount in wanted.items() if covering[resource] == g]
        offers: list[_Offer] = []
        for place, flavor in enumerate(group.flavors if mine else ()):
            if judged[flavor] is None:
                frs = [configuration.quotas.fr_index[flavor, resource] for resource, _ in mine]
                asked = [(r, cells[fr], fr, amount) for fr, (r, amount) in zip(frs, mine, strict=True)]
                offers.append(_Offer(flavor, -1 if place == len(group.flavors) - 1 else place, tuple(asked)))
        if mine:
            wish.append(tuple(offers))
    asked = [(fr, amount) for offers in wish for offer in offers for _, _, fr, amount in offer.cells]
    frs, amounts = tuple(fr for fr, _ in asked), tuple(amount for _, amount in asked)
    return None if next(kubernetes.problems(task, ()), None) else Wish(tuple(wish), frs, amounts)


class Verdict(NamedTuple):
    """What a nomination comes to; ``flavors`` by resource, ``request`` as a Preemptor's, both where it fits;
    ``unfinished``: whether some scan stopped before the last flavor."""

    ask: Ask
    queue: int
    mode: Mode
    level: int
    flavors: Mapping[str, str]
    request: Amounts
    unfinished: bool


def verdict(ahead: Ahead, queue: int, ask: Ask, wish: Wish) -> Verdict | None:
    """``ask`` nominated on the state of now; without victims where it does not fit. None: somebody's going could make
    room."""
    configuration = ahead.configuration
    rules, mode, level = configuration.policy[queue].fungibility, Mode.FIT, 0
    flavors: dict[str, str] = {}
    request: list[tuple[int, int]] = []
    unfinished = False
    vain = len(wish.groups) == 1 and ask.preemption_policy != "Never"
    for offers in wish.groups:
        best, chosen, reaches, stopped = WORST, None, 0, -1
        for offer in offers:
            offered = _offered(ahead, ask, queue, offer, rules)
            if offered is None:
                return None
            worst, highest, helpless = offered
            vain = vain and helpless
            stops = stops_search(worst, rules)
            if stops or preferred(worst, best, rules):
                best, chosen, reaches = worst, offer, highest
            if stops:
                stopped = offer.place
                break
        if chosen is None:
            return Verdict(ask, queue, Mode.NO_FIT, 0, {}, (), unfinished=False)
        level, unfinished = max(level, reaches), unfinished or stopped >= 0
        if best.fit is not Fit.FIT:
            mode = Mode.PREEMPT
        for resource, _, fr, amount in chosen.cells:
            flavors[resource] = chosen.flavor
            request.append((fr, amount))
    if vain:
        ahead.note_vain(queue, ask, wish)
    return Verdict(ask, queue, mode, level, flavors, tuple(sorted(request)), unfinished)


def _offered(
    ahead: Ahead, ask: Ask, queue: int, offer: _Offer, rules: FlavorFungibility
) -> tuple[Suit, int, bool] | None:
    """The worst of what is asked for, up to what can't be had at all; the highest level; whether nobody's going could
    help with any of it. None: somebody's could."""
    worst, highest, helpless = BEST, 0, True
    for _, cell, fr, amount in offer.cells:
        suit = _suit(ahead, ask, queue, cell, fr, amount)
        if suit is None:
            return None
        helpless = helpless and suit.fit is Fit.NO_CANDIDATES
        if suit is not worst and preferred(worst, suit, rules):
            worst = suit
        highest = max(highest, suit.level)
        if suit.fit is Fit.NO_FIT:
            break
    return worst, highest, helpless


def _suit(ahead: Ahead, ask: Ask, queue: int, cell: int, fr: int, amount: int) -> Suit | None:
    """See ``Assigner``. None: somebody's going could make room."""
    usage = ahead.usage
    quotas = usage.quotas
    if amount > quotas.potential[cell]:
        return WORST
    fits = amount <= max(0, usage.available_cell(cell))
    if fits and usage.used[cell] + amount <= quotas.nominal[cell]:
        return BEST
    height, below_root = borrowing_level(ahead.configuration, usage, queue, fr, amount)
    if fits:
        return Suit(Fit.FIT, height)
    if amount <= quotas.nominal[cell] or below_root or may_preempt_while_borrowing(ahead.configuration, queue):
        preempts = ask.preemption_policy != "Never"
        if preempts and ahead.could_free(queue, fr, amount, ask.priority or 0):
            return None
        return Suit(Fit.NO_CANDIDATES, height)
    return Suit(Fit.NO_FIT, height)


class PlainCycle(NamedTuple):
    """A cycle that evicts nobody. ``fitting``: in Kueue's order, of whom all get in but the ``outrun``, for whom those
    before them leave no room; ``waiting``: all others."""

    fitting: list[Verdict]
    outrun: frozenset[str]
    waiting: list[Ask]


def cycle(ahead: Ahead, heads: Sequence[tuple[Ask, Wish]]) -> PlainCycle | None:
    """``heads``: one a queue, by id. None: what it comes to is not plain."""
    configuration = ahead.configuration
    if configuration.fair_sharing and len(heads) > 1:
        return None
    fitting: list[Verdict] = []
    waiting: list[Ask] = []
    reserving = unfinished = False
    for ask, wish in heads:
        queue = configuration.tree.index[ask.queue]
        head = None
        if not ahead.in_vain(queue, ask, wish):
            head = verdict(ahead, queue, ask, wish)
            if head is None or (head.unfinished and head.mode is Mode.PREEMPT):
                return None
        if head is not None and head.mode is Mode.FIT:
            fitting.append(head)
            unfinished = unfinished or head.unfinished
            continue
        waiting.append(ask)
        if head is None or head.mode is Mode.PREEMPT:
            reserving = reserving or configuration.policy[queue].reclaim_within_cohort != "Any"
    if fitting and reserving:
        return None
    if len(fitting) < 2:
        return PlainCycle(fitting, frozenset(), waiting)
    fitting.sort(key=_order)
    outrun = frozenset(_outrun(ahead, fitting))
    if unfinished and any(head.unfinished and head.ask.id in outrun for head in fitting):
        return None
    return PlainCycle(fitting, outrun, waiting)


def order(ahead: Ahead, heads: Sequence[tuple[Ask, Wish]]) -> list[str]:
    """Ids of the ``heads`` of a plain cycle in Kueue's order."""
    index = ahead.configuration.tree.index
    verdicts = [verdict(ahead, index[ask.queue], ask, wish) for ask, wish in heads]
    return [head.ask.id for head in sorted(filter(None, verdicts), key=_order)]


def _order(head: Verdict) -> tuple[int, int, int]:
    return head.level, -(head.ask.priority or 0), instant(head.ask.created_at)


def _outrun(ahead: Ahead, fitting: Iterable[Verdict]) -> Iterator[str]:
    """Those for whom the others before them leave no room. Usage is left as it was."""
    booked: list[Verdict] = []
    for head in fitting:
        if ahead.usage.fits(head.queue, head.request):
            ahead.usage.add(head.queue, head.request)
            booked.append(head)
        else:
            yield head.ask.id
    for head in reversed(booked):
        ahead.usage.remove(head.queue, head.request)
