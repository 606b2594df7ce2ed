"""Goes ahead of the compiled state in a run: usage and priorities, kept up to date change by change; and rounds whose
outcome is plain from these: quota is there, nobody's going could make room, or one head alone finds victims.

Source: Kueue ``pkg/scheduler`` (flavorassigner, classical preemption), as ``flavors`` and ``preemption`` have it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter, le
from typing import NamedTuple

from app.solver import kubernetes, rounds
from app.solver.compiled import ROOTLESS
from app.solver.engines.kueue.amounts import Amounts
from app.solver.engines.kueue.candidates import SILENT
from app.solver.engines.kueue.configuration import CompiledConfiguration
from app.solver.engines.kueue.cycle import may_shrink
from app.solver.engines.kueue.flavors import (
    Search,
    borrowing_level,
    height_without,
    may_preempt_while_borrowing,
    refusals,
    requests,
)
from app.solver.engines.kueue.knobs import Run
from app.solver.engines.kueue.nomination import BEST, WORST, Fit, Mode, Suit, Target, preferred, stops_search
from app.solver.engines.kueue.overlay import Overlay, Preemptor, Usage
from app.solver.engines.kueue.preemption import Freeable, MostRoom, Rooms, any_fits
from app.solver.engines.kueue.state import CompiledState, Running, instant, leaving
from app.solver.kubernetes import PODS
from app.solver.model.decision import PlannedEviction
from app.solver.model.kueue import FlavorFungibility
from app.solver.model.state import Ask, Workload

_MOST_WISHES = 4096


class Ahead(rounds.Ahead[CompiledState]):
    """What the cycles of a run look at, kept up to date: for most of them sums by queue and priority are enough, and
    for the others a state is made of it. See ``Rounds.ahead``. ``plain``: whether nothing that runs is drained or
    brings costs of its own. ``_last``: the last state made, or the one it began with. ``_leaving``, ``_protected``: the
    ids of those that are evicted, or not preemptible. ``_vain``: by queue and what is asked for, priority and amounts
    of asks that nobody's going could help; ``_searched``: by queue, what is not there and whether the queue's own quota
    has room for all, priority of searches in vain since anything moved, and what came to be there; ``_trial``: where
    these were made; ``levels``: of heads, by what they hang on, until anything moves. ``now``: of the cycle.
    """

    def __init__(self, loaded: CompiledState) -> None:
        """``loaded``: without topologies, and with no usage that no quota covers."""
        self.configuration = loaded.configuration
        self.usage = Usage.of(loaded)
        self._last = loaded
        self._shapes = loaded.shapes.copy(loaded.shapes.nodes)
        self._running = Running(loaded)
        self.freeable = Freeable(loaded.configuration, self.usage)
        self._vain: dict[tuple[int, tuple[int, ...]], list[tuple[int, tuple[int, ...]]]] = {}
        self._wishes: dict[tuple[str, bytes], Wish | None] = {}
        self._leaving, self._protected = dict[str, None](), dict[str, None]()
        self.now = 0
        self._compiled: CompiledState | None = None
        self._trial: tuple[Run, Overlay] | None = None
        self._searched: dict[tuple[int, tuple[int, ...], bool], list[tuple[int, Rooms]]] = {}
        self.levels: dict[tuple[int, tuple[int, ...], tuple[int, ...], int, str | None], int] = {}
        self._costly = self._drained = 0
        for i, workload in enumerate(loaded.workloads):
            self._count(workload, int(loaded.queue[i]), loaded.amounts(i))

    @property
    def plain(self) -> bool:
        return not self._drained and not self._costly

    def moved(self, name: str, after: Workload | None) -> bool:
        """The workload is ``after`` now, or gone. False where it uses what no quota covers: nothing that is asked
        from then on is right."""
        if self._compiled is not None:
            self._compiled = self._trial = None
            self._searched.clear()
        self.levels.clear()
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
        node, amounts = self._running.queues[place], self._shapes.amounts[self._running.shapes[place]]
        self._running.remove(place)
        self.usage.remove(node, amounts)
        self.freeable.remove(node, workload.priority, amounts)

    def _count(self, workload: Workload, node: int, amounts: Amounts) -> None:
        """It uses so much."""
        self._mark(workload, 1)
        self.freeable.add(node, workload.priority, amounts)

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
        """The state of now, until anything moves."""
        del follow
        if self._compiled is not None:
            return self._compiled
        places, workloads = self._running.places, list(self._running.workloads)
        queue, priority, shape, was = self._running.columns()
        state = CompiledState(
            self.configuration, workloads, queue, priority,
            evicted=frozenset(map(places.__getitem__, self._leaving)),
            protected=frozenset(map(places.__getitem__, self._protected)),
        )  # fmt: skip
        state.shapes, state.shape = self._shapes, shape
        state.quotas, state.used = self.usage.quotas, self.usage.used
        state.known(self._costly > 0, self.freeable.lowest)
        state.settled_as(self._last)
        if (before := self._last.places) is not None:
            state.places = before.moved(was, workloads, priority)
        self._last = self._compiled = state
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

    def waits(self, queue: int, ask: Ask, wish: "Wish") -> bool:
        """Whether it has to wait, whatever it comes to: it may have one flavor each, and of something there is not
        enough even with all gone who could, or a search for what is not there was in vain, as ``targets`` has it."""
        request, priority = wish.request, ask.priority or 0
        lacking = () if request is None else self.freeable.lacking(queue, request)
        if request is None or not lacking:
            return False
        most = self.freeable.most
        for fr, amount in lacking:
            if amount > most(queue, fr, priority):
                return True
        contested = tuple([fr for fr, _ in lacking]) if self._searched else ()
        return self._searched_in_vain(queue, request, contested, priority)

    def _searched_in_vain(self, queue: int, request: Amounts, contested: tuple[int, ...], priority: int) -> bool:
        known = self._searched.get((queue, contested, self._reclaims(queue, request)), ())
        return any(priority <= highest and not any_fits(rooms, request) for highest, rooms in known)

    def _reclaims(self, queue: int, request: Amounts) -> bool:
        """Whether the queue's own quota has room for all of it: others go as those who hold what is not theirs."""
        cells, used, subtree = self.usage.quotas.cells[queue], self.usage.used, self.usage.quotas.subtree
        return all(used[cells[fr]] + amount <= subtree[cells[fr]] for fr, amount in request)

    def targets(self, ask: Ask, queue: int, request: Amounts, contested: tuple[int, ...]) -> list[Target]:
        """Whom a search for victims for ``request`` finds on the ``state`` of now (see ``get_targets``). Where each
        queue stands for itself, what is there once all have gone whom a search in vain may take is no less than for one
        of no higher priority: of each queue that takes no more."""
        alone, priority = not self._leaving and self.stands_alone(queue), ask.priority or 0
        if alone and self._searched_in_vain(queue, request, contested, priority):
            return []
        overlay, preemptor, search = self._searching(ask)
        record = MostRoom(queue) if alone else SILENT
        targets = search(overlay, preemptor._replace(request=request), contested, record)
        if isinstance(record, MostRoom) and not targets:
            known = self._searched.setdefault((queue, contested, self._reclaims(queue, request)), [])
            known.append((priority, record.rooms))
        return targets

    def _searching(self, ask: Ask) -> tuple[Overlay, Preemptor, Search]:
        if self._trial is None:
            state = self.state(lambda: self._last)
            self._trial = Run(state, self.now), Overlay(state, self.now)
        run, overlay = self._trial
        return overlay, *run.begin(overlay, ask)

    def level(self, head: "Verdict") -> int:
        """How far up quota comes from: what is contested, once those have gone who would for that resource alone."""
        heights = [self._height(head, fr, amount) for fr, amount in head.request]
        return max(heights, default=head.level)

    def _height(self, head: "Verdict", fr: int, amount: int) -> int:
        queue, targets = head.queue, list[Target]()
        if fr in head.contested and amount <= self.freeable.most(queue, fr, head.ask.priority or 0):
            targets = self.targets(head.ask, queue, ((fr, amount),), (fr,))
        if not targets:
            return borrowing_level(self.configuration, self.usage, queue, fr, amount).height
        overlay, *_ = self._searching(head.ask)
        return height_without(overlay, targets, queue, fr, amount)

    def evictions(self, head: "Verdict") -> list[PlannedEviction]:
        """Those of its targets."""
        state, names = self.state(lambda: self._last), self.configuration.tree.names
        return [
            PlannedEviction(
                workload=state.workloads[i].id, queue=names[int(state.queue[i])], reason=reason, for_ask=head.ask.id
            )
            for i, reason in head.targets
        ]

    def stands_alone(self, queue: int) -> bool:
        """Whether searches look at each queue of its cohort by itself, at those of the lowest priority first, and who
        may go follows from the priority that asks."""
        configuration = self.configuration
        policy, root = configuration.policy[queue], configuration.tree.parent[queue]
        newer = "LowerOrNewerEqualPriority" in (policy.within_cluster_queue, policy.reclaim_within_cohort)
        if newer or configuration.fair_sharing or policy.borrow_within_cohort:
            return False
        return root == ROOTLESS or (
            configuration.tree.parent[root] == ROOTLESS and not configuration.child_cohorts[root]
        )


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
    """What an ask could take, by resource group that it needs. ``frs``, ``amounts``: all of it in order;
    ``request``: as a Preemptor's, where there is one flavor for each; ``flavors``: that one by resource."""

    groups: tuple[tuple[_Offer, ...], ...]
    frs: tuple[int, ...]
    amounts: tuple[int, ...]
    request: Amounts | None
    flavors: Mapping[str, str]


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
    single = all(len(offers) == 1 and offers[0].place < 0 for offers in wish)
    if next(kubernetes.problems(task, ()), None):
        return None
    flavors = {r: offer.flavor for offers in wish for offer in offers for r, *_ in offer.cells}
    return Wish(tuple(wish), frs, amounts, tuple(sorted(asked)) if single else None, flavors)


class Verdict(NamedTuple):
    """What a nomination comes to; ``level``: with everybody running; ``flavors`` by resource, ``request`` as a
    Preemptor's, ``contested``: flavor-resources that are not there, ``targets``: who goes; ``unfinished``: whether some
    scan stopped before the last flavor."""

    ask: Ask
    queue: int
    mode: Mode
    level: int
    flavors: Mapping[str, str]
    request: Amounts
    unfinished: bool
    contested: tuple[int, ...] = ()
    targets: Sequence[Target] = ()


def verdict(ahead: Ahead, queue: int, ask: Ask, wish: Wish) -> Verdict | None:
    """``ask`` nominated on the state of now. None: which flavor it has hangs on whose going makes room."""
    configuration = ahead.configuration
    if wish.request is not None and ahead.usage.fits(queue, wish.request):
        level = max(borrowing_level(configuration, ahead.usage, queue, fr, n).height for fr, n in wish.request)
        return Verdict(ask, queue, Mode.FIT, level, wish.flavors, wish.request, unfinished=False)
    rules, mode, level = configuration.policy[queue].fungibility, Mode.FIT, 0
    flavors: dict[str, str] = {}
    request: list[tuple[int, int]] = []
    contested: tuple[int, ...] = ()
    unfinished = in_vain = False
    helpless = len(wish.groups) == 1 and ask.preemption_policy != "Never"
    for offers in wish.groups:
        best, chosen, stopped = _NOTHING, None, -1
        for offer in offers:
            only = len(offers) == 1 and offer.place < 0
            offered = _offered(ahead, ask, queue, offer, rules, only=only)
            worst = offered[0]
            if worst.fit is Fit.PREEMPT and not only:
                return None
            helpless = helpless and offered[3]
            stops = stops_search(worst, rules)
            if stops or preferred(worst, best[0], rules):
                best, chosen = offered, offer
            if stops:
                stopped = offer.place
                break
        if chosen is None:
            return Verdict(ask, queue, Mode.NO_FIT, 0, {}, (), unfinished=False)
        worst, reaches, lacks, _, hopeless = best
        level, unfinished = max(level, reaches), unfinished or stopped >= 0
        if worst.fit is not Fit.FIT:
            mode, contested, in_vain = Mode.PREEMPT, contested + lacks, in_vain or hopeless
        for resource, _, fr, amount in chosen.cells:
            flavors[resource] = chosen.flavor
            request.append((fr, amount))
    if helpless:
        ahead.note_vain(queue, ask, wish)
    amounts, contested = tuple(sorted(request)), tuple(sorted(contested))
    targets = ahead.targets(ask, queue, amounts, contested) if mode is Mode.PREEMPT and not in_vain else ()
    return Verdict(ask, queue, mode, level, flavors, amounts, unfinished, contested, targets)


_Offered = tuple[Suit, int, tuple[int, ...], bool, bool]
"""How an offer could be had: the worst of what is asked for, up to what can't be had at all; the highest level; what of
it is not there; whether nobody's going could help with any of it, and whether with some of it."""
_NOTHING: _Offered = WORST, 0, (), False, False


def _offered(ahead: Ahead, ask: Ask, queue: int, offer: _Offer, rules: FlavorFungibility, *, only: bool) -> _Offered:
    """``only``: there is no other flavor, and it does not matter whether somebody would go for one resource alone."""
    worst, highest, lacks, helpless, in_vain = BEST, 0, (), True, ask.preemption_policy == "Never"
    for _, cell, fr, amount in offer.cells:
        suit, hopeless = _suit(ahead, ask, queue, cell, fr, amount, searches=not only)
        if suit.fit is not Fit.FIT:
            lacks = *lacks, fr
        helpless, in_vain = helpless and hopeless, in_vain or hopeless
        if suit is not worst and preferred(worst, suit, rules):
            worst = suit
        highest = max(highest, suit.level)
        if suit.fit is Fit.NO_FIT:
            break
    return worst, highest, lacks, helpless, in_vain


def _suit(ahead: Ahead, ask: Ask, queue: int, cell: int, fr: int, amount: int, *, searches: bool) -> tuple[Suit, bool]:
    """See ``Assigner``; where somebody's going helps, by whatever rule they go. With whether nobody's could, whatever
    else is asked for."""
    usage = ahead.usage
    quotas = usage.quotas
    if amount > quotas.potential[cell]:
        return WORST, False
    lacks = amount - usage.available_cell(cell)
    fits = lacks <= 0
    if fits and usage.used[cell] + amount <= quotas.nominal[cell]:
        return BEST, False
    height, below_root = borrowing_level(ahead.configuration, usage, queue, fr, amount)
    if fits:
        return Suit(Fit.FIT, height), False
    if amount <= quotas.nominal[cell] or below_root or may_preempt_while_borrowing(ahead.configuration, queue):
        if ask.preemption_policy == "Never" or amount > ahead.freeable.most(queue, fr, ask.priority or 0):
            return Suit(Fit.NO_CANDIDATES, height), True
        in_vain = searches and not ahead.targets(ask, queue, ((fr, amount),), (fr,))
        return Suit(Fit.NO_CANDIDATES if in_vain else Fit.PREEMPT, height), False
    return Suit(Fit.NO_FIT, height), False


class PlainCycle(NamedTuple):
    """``fitting``: in Kueue's order, of whom all get in but the ``outrun``, for whom those before them leave no room;
    ``evicting``: the one whose targets go, where nobody fits; ``waiting``: all others."""

    fitting: list[Verdict]
    outrun: frozenset[str]
    waiting: list[Ask]
    evicting: Verdict | None = None


def cycle(ahead: Ahead, heads: Sequence[tuple[Ask, Wish]]) -> PlainCycle | None:
    """``heads``: one a queue, by id. None: what it comes to is not plain."""
    configuration = ahead.configuration
    if configuration.fair_sharing and len(heads) > 1:
        return None
    fitting: list[Verdict] = []
    waiting: list[Ask] = []
    reserving = unfinished = False
    short: list[tuple[int, Ask, Wish]] = []
    for ask, wish in heads:
        queue = configuration.tree.index[ask.queue]
        if ahead.waits(queue, ask, wish):
            short.append((queue, ask, wish))
            continue
        head = None
        if not ahead.in_vain(queue, ask, wish):
            head = verdict(ahead, queue, ask, wish)
            if head is None or (head.unfinished and head.mode is Mode.PREEMPT):
                return None
        if head is not None and (head.mode is Mode.FIT or head.targets):
            fitting.append(head)
            unfinished = unfinished or head.unfinished
            continue
        waiting.append(ask)
        if head is None or head.mode is Mode.PREEMPT:
            reserving = reserving or configuration.policy[queue].reclaim_within_cohort != "Any"
    if fitting and (
        reserving
        or any(map(partial(_reserves, ahead), short))
        or (len(fitting) > 1 and any(head.targets for head in fitting))
    ):
        return None
    waiting += [ask for _, ask, _ in short]
    if fitting and fitting[0].targets:
        return PlainCycle([], frozenset(), waiting, fitting[0])
    if len(fitting) < 2:
        return PlainCycle(fitting, frozenset(), waiting)
    fitting.sort(key=_order)
    outrun = frozenset(_outrun(ahead, fitting))
    if unfinished and any(head.unfinished and head.ask.id in outrun for head in fitting):
        return None
    return PlainCycle(fitting, outrun, waiting)


def _reserves(ahead: Ahead, waiting: tuple[int, Ask, Wish]) -> bool:
    """Whether heads after it may find less: it waits for victims that only its own queue has."""
    queue, ask, wish = waiting
    if ahead.configuration.policy[queue].reclaim_within_cohort == "Any":
        return False
    head = verdict(ahead, queue, ask, wish)
    return head is None or head.mode is Mode.PREEMPT


def order(ahead: Ahead, heads: Sequence[tuple[Ask, Wish]]) -> list[str]:
    """Ids of the ``heads`` of a plain cycle in Kueue's order."""
    levels, judged = ahead.levels, list[tuple[tuple[int, int, int], str]]()
    for ask, wish in heads:
        queue, priority = ahead.configuration.tree.index[ask.queue], ask.priority or 0
        key = queue, wish.frs, wish.amounts, priority, ask.preemption_policy
        if key not in levels or not ahead.stands_alone(queue):
            head = verdict(ahead, queue, ask, wish)
            levels[key] = 0 if head is None else ahead.level(head)
        judged.append(((levels[key], -priority, instant(ask.created_at)), ask.id))
    return [name for _, name in sorted(judged, key=itemgetter(0))]


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
