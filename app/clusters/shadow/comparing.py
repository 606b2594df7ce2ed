"""Who was evicted against whom Arbiter would evict. Pure."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

import msgspec

from app.clusters.shadow.schemas import ShadowVictim

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


class _Decision(msgspec.Struct, frozen=True):
    ask: str
    outcome: str
    victims: list[_Victim]


class _Answer(msgspec.Struct, frozen=True):
    decisions: list[_Decision]


class Decided(Protocol):
    """What is read of a decision."""

    @property
    def outcome(self) -> str: ...

    @property
    def victims(self) -> Sequence["Victim"]: ...


class Victim(Protocol):
    """What is read of a victim."""

    @property
    def workload(self) -> str: ...

    @property
    def task(self) -> str | None: ...

    @property
    def reason(self) -> str: ...


def compare(
    ask: str, observed: Sequence[ShadowVictim], answer: bytes, gone: Collection[str] = ()
) -> Compared:  # fmt: skip
    """``answer``: that of a decision in which ``ask`` is asked for; ``gone``: workloads that were evicted already: a
    search for victims may come upon them again, and nobody evicts them twice (Kueue: IssuePreemptions)."""
    decided = {one.ask: one for one in msgspec.json.decode(answer, type=_Answer).decisions}[ask]
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
    seen, wanted = {_key(one): one for one in observed}, {_key(one): one for one in expected}
    not_expected = [one for key, one in seen.items() if not same(one, wanted.get(key))]
    not_observed = [one for key, one in wanted.items() if not same(seen.get(key), one)]
    if not not_expected and not not_observed:
        return Compared(expected, [], [], "")
    return Compared(expected, not_expected, not_observed, _told(decided.outcome, not_expected, not_observed))


def _key(victim: ShadowVictim) -> tuple[str, str | None]:
    return victim.workload, victim.task


def same(observed: ShadowVictim | None, expected: ShadowVictim | None) -> bool:
    if observed is None or expected is None:
        return False
    return observed.reason is None or observed.reason == expected.reason


def _told(outcome: str, not_expected: list[ShadowVictim], not_observed: list[ShadowVictim]) -> str:
    said = [f"Arbiter says {outcome}"]
    if not_expected:
        said.append(f"evicted, though Arbiter would not: {_few(not_expected)}")
    if not_observed:
        said.append(f"not evicted, though Arbiter would: {_few(not_observed)}")
    return "; ".join(said)


def _few(victims: list[ShadowVictim]) -> str:
    shown = ", ".join(_shown(victim) for victim in victims[:_NAMED])
    return shown if len(victims) <= _NAMED else f"{shown} and {len(victims) - _NAMED} more"


def _shown(victim: ShadowVictim) -> str:
    name = victim.workload[:120] if victim.task is None else f"{victim.workload[:120]}/{victim.task[:120]}"
    return name if victim.reason is None else f"{name} ({victim.reason[:60]})"
