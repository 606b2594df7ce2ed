"""Kueue's blocks: settings, queue policies, and the knobs that KEP-83 deferred."""

from typing import Annotated, Literal

import msgspec

from app.solver.model.base import Count, Duration, Name, Priority, Resources, Time, Wire

Strategy = Literal["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
Sorting = Literal["ByLowestPriority", "ByLowestRuntime", "ByLongestRuntime"]
Fungibility = Literal["MayStopSearch", "TryNextFlavor"]
Release = Literal["ff69552e"]


class AdmissionFairSharing(Wire, frozen=True, kw_only=True):
    """How what LocalQueues have consumed is counted (Kueue: the manager's ``admissionFairSharing``)."""

    usage_half_life_time: Duration = 0
    """After how long what was consumed counts half. 0: it counts nothing."""
    usage_sampling_interval: Duration = 300
    """How often what is consumed is sampled; above 0. Default: 5 minutes."""
    resource_weights: dict[str, float] = {}
    """How much one unit of a resource counts, by resource. Absent: 1."""


class Settings(Wire, frozen=True, kw_only=True):
    """``settings.kueue``. Strategies default to Kueue's own: final share first, then initial share."""

    fair_sharing: bool = False
    """Whether victims are chosen by fair sharing instead of the classical algorithm."""
    preemption_strategies: list[Strategy] | None = None
    """The strategies of fair sharing, tried in order. Absent: both, final share first."""
    quota_check_strategy: Literal["BlockUndeclared", "IgnoreUndeclared"] = "BlockUndeclared"
    """What becomes of an ask for a resource that its queue has no quota for: `BlockUndeclared`: it can't run;
    `IgnoreUndeclared`: that resource is not counted."""
    admission_fair_sharing: AdmissionFairSharing | None = None
    """How what LocalQueues have consumed is counted, for the ClusterQueues whose `admission_mode` wants it. Absent: it
    is not."""
    release: Release = "ff69552e"
    """Whose rules hold: Kueue as of that commit (August 2026), feature gates at their defaults."""


class BorrowWithinCohort(Wire, frozen=True, kw_only=True):
    """Preempting in the cohort while borrowing: only at or below the threshold, and below the ask's priority."""

    policy: Literal["Never", "LowerPriority"] = "Never"
    """Whether an ask may preempt lower priority in its cohort while it borrows."""
    max_priority_threshold: Priority | None = None
    """Only workloads of at most this priority. Absent: any below that of the ask."""


class Milestone(Wire, frozen=True, kw_only=True):
    """KEP-83 (deferred): the cost of stopping a workload that has run for ``seconds``; linear in between."""

    seconds: float
    """How long the workload has run."""
    cost: float
    """What stopping it then costs; compared only with other costs."""


class LongRunnerPenalty(Wire, frozen=True, kw_only=True):
    """KEP-83 (deferred): after ``grace``, effective priority falls ``rate_per_hour`` down to ``floor``."""

    grace: Duration
    """How long a workload runs before its priority falls."""
    rate_per_hour: float
    """How much priority falls each hour after that."""
    floor: Priority
    """Below this it does not fall."""


class WaitingBoost(Wire, frozen=True, kw_only=True):
    """KEP-83 (deferred): after ``grace`` of waiting, priority rises ``rate_per_hour`` up to ``ceiling``."""

    grace: Duration
    """How long an ask waits before its priority rises."""
    rate_per_hour: float
    """How much priority rises each hour after that."""
    ceiling: Priority
    """Above this it does not rise."""


class Preemption(Wire, frozen=True, kw_only=True):
    """``queue.kueue.preemption``."""

    within_cluster_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = "Never"
    """Whom an ask may preempt in its own ClusterQueue."""
    reclaim_within_cohort: Literal["Never", "LowerPriority", "Any"] = "Never"
    """Whom an ask may preempt in other ClusterQueues of the cohort that use more than their nominal quota."""
    borrow_within_cohort: BorrowWithinCohort | None = None
    """Whether an ask that borrows may preempt in the cohort. Absent: no."""
    trigger_after_workload_waiting_seconds: float | None = None
    """How long an ask waits before it may preempt (KEP-83, not in Kueue yet). Absent: 0."""
    workload_sorting: list[Sorting] | None = None
    """How candidates are ordered, first criterion first (KEP-83, not in Kueue yet). Absent: Kueue's own order."""
    disruption_cost_milestones: list[Milestone] | None = None
    """What stopping its workloads costs, by how long they have run (KEP-83, not in Kueue yet). Absent: nothing."""
    long_runner_penalty: LongRunnerPenalty | None = None
    """How priority of what runs falls with time (KEP-83, not in Kueue yet). Absent: it does not."""
    waiting_boost: WaitingBoost | None = None
    """How priority of what waits rises with time (KEP-83, not in Kueue yet). Absent: it does not."""


class FlavorFungibility(Wire, frozen=True, kw_only=True):
    """When a flavor search stops, and what it prefers when it does not."""

    when_can_borrow: Fungibility = "MayStopSearch"
    """Whether the search for a flavor stops at one that fits by borrowing."""
    when_can_preempt: Fungibility = "TryNextFlavor"
    """Whether the search for a flavor stops at one that fits by preempting."""
    preference: Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"] | None = None
    """What to prefer where the search did not stop. Absent: borrowing over preemption."""


class Queue(Wire, frozen=True, kw_only=True):
    """``queue.kueue``."""

    preemption: Preemption | None = None
    """Whom its asks may preempt. Absent: nobody."""
    flavor_fungibility: FlavorFungibility | None = None
    """How its asks search for a flavor. Absent: the defaults."""
    queueing_strategy: Literal["BestEffortFIFO", "StrictFIFO"] = "BestEffortFIFO"
    """`StrictFIFO`: an ask that waits holds up those behind it; `BestEffortFIFO`: it steps aside."""
    role: Literal["cohort", "cluster_queue"] | None = None
    """Whether it is a cohort or a ClusterQueue. Absent: a cohort if it has children."""
    admission_mode: Literal["NoAdmissionFairSharing", "UsageBasedAdmissionFairSharing"] = "NoAdmissionFairSharing"
    """`UsageBasedAdmissionFairSharing`: before priority, work of the LocalQueue that has consumed least goes first, and
    that of the one that has consumed most is preempted first (Kueue: admissionScope)."""
    stop_policy: Literal["None", "Hold", "HoldAndDrain"] = "None"
    """`Hold`: the ClusterQueue admits nothing and nobody may preempt what runs in it; `HoldAndDrain`: what runs in it
    is evicted too."""
    inactive: str | None = None
    """Why the ClusterQueue is not active otherwise (a flavor or an admission check is missing): it is as with `Hold`.
    Absent: it is active."""


Place = Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)]


class SliceLayer(Wire, frozen=True, kw_only=True):
    level: str
    """The level, a node label key, within one domain of which each slice must lie."""
    size: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    """How many pods a slice of this layer has."""


class TopologyRequest(Wire, frozen=True, kw_only=True):
    """How close together the pods of a pod set must run (Kueue: PodSetTopologyRequest)."""

    required: str | None = None
    """The level, a node label key, within one domain of which all must run."""
    preferred: str | None = None
    """The level within one domain of which they run where that is possible, else in a domain above, else in several."""
    unconstrained: bool = False
    """Whether they may run anywhere, the fullest domains first."""
    slice_required: str | None = None
    """The level within one domain of which each slice of them must run."""
    slice_size: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
    """How many pods such a slice has."""
    slice_layers: Annotated[list[SliceLayer], msgspec.Meta(max_length=3)] | None = None
    """Slices within slices, outermost first, instead of the two before."""
    pod_set_group: str | None = None
    """Pod sets with the same name here get the same flavors and are placed together: workers and their leader."""


class TopologyDomain(Wire, frozen=True, kw_only=True):
    values: list[str]
    """Its label values, one for each of the assignment's levels."""
    count: Count
    """How many pods run there."""


class TopologyAssignment(Wire, frozen=True, kw_only=True):
    """Where the pods of a pod set run."""

    levels: list[str]
    """Node label keys, outermost first: `kubernetes.io/hostname` alone where that is the lowest level."""
    domains: list[TopologyDomain]
    """Domains of the lowest level, in the order of their label values."""


class Topology(Wire, frozen=True, kw_only=True):
    """Levels of nodes, as racks in blocks (Kueue: Topology)."""

    name: Name
    """Unique among the topologies; flavors name it."""
    levels: Annotated[list[str], msgspec.Meta(min_length=1, max_length=16)]
    """Node label keys, outermost first."""


class FlavorScan(Wire, frozen=True, kw_only=True):
    """Where the scan of an ask's flavors stopped when it was last nominated (Kueue: LastAssignment). It goes on one
    after that, unless it is older than one cycle and ``changed``."""

    flavors: dict[str, dict[str, Place]]
    """By name of the task, by resource: the place, in the order of its resource group and from 0, of the flavor at
    which the scan of the group stopped; -1: that was the last."""
    cycles: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 1
    """How many cycles ago that was, of the whole scheduler. 1: in the one before this."""
    changed: bool = False
    """Whether something was admitted to the queue, evicted from it, finished or released in it since, or its quota
    changed."""


class Ask(Wire, frozen=True, kw_only=True):
    """``ask.kueue``: when the ask was first tried, for waiting times; and what the last cycle left behind for it, which
    that cycle's answer says (``decisions[].kueue``)."""

    local_queue: str | None = None
    """Its LocalQueue, as `state.queues` has it. Absent: one of the name of its queue."""
    preemption_pending: bool = False
    """Whether its last cycle ended with victims that must stop first: in a queue of strategy BestEffortFIFO it goes
    before everything else in the queue, whatever its priority or age."""
    flavor_scan: FlavorScan | None = None
    """Where the scan of its flavors stopped. Absent: it starts at the first."""
    inadmissible: str | None = None
    """Why it is not even tried: its LocalQueue is stopped, it is not active, its namespace is not selected, its
    admission checks failed. It waits, with this as the reason. Absent: nothing speaks against it."""
    requeue_at: Time | None = None
    """Until when it steps back after an eviction (Kueue: requeueState.requeueAt). Absent: it does not."""
    first_attempt_at: Time | None = None
    """When it was first tried, for waiting times (KEP-83, not in Kueue yet). Absent: when it was created."""
    owners: list[str] = []
    """UIDs of what owns its Workload object: its job, or its pods. Decides nothing: the guard knows pods by them."""


class Workload(Wire, frozen=True, kw_only=True):
    """``workload.kueue``."""

    local_queue: str | None = None
    """Its LocalQueue, as `state.queues` has it. Absent: one of the name of its queue."""
    drained: bool = False
    """Whether its LocalQueue has the stop policy `HoldAndDrain`: it is evicted."""
    unhealthy_nodes: Annotated[list[str], msgspec.Meta(max_length=8)] = []
    """Hosts of its topology assignment that have failed: the pods of one get another host, or the workload is evicted;
    with more than one it is evicted."""
    owners: list[str] = []
    """UIDs of what owns its Workload object: its job, or its pods. Decides nothing: the guard knows pods by them."""


class QueueState(Wire, frozen=True, kw_only=True):
    """``state.queues[].kueue``, of a LocalQueue, for admission fair sharing."""

    consumed: Resources | None = None
    """What its work has consumed, by resource, what is long ago counting less (Kueue: consumedResources). Fractions
    of any fineness. Absent: unknown, which counts as nothing."""
    updated_at: Time | None = None
    """When `consumed` was worked out. From then on it is sampled with what runs. Absent: now."""
    penalty: Resources = {}
    """What work that has quota and is not admitted yet counts beforehand, by resource (Kueue: entry penalties)."""
    weight: float = 1.0
    """Its share among the LocalQueues of its ClusterQueue. 0: it always comes last."""


class Options(Wire, frozen=True, kw_only=True):
    """``options.kueue``: nothing yet."""


class RunOptions(Wire, frozen=True, kw_only=True):
    """``options.kueue`` of a simulation."""

    requeue_batch_period: Duration = 1
    """How long after something finished or was released those come back that stepped aside. Default: 1 s, as shipped;
    0: at once."""
