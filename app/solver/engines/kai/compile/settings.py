"""KAI's settings as the engine reads them: durations in microseconds, defaults filled in, bad values judged.

Released KAI never refuses a bad node-pool value: an unreadable or negative default counts as 0 and an unknown
resolve method as ``lca``. ``rules: shipped`` does the same (and a finding says so), ``rules: documented`` refuses it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.solver.compiled.tree import Tree
from app.solver.engines.kai.compile.min_runtime import Method, MinRuntimes, Rules
from app.solver.model.base import Duration
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.duration import GO_WITH_DAYS, DurationError, parse
from app.solver.model.kai import Action, Settings
from app.solver.model.problems import InvalidInput, Problem, pointer

ALL_ACTIONS: tuple[Action, ...] = ("allocate", "consolidation", "reclaim", "preempt")
_SETTINGS = ("configuration", "settings", "kai")
_DEFAULTS = ("default_reclaim_min_runtime", "default_preempt_min_runtime")
_OWN = ("reclaim_min_runtime", "preempt_min_runtime")


@dataclass(frozen=True, slots=True)
class Policy:
    """``settings.kai`` with its defaults; minimum runtimes in microseconds."""

    rules: Rules
    default_reclaim: int
    default_preempt: int
    method: Method
    actions: tuple[Action, ...]
    use_scheduling_signatures: bool
    max_consolidation_preemptees: int | None
    allow_consolidating_reclaim: bool


def compile_policy(settings: Settings | None) -> Policy:
    """The settings of one configuration. Raises InvalidInput under ``rules: documented`` for bad values."""
    given = settings or Settings()
    problems = list(settings_problems(given))
    if problems and given.rules == "documented":
        raise InvalidInput(problems)
    return Policy(
        rules=given.rules,
        default_reclaim=_default(given.default_reclaim_min_runtime),
        default_preempt=_default(given.default_preempt_min_runtime),
        method="queue" if given.reclaim_resolve_method == "queue" else "lca",
        actions=ALL_ACTIONS if given.actions is None else tuple(given.actions),
        use_scheduling_signatures=given.use_scheduling_signatures,
        max_consolidation_preemptees=given.max_consolidation_preemptees,
        allow_consolidating_reclaim=given.allow_consolidating_reclaim,
    )


def _default(value: Duration | None) -> int:
    try:
        return 0 if value is None else max(0, parse(value, GO_WITH_DAYS))
    except DurationError:
        return 0


def settings_problems(settings: Settings) -> Iterator[Problem]:
    """What KAI silently replaces: pointers start at /configuration."""
    for field in _DEFAULTS:
        value: Duration | None = getattr(settings, field)
        if value is not None:
            yield from _duration_problems(value, (*_SETTINGS, field))
    if settings.reclaim_resolve_method not in ("lca", "queue"):
        yield Problem(
            pointer=pointer(*_SETTINGS, "reclaim_resolve_method"),
            detail=f"{settings.reclaim_resolve_method!r} is neither 'lca' nor 'queue'",
        )


def _duration_problems(value: Duration, at: tuple[str | int, ...], *, negative: bool = False) -> Iterator[Problem]:
    try:
        if parse(value, GO_WITH_DAYS) < 0 and not negative:
            yield Problem(pointer=pointer(*at), detail=f"{value!r} is negative")
    except DurationError as error:
        yield Problem(pointer=pointer(*at), detail=str(error))


def compile_min_runtimes(configuration: Configuration, tree: Tree, policy: Policy) -> MinRuntimes:
    """The minimum runtimes of ``configuration``. Raises InvalidInput for values that don't parse, and under
    ``rules: documented`` for negative ones (released KAI takes a queue's negative value as it stands)."""
    queues = configuration.queues
    shipped = policy.rules == "shipped"
    problems = [
        problem
        for i, queue in enumerate(queues)
        for field in _OWN
        if (value := _own(queue, field)) is not None
        for problem in _duration_problems(value, ("configuration", "queues", i, "kai", field), negative=shipped)
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
    return None if value is None else parse(value, GO_WITH_DAYS)
