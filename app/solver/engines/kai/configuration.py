"""A Configuration as KAI reads it: queues by index in document order, integer quotas, settings, minimum runtimes."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from app.solver.compiled import ROOTLESS, Tree, compile_tree
from app.solver.engines.kai.jobs import KAI_UNLIMITED, OLDEST, Share, duration_problems, is_gpu
from app.solver.engines.kai.rule_sets import (
    CHANGES,
    KAI_0_13,
    KAI_0_17,
    RELEASES,
    RULE_SETS,
    NotedRules,
    ReleaseRules,
    RuleSet,
)
from app.solver.model.base import (
    GO_WITH_DAYS,
    UNLIMITED,
    Duration,
    DurationError,
    Quantity,
    micros,
    parse_duration,
    parse_quantity,
)
from app.solver.model.configuration import Configuration, Queue, Quota, quotas
from app.solver.model.kai import Action, SearchBudgets, Settings
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.question import safe_point

Method = Literal["lca", "queue"]
NODE_POOL = -1


@dataclass(frozen=True, slots=True)
class MinRuntime:
    """A resolved minimum runtime in microseconds, and the queue that sets it (NODE_POOL: the default)."""

    micros: int
    set_by: int


class MinRuntimes:
    """The minimum runtimes of one configuration: which value protects a victim, until when, and what an elastic victim
    may still lose. Values are microseconds by queue index; None where unset.

    Source: the KAI design "reclaim-min-runtime and preempt-min-runtime"; where released code differs,
    ``rules: shipped`` follows the code and ``rules: documented`` the design (docs/engines/kai.md lists the
    differences)."""

    __slots__ = ("_default_preempt", "_default_reclaim", "_method", "_preempt", "_reclaim", "_reclaim_own", "_tree")

    def __init__(
        self, tree: Tree, reclaim: list[int | None], preempt: list[int | None],
        *, default_reclaim: int, default_preempt: int, method: Method,
    ) -> None:  # fmt: skip
        self._tree = tree
        self._method: Method = method
        self._default_reclaim = MinRuntime(default_reclaim, NODE_POOL)
        self._default_preempt = MinRuntime(default_preempt, NODE_POOL)
        self._reclaim_own = reclaim
        self._reclaim = _nearest(tree, reclaim, self._default_reclaim)
        self._preempt = _nearest(tree, preempt, self._default_preempt)

    def for_preempt(self, victim: int) -> MinRuntime:
        """Against preemption inside ``victim``'s own queue: the nearest value from the leaf upwards. 0 is a value."""
        return self._preempt[victim]

    def for_reclaim(self, preemptor: int, victim: int) -> MinRuntime:
        """Against reclaim for queue ``preemptor``. Method ``lca``: the nearest value from the child of the lowest
        common ancestor on the victim's side upwards, so that a value protects against siblings of its queue and
        nobody else; ``queue``: from the victim's leaf upwards."""
        if self._method == "queue":
            return self._reclaim[victim]
        tree = self._tree
        common = tree.lowest_common_ancestor(preemptor, victim)
        if common == ROOTLESS:
            # Different trees have no common ancestor: only the root's own value counts, nothing deeper.
            root = tree.root(victim)
            own = self._reclaim_own[root]
            return self._default_reclaim if own is None else MinRuntime(own, root)
        below = victim
        while below != common and tree.parent[below] != common:
            below = tree.parent[below]
        return self._reclaim[below]

    def reclaim_at(self, queue: int) -> MinRuntime:
        """What protects ``queue`` against its own siblings: the nearest value from it upwards."""
        return self._reclaim[queue]

    def lengths(self, victim: int) -> frozenset[int]:
        """Every minimum runtime that may protect what runs in ``victim`` from anybody, in microseconds."""
        lengths = {self._preempt[victim].micros, self._default_reclaim.micros}
        queue = victim
        while queue != ROOTLESS:
            lengths.add(self._reclaim[queue].micros)
            queue = self._tree.parent[queue]
        return frozenset(lengths)


def _nearest(tree: Tree, own: list[int | None], default: MinRuntime) -> list[MinRuntime]:
    out = [default] * len(tree)
    for queue in tree.top_down:
        value = own[queue]
        if value is not None:
            out[queue] = MinRuntime(value, queue)
        elif tree.parent[queue] != ROOTLESS:
            out[queue] = out[tree.parent[queue]]
    return out


def protected(now: int, started_at: int | None, minimum: int, rules: RuleSet) -> bool:
    """Whether a minimum runtime of ``minimum`` still protects what started at ``started_at`` (microseconds). A start
    that nobody knows protects nothing."""
    return started_at is not None and started_at >= protected_since(now, minimum, rules)


def protected_since(now: int, minimum: int, rules: RuleSet) -> float:
    """The first start that ``minimum`` still protects at ``now``.

    Documented: free once ``now > start + minimum``, and a minimum of 0 means always preemptible. Shipped: free from
    ``now == start + minimum`` on; a start in the future protects even with a minimum of 0.
    """
    if rules.protects_at_end:
        return now - minimum if minimum > 0 else inf
    return now - minimum + 1


def unprotected_from(started_at: int, minimum: int, rules: RuleSet) -> int:
    """The first instant, not before its start, at which ``minimum`` does not protect it any more."""
    return started_at + max(0, minimum) + (minimum > 0 and rules.protects_at_end)


def protected_until(started_at: int | None, minimum: int, rules: RuleSet) -> int | None:
    """The last instant bound of the protection, or None where nothing protects at any time."""
    if started_at is None or (minimum <= 0 and rules.protects_at_end):
        return None
    return started_at + minimum


def may_evict(*, protected: bool, elastic: bool) -> bool:
    """The victim filter: elastic workloads always pass, ``keeps_gang`` judges them instead."""
    return elastic or not protected


def keeps_gang(*, running: int, evicted: int, min_available: int) -> bool:
    """The scenario validator, for a protected elastic victim: at least ``min_available`` pods stay.

    ``running``: documented, pods that really run; shipped, also those being released. ``evicted``: how many of
    those the scenario takes.
    """
    return running - evicted >= min_available


ALL_ACTIONS: tuple[Action, ...] = ("allocate", "consolidation", "reclaim", "preempt")
_SETTINGS = ("configuration", "settings", "kai")
_DEFAULTS = ("default_reclaim_min_runtime", "default_preempt_min_runtime")
_OWN = ("reclaim_min_runtime", "preempt_min_runtime")


@dataclass(frozen=True, slots=True)
class Policy:
    """``settings.kai`` with its defaults; minimum runtimes in microseconds."""

    rules: RuleSet
    release: ReleaseRules
    default_reclaim: int
    default_preempt: int
    staleness_grace: int
    method: Method
    actions: tuple[Action, ...]
    k_value: float
    use_scheduling_signatures: bool
    max_consolidation_preemptees: int | None
    allow_consolidating_reclaim: bool
    search_budgets: SearchBudgets | None


def compile_policy(settings: Settings | None) -> Policy:
    """The settings of one configuration. Raises InvalidInput under ``rules: documented`` for bad values.

    Released KAI never refuses a bad node-pool value: an unreadable or negative default counts as 0 and an unknown
    resolve method as ``lca``. ``rules: shipped`` does the same (and a finding says so), ``rules: documented`` refuses
    it."""
    given = settings or Settings()
    rules = RULE_SETS[given.rules]
    problems = list(settings_problems(given))
    if problems and rules.refuses_settings:
        raise InvalidInput(problems)
    return Policy(
        rules=rules,
        release=RELEASES[given.release],
        default_reclaim=_default(given.default_reclaim_min_runtime),
        default_preempt=_default(given.default_preempt_min_runtime),
        staleness_grace=_default(given.staleness_grace_period, negative=True),
        method="queue" if given.reclaim_resolve_method == "queue" else "lca",
        actions=ALL_ACTIONS if given.actions is None else tuple(given.actions),
        k_value=given.k_value,
        use_scheduling_signatures=given.use_scheduling_signatures,
        max_consolidation_preemptees=given.max_consolidation_preemptees,
        allow_consolidating_reclaim=given.allow_consolidating_reclaim,
        search_budgets=given.search_budgets,
    )


def _default(value: Duration | None, *, negative: bool = False) -> int:
    try:
        length = 0 if value is None else parse_duration(value, GO_WITH_DAYS)
        return length if negative else max(0, length)
    except DurationError:
        return 0


def settings_problems(settings: Settings) -> Iterator[Problem]:
    """What KAI silently replaces: pointers start at /configuration."""
    value: Duration | None
    for field in _DEFAULTS:
        if (value := getattr(settings, field)) is not None:
            yield from duration_problems(value, (*_SETTINGS, field))
    yield from duration_problems(settings.staleness_grace_period, (*_SETTINGS, "staleness_grace_period"), negative=True)
    budgets, where = settings.search_budgets or SearchBudgets(), (*_SETTINGS, "search_budgets")
    for field in ("max_job_search_duration", "min_job_search_duration"):
        if (value := getattr(budgets, field)) is not None:
            yield from duration_problems(value, (*where, field))
    for field in ("max_action_search_duration", "max_generator_search_duration"):
        for name, length in getattr(budgets, field).items():
            yield from duration_problems(length, (*where, field, name))
    if settings.reclaim_resolve_method not in ("lca", "queue"):
        yield Problem(
            pointer=pointer(*_SETTINGS, "reclaim_resolve_method"),
            detail=f"{settings.reclaim_resolve_method!r} is neither 'lca' nor 'queue'",
        )


def compile_min_runtimes(configuration: Configuration, tree: Tree, policy: Policy) -> MinRuntimes:
    """The minimum runtimes of ``configuration``. Raises InvalidInput for values that don't parse, and under
    ``rules: documented`` for negative ones (released KAI takes a queue's negative value as it stands)."""
    queues, negative = configuration.queues, not policy.rules.refuses_settings
    problems = [
        problem
        for i, queue in enumerate(queues)
        for field in _OWN
        if (value := _own(queue, field)) is not None
        for problem in duration_problems(value, ("configuration", "queues", i, "kai", field), negative=negative)
    ]
    if problems:
        raise InvalidInput(problems)
    reclaim, preempt = ([_micros(_own(queue, field)) for queue in queues] for field in _OWN)
    return MinRuntimes(
        tree, reclaim, preempt,
        default_reclaim=policy.default_reclaim, default_preempt=policy.default_preempt, method=policy.method,
    )  # fmt: skip


def _own(queue: Queue, field: str) -> Duration | None:
    return None if queue.kai is None else getattr(queue.kai, field)


def _micros(value: Duration | None) -> int | None:
    return None if value is None else parse_duration(value, GO_WITH_DAYS)


@dataclass(frozen=True, slots=True)
class CompiledConfiguration:
    """Queues by index in document order; ``Share`` is (cpu, memory, gpu). ``weight`` is the over-quota weight."""

    policy: Policy
    min_runtimes: MinRuntimes
    tree: Tree
    queues: list[Queue]
    deserved: list[Share]
    limit: list[Share]
    weight: list[tuple[float, float, float]]
    priority: list[int]
    created: list[int]


def changed(before: CompiledConfiguration, now: CompiledConfiguration) -> tuple[str, ...]:
    """The rules that ``now``'s release changed since ``before``'s, where the two differ in nothing else."""
    old, new = before.policy.release, now.policy.release
    if (old, new) != (KAI_0_13, KAI_0_17) or replace(now.policy, release=old) != before.policy:
        return ()
    return tuple(change.rule for change in CHANGES) if now.queues == before.queues else ()


def undone(configuration: CompiledConfiguration, rules: Collection[str]) -> CompiledConfiguration:
    """The configuration under its release, with these rules as they were in 0.13."""
    release = configuration.policy.release
    for change in CHANGES:
        if change.rule in rules:
            release = change.undone(release)
    return replace(configuration, policy=replace(configuration.policy, release=release))


def noted(configuration: CompiledConfiguration) -> tuple[CompiledConfiguration, Callable[[], Collection[str]]]:
    """The configuration, and which of the rules that can be undone have been asked of it since."""
    release = NotedRules.of(configuration.policy.release)

    def asked() -> Collection[str]:
        return {change.rule for change in CHANGES if change.field in release.read}

    return replace(configuration, policy=replace(configuration.policy, release=release)), asked


def compile_configuration(configuration: Configuration) -> CompiledConfiguration:
    """Raises InvalidInput: a cycle, an unknown parent, bad settings, several flavors (KAI has none)."""
    tree = compile_tree(configuration.queues)
    policy = compile_policy(configuration.settings.kai)
    problems: list[Problem] = []
    deserved: list[Share] = []
    limit: list[Share] = []
    weight: list[tuple[float, float, float]] = []
    for i, queue in enumerate(configuration.queues):
        safe_point()
        own = _quotas(queue, i, problems)
        deserved.append(_share([q.guaranteed for q in own], 0))
        limit.append(_share([q.limit for q in own], KAI_UNLIMITED))
        cpu, memory, gpu = (queue.weight if q.weight is None else q.weight for q in own)
        weight.append((cpu, memory, gpu))
    if problems:
        raise InvalidInput(problems)
    return CompiledConfiguration(
        policy=policy, min_runtimes=compile_min_runtimes(configuration, tree, policy), tree=tree,
        queues=configuration.queues,
        deserved=deserved, limit=limit, weight=weight, priority=[q.priority for q in configuration.queues],
        created=[OLDEST if q.created_at is None else micros(q.created_at) for q in configuration.queues],
    )  # fmt: skip


def _quotas(queue: Queue, i: int, problems: list[Problem]) -> tuple[Quota, Quota, Quota]:
    for g, group in enumerate(queue.resource_groups or ()):
        if len(group.flavors) > 1:
            where = pointer("configuration", "queues", i, "resource_groups", g, "flavors")
            problems.append(Problem(pointer=where, detail="KAI has no flavors: give one quota a resource"))
    named = {placed.resource: placed for placed in quotas(queue, ("configuration", "queues", i))}
    gpus = [placed for name, placed in named.items() if is_gpu(name)]
    if len(gpus) > 1:
        detail = "several GPU resources: KAI counts GPUs once"
        problems += [Problem(pointer=pointer(*placed.where), detail=detail) for placed in gpus]
    cpu, memory = (named[name].quota if name in named else Quota() for name in ("cpu", "memory"))
    return cpu, memory, gpus[0].quota if gpus else Quota()


def _share(values: Sequence[Quantity | None], absent: int) -> Share:
    cpu, memory, gpu = (
        absent if value is None else KAI_UNLIMITED if value == UNLIMITED else parse_quantity(value, scale)
        for value, scale in zip(values, (1000, 1, 1000), strict=True)
    )
    return cpu, memory, gpu
