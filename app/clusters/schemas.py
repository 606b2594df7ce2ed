"""What followers report: the cluster, evictions, and real preemptions; and what is known and kept of these. What the
cluster evicted for somebody is held against what Arbiter would have evicted.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Annotated, Literal, NamedTuple
from uuid import UUID

import msgspec

from app.answering.snapshots import Counts
from app.solver.model.base import Name, Priority, Time, Total, Wire
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.decision import Decision
from app.solver.model.problems import Finding, few
from app.solver.model.request import DecisionRequest

ShadowOutcome = Literal["agreed", "agreed_earlier", "differs", "unjudged"]
Assumed = Literal["admissions", "flavor_scan"]
Why = Literal["not_named", "not_known", "not_waiting", "too_long_ago", "refused", "unknown"]
Cause = Literal["same", "earlier", Assumed, "nobody", "tie", "victims", "reasons", Why]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=10**9)]
Text = Annotated[str, msgspec.Meta(max_length=2000)]
MOMENTS = 4
_NAMED = 3


class ShadowVictim(Wire, frozen=True, kw_only=True):
    """Running work that was evicted, or that Arbiter would evict."""

    workload: Name
    """The id of the workload, as the state has it."""
    task: Name | None = None
    """The name of one of its tasks. Absent: all of it."""
    reason: Text | None = None
    """Why, in the engine's own word. Absent: the cluster does not say; then it is not compared."""


class ShadowReport(Wire, frozen=True, kw_only=True):
    """``POST /v1/shadow``: one real preemption, and the question that the scheduler had answered."""

    cluster: Name
    """Where it happened: the name under which the cluster is followed."""
    engine: EngineName
    """Which scheduler it was."""
    ask: Name
    """For whom: the id of the ask in the requests, or whatever else is known of who it was."""
    seen_at: Time
    """When the first of the evictions was seen."""
    victims: Annotated[list[ShadowVictim], msgspec.Meta(min_length=1, max_length=100_000)]
    """Who was evicted."""
    requests: Annotated[list[DecisionRequest], msgspec.Meta(max_length=MOMENTS)] = []
    """The question at the moment before, with configuration, state and asks written out. Where it can't be told at
    which moment the scheduler decided, one for each, the likeliest first: it agrees if one of them does."""
    seconds: Seconds = 0
    """How long before the first of the evictions the cluster was what `requests` say. 0: until the moment before it."""
    changes: Total = 0
    """How many changes of objects lie between: the scheduler had not heard of them yet."""
    assumed: Annotated[list[Assumed], msgspec.Meta(max_length=2)] = []
    """What the scheduler knows in its memory alone, as the requests take it to be: `admissions`: work that it had
    admitted and that was not written down yet; `flavor_scan`: where the scan of the ask's flavors goes on (Kueue)."""
    unjudged: Text | None = None
    """Why there is no question to compare with. Exactly one of `requests` and this is given."""
    cause: Why | None = None
    """The same in one word."""


class ShadowRecord(Wire, frozen=True, kw_only=True):
    """A real preemption, compared."""

    id: UUID
    """Its id; ids sort by time."""
    created_at: datetime
    """When it was compared."""
    cluster: str
    """Where it happened."""
    engine: EngineName
    """Which scheduler it was."""
    ask: str
    """For whom."""
    seen_at: datetime
    """When the first of the evictions was seen."""
    outcome: ShadowOutcome
    """`agreed`: Arbiter evicts the same, for the same reasons; `agreed_earlier`: it does for what the cluster was
    `seconds` before; `differs`: it does not; `unjudged`: `detail` says why that can't be told."""
    seconds: Seconds = 0
    """How long before the first of the evictions the cluster was what Arbiter was asked about."""
    changes: Total = 0
    """How many changes of objects lie between."""
    assumed: list[Assumed] = []
    """What the scheduler knew in its memory alone: admissions not written down yet; where a scan of flavors went on."""
    cause: Cause = "unknown"
    """The outcome in one more word, as the metric counts it: `same`, `earlier`, or what was assumed; `nobody`, other
    `victims`, other `reasons`, or a `tie`: both stand where the scheduler chooses by chance (`explanation.ties`); or
    why it is not judged."""
    detail: str
    """How it differs, or why it can't be told, in one sentence; empty where it agrees."""
    observed: list[ShadowVictim]
    """Who was evicted."""
    expected: list[ShadowVictim]
    """Whom Arbiter would have evicted."""
    not_expected: list[ShadowVictim]
    """Who was evicted, though Arbiter would not have, or for another reason."""
    not_observed: list[ShadowVictim]
    """Who was not evicted, though Arbiter would have, or for another reason."""
    has_request: bool
    """Whether `GET /v1/shadow/{id}/request` has the question: it is kept where the two differ."""


class ShadowPage(Wire, frozen=True, kw_only=True):
    items: list[ShadowRecord]
    """Newest first."""
    next_cursor: str | None = None
    """Where the next page begins. Absent: this is the last."""


class ShadowCount(Wire, frozen=True, kw_only=True):
    """What was compared in one interval."""

    at: Time
    """Where it begins."""
    outcomes: dict[ShadowOutcome, Total]
    """How many preemptions had each outcome; one that none had is left out."""


class ShadowCounts(Wire, frozen=True, kw_only=True):
    """``GET /v1/shadow:counts``: how often the two agreed, between two moments."""

    since: Time
    """Included."""
    until: Time
    """Not included."""
    intervals: list[ShadowCount]
    """60 of equal length, one after the other."""
    causes: dict[ShadowOutcome, dict[Cause, Total]]
    """How many had each outcome for each cause, in all of it."""


Stage = Literal["listing", "following", "broken"]


class FollowedKind(Wire, frozen=True, kw_only=True):
    """One kind of object that is followed."""

    kind: Name
    """The kind, as `Workload`."""
    api_version: Name
    """Group and version in which it is read."""
    objects: Total
    """How many there are."""
    resource_version: Text
    """Up to which resource version it has been followed."""
    heard_at: Time | None = None
    """When the API server was last heard: an object, a bookmark or a list. Absent: never."""


class ClusterReport(Wire, frozen=True, kw_only=True):
    """``PUT /v1/clusters/{name}``: what a follower has to say, every few seconds."""

    follower: Name
    """Which follower this is; one runs beside each replica."""
    engine: EngineName
    """Whose objects it follows."""
    snapshot: Name
    """The snapshot that it keeps."""
    configuration: Name
    """The configuration that it keeps."""
    stage: Stage
    """`listing`: it reads everything; `following`: the snapshot is the cluster; `broken`: `error` says why not."""
    kinds: Annotated[list[FollowedKind], msgspec.Meta(max_length=32)]
    """What it follows."""
    counts: Counts | None = None
    """What is in the snapshot. Absent: there is none yet."""
    generation: Total | None = None
    """The generation of the snapshot that it wrote last. Absent: none yet."""
    synced_at: Time | None = None
    """The last time at which the snapshot was all that the follower had heard. Absent: never yet."""
    held_since: Time | None = None
    """Since when the configuration stays at the last revision that could be stored, because what the cluster says is
    refused; `findings` say why. Absent: it is what the cluster says, but for what findings name."""
    lag_seconds: Seconds = 0
    """How long the oldest change of the last batch waited until it was in the snapshot."""
    lists: Annotated[dict[str, Total], msgspec.Meta(max_length=32)] = {}
    """How often it had to list again or put the snapshot again, by reason."""
    findings: Annotated[list[Finding], msgspec.Meta(max_length=1000)] = []
    """What of the cluster could not be carried over, and a configuration that was refused."""
    error: Text | None = None
    """What it can't do now. Absent: all is well."""
    local_queues: Annotated[dict[str, str], msgspec.Meta(max_length=100_000)] = {}
    """The ClusterQueue of each LocalQueue, by `namespace/name` (Kueue)."""
    priority_classes: Annotated[dict[str, Priority], msgspec.Meta(max_length=10_000)] = {}
    """The value of each PriorityClass of Kubernetes, by name."""
    workload_priority_classes: Annotated[dict[str, Priority], msgspec.Meta(max_length=10_000)] = {}
    """The value of each WorkloadPriorityClass of Kueue, by name: one of Kubernetes of the same name is another."""


class ClusterLease(Wire, frozen=True, kw_only=True):
    """Which part the follower has until it reports again."""

    writer: bool
    """Whether it writes the configuration: one follower of a cluster does."""
    seconds: float
    """For how long, unless it reports before."""


class ClusterFollower(ClusterReport, frozen=True, kw_only=True):
    """A follower's last report."""

    reported_at: datetime
    """When it was heard last."""
    age_seconds: float
    """Seconds since then."""
    writer: bool
    """Whether it writes the configuration."""


class FollowedCluster(Wire, frozen=True, kw_only=True):
    """``GET /v1/clusters/{name}``."""

    name: str
    """Its name."""
    engine: EngineName
    """Whose objects are followed."""
    snapshot: str
    """The snapshot to decide on."""
    configuration: str
    """The configuration that is kept."""
    age_seconds: float | None = None
    """How old the freshest follower's snapshot is at most. Absent: there is none yet."""
    followers: list[ClusterFollower]
    """By name."""


class FollowedClusterList(Wire, frozen=True, kw_only=True):
    items: list[FollowedCluster]
    """By name."""


class SeenEviction(Wire, frozen=True, kw_only=True):
    """One eviction, as the cluster says it."""

    at: Time
    """When."""
    workload: Name
    """The id of the workload, as the state has it."""
    task: Name | None = None
    """The name of one of its tasks. Absent: all of it."""
    job: Name | None = None
    """Whose it is, as `namespace/name`: the Job, JobSet or other object that owns it. Absent: nobody's."""
    job_kind: Name | None = None
    """The kind of that."""
    queue: Name | None = None
    """The queue that it ran in."""
    by: Name | None = None
    """For whom: the id of the ask. Absent: the cluster does not say, or for nobody."""
    reason: Text | None = None
    """Why, in the engine's own word."""
    message: Text | None = None
    """Why, in the cluster's own sentence."""
    outcome: ShadowOutcome | None = None
    """What shadow found. Absent: it was not compared."""
    shadow: UUID | None = None
    """The comparison: `GET /v1/shadow/{id}`."""


class EvictionReport(Wire, frozen=True, kw_only=True):
    """``POST /v1/clusters/{name}/evictions``: evictions that a follower saw."""

    engine: EngineName
    """Whose objects it follows."""
    evictions: Annotated[list[SeenEviction], msgspec.Meta(min_length=1, max_length=10_000)]
    """In their order. One that is known already is not kept again."""


class EvictionRecord(SeenEviction, frozen=True, kw_only=True):
    """An eviction that was seen."""

    id: UUID
    """Its id; ids sort by time."""
    cluster: str
    """Where it happened."""
    engine: EngineName
    """Which scheduler is followed there."""


USE_SECONDS = 300.0
"""How often what queues use is kept: once in each interval of this length, which begin with 1970."""
Amounts = Annotated[dict[Name, Annotated[float, msgspec.Meta(ge=0, le=2**63)]], msgspec.Meta(max_length=1000)]


class QueueUse(Wire, frozen=True, kw_only=True):
    """What a queue uses with all below it, in whole units."""

    usage: Annotated[dict[str, Amounts], msgspec.Meta(max_length=1000)] = {}
    """What runs there holds: by flavor, then by resource. Empty: where the system has no flavors, or none is known."""
    waiting: Amounts = {}
    """What waits there asks for, by resource."""


class UseReport(Wire, frozen=True, kw_only=True):
    """``POST /v1/clusters/{name}/use``: what queues used at a moment."""

    at: Time
    """When."""
    total: QueueUse
    """All queues together."""
    queues: Annotated[dict[Name, QueueUse], msgspec.Meta(max_length=100_000)] = {}
    """By queue; those that hold nothing and want nothing are left out."""


class UseLine(Wire, frozen=True, kw_only=True):
    """One resource over time."""

    resource: str
    """The resource."""
    flavor: str | None = None
    """Of which flavor. Absent: the system has none, or it is not known."""
    values: list[float]
    """In whole units, one for each moment."""


class UseSeries(Wire, frozen=True, kw_only=True):
    """``GET /v1/clusters/{name}/use``."""

    queue: str | None = None
    """The queue, with all below it. Absent: all queues together."""
    since: Time
    """Included."""
    until: Time
    """Not included."""
    at: list[Time]
    """The moments at which it was looked: of each of so many equal parts of the time the last."""
    usage: list[UseLine]
    """What was held, by flavor and resource."""
    waiting: list[UseLine]
    """What waited, by resource."""


class EvictionPage(Wire, frozen=True, kw_only=True):
    items: list[EvictionRecord]
    """Newest first."""
    next_cursor: str | None = None
    """Where the next page begins. Absent: this is the last."""


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
