"""What the cluster evicted for somebody, held against what Arbiter would have evicted."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from app.clusters.schemas import ShadowVictim
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Decision
from app.solver.model.problems import few
from app.solver.model.request import DecisionRequest

_NAMED = 3


class Compared(NamedTuple):
    """How observed and expected evictions relate; ``detail`` is empty where they are the same."""

    expected: list[ShadowVictim]
    not_expected: list[ShadowVictim]
    not_observed: list[ShadowVictim]
    detail: str


class _Victim(msgspec.Struct, frozen=True):
    workload: str
    reason: str
    task: str | None = None


class _Explanation(msgspec.Struct, frozen=True):
    ties: list[str] | None = None


class _Decision(msgspec.Struct, frozen=True):
    ask: str
    outcome: str
    victims: list[_Victim]
    explanation: _Explanation | None = None


class Answer(msgspec.Struct, frozen=True):
    """What is read of an answer."""

    decisions: list[_Decision]


Decided = Decision | _Decision
"""One that was made here, or what is read of one in an answer."""


def compare(
    ask: str, observed: Sequence[ShadowVictim], answer: bytes, gone: Collection[str] = ()
) -> Compared:  # fmt: skip
    """``answer``: that of a decision in which ``ask`` is asked for; ``gone``: workloads that were evicted already: a
    search for victims may come upon them again, and nobody evicts them twice (Kueue: IssuePreemptions)."""
    decided = {decision.ask: decision for decision in msgspec.json.decode(answer, type=Answer).decisions}[ask]
    return compared(observed, decided, gone)


def expected_of(decided: Decided, gone: Collection[str]) -> list[ShadowVictim]:
    """Whom ``decided`` evicts that are not evicted already."""
    return [
        ShadowVictim(workload=v.workload, task=v.task, reason=v.reason)
        for v in decided.victims if v.workload not in gone
    ]  # fmt: skip


def compared(observed: Sequence[ShadowVictim], decided: Decided, gone: Collection[str]) -> Compared:
    """The order of evictions does not count: a cluster carries them out at the same time. A reason counts where the
    cluster gives one."""
    expected = expected_of(decided, gone)
    seen, wanted = {_key(victim): victim for victim in observed}, {_key(victim): victim for victim in expected}
    not_expected = [victim for key, victim in seen.items() if not same(victim, wanted.get(key))]
    not_observed = [victim for key, victim in wanted.items() if not same(seen.get(key), victim)]
    if not not_expected and not not_observed:
        return Compared(expected, [], [], "")
    return Compared(expected, not_expected, not_observed, _sentence(decided.outcome, not_expected, not_observed))


def _key(victim: ShadowVictim) -> tuple[str, str | None]:
    return victim.workload, victim.task


def same(observed: ShadowVictim | None, expected: ShadowVictim | None) -> bool:
    if observed is None or expected is None:
        return False
    return observed.reason is None or observed.reason == expected.reason


def is_tied(ask: str, decisions: Iterable[Decided], request: DecisionRequest, differing: Compared) -> bool:
    """Whether who was evicted for ``ask``, and who would have been, stand where the scheduler chooses by chance: nodes,
    or cohorts, as the explanation names them. ``decisions``: on ``request``, which is whole by itself."""
    explanation = next(decision.explanation for decision in decisions if decision.ask == ask)
    ties = set(explanation.ties or ()) if explanation is not None else set[str]()
    if not ties or not differing.not_expected or not differing.not_observed:
        return False
    configuration = request.configuration
    assert isinstance(configuration, Configuration)
    parents = {queue.name: queue.parent for queue in configuration.queues}
    workloads = {workload.id: workload for workload in request.state.workloads}

    def places(victim: ShadowVictim) -> set[str]:
        workload = workloads.get(victim.workload)
        if workload is None:
            return set()
        own = {task.node for task in workload.tasks if task.node and victim.task in (None, task.name)}
        queue: str | None = workload.queue
        while queue is not None and queue not in own:
            own.add(queue)
            queue = parents.get(queue)
        return own

    return all(not places(victim).isdisjoint(ties) for victim in (*differing.not_expected, *differing.not_observed))


def _sentence(outcome: str, not_expected: list[ShadowVictim], not_observed: list[ShadowVictim]) -> str:
    said = [f"Arbiter says {outcome}"]
    if not_expected:
        said.append(f"evicted, though Arbiter would not: {few(list(map(_shown, not_expected)), _NAMED)}")
    if not_observed:
        said.append(f"not evicted, though Arbiter would: {few(list(map(_shown, not_observed)), _NAMED)}")
    return "; ".join(said)


def _shown(victim: ShadowVictim) -> str:
    name = victim.workload[:120] if victim.task is None else f"{victim.workload[:120]}/{victim.task[:120]}"
    return name if victim.reason is None else f"{name} ({victim.reason[:60]})"
