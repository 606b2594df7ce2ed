"""The releases of KAI Scheduler that an answer can follow, the rules of the search in which they part, and every rule
that answers name.

A release is a row of ``RELEASES``; what a rule does is in the file of its subject, which asks the row. ``CHANGES``
names the rules one by one, so that a comparison of releases can say which of them decided: 0.17 with one rule as it was
in 0.13 is a row too.

Sources: KAI-Scheduler 72de64f (0.13) and d5bc503a (0.17), paths below pkg/scheduler.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from app.solver.model.kai import Release, Rules
from app.solver.model.problems import PROPOSALS, Rule

Generator = Literal["node-local", "multi-node"]
"""How scenarios come out of a prefix of the victim order: on one node of its latest victim, or on growing sets."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """What ``settings.kai.rules`` means, whichever release it is.

    ``refuses_settings``: values that KAI silently replaces are refused, and negative minimum runtimes of queues.
    ``protects_at_end``: a minimum runtime protects at its last instant too; one of 0 never does, also not what starts
    in the future. ``counts_listed``: whatever a scenario lists of a gang counts as lost, and what is being released as
    running; otherwise what it really evicts, and what really runs. ``exact``: an eviction counts once, nothing is
    drawn, nobody takes back what the same cycle placed, and a solution is always carried out.
    """

    name: Rules
    refuses_settings: bool
    protects_at_end: bool
    counts_listed: bool
    exact: bool


RULE_SETS: Final[dict[Rules, RuleSet]] = {
    rules.name: rules for rules in (
        RuleSet("documented", refuses_settings=True, protects_at_end=True, counts_listed=False, exact=True),
        RuleSet("shipped", refuses_settings=False, protects_at_end=False, counts_listed=True, exact=False),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """What a release does. ``draws``: what hangs on the order of a map is drawn; otherwise the order of the request
    stands. ``filters_by_queue``: reclaim leaves out victims whose queue, or one above it, is within
    its share. ``generators``: in the order in which each has to solve the whole gang. ``doubling``: parts of a gang
    are 1, 2, 4 and so on, then halved, and the whole is solved once more; otherwise one pod more each time.
    ``own_scenario``: validators judge what one scenario takes and its refusal ends nothing else; otherwise the whole
    prefix, which a refusal ends. ``nodes_of_recorded``: nodes of everybody recorded are open to pods too.
    ``joined_chunks``: what a scenario takes of a job is recorded whole. ``carries_running``: a part of a gang counts
    the pods that its job runs. ``restores_nodes``: nodes that a refused scenario opened are closed again.
    ``nodes_by_name``: nodes of the latest victim are taken by name, where something is listed; otherwise as its pods
    go, and those too where nothing is.
    ``sub_group_trees``: gangs are trees, elastic at every level; otherwise pod sets that are all needed.
    ``knows_stuck``: pods that should have gone keep their room; otherwise it is about to be free.
    ``delays_preemption``: a job can be made to wait before it makes anybody go. ``own_staleness``: a gang may have a
    grace of its own before it is evicted as stale. ``measures_gpu_memory``: GPU memory counts in GPUs of the smallest
    node before it has one, and of the largest for bounds; otherwise in GPUs of 100 MiB, and for bounds of a gang not.
    ``compares_gpus``: a job is no easier than another by the GPUs that pods count; otherwise by their devices and the
    part of each. ``leaves_out_absent``: what a node has nothing of is not counted there; otherwise who holds it there
    leaves it below 0. ``overfull_for_all``: who holds more of something than the node has keeps everybody off;
    otherwise, beside CPU, memory and GPUs, who names it, if with 0: of which some must be left. ``skips_oversized``: a
    job of which a pod is larger than any node is passed over, and is none that failed. ``budgets_time``: a search ends
    after a time, which changes no answer here.
    """

    release: Release
    source: str
    draws: bool
    filters_by_queue: bool
    generators: tuple[Generator, ...]
    doubling: bool
    own_scenario: bool
    nodes_of_recorded: bool
    joined_chunks: bool
    carries_running: bool
    restores_nodes: bool
    nodes_by_name: bool
    sub_group_trees: bool
    knows_stuck: bool
    delays_preemption: bool
    own_staleness: bool
    measures_gpu_memory: bool
    compares_gpus: bool
    leaves_out_absent: bool
    overfull_for_all: bool
    skips_oversized: bool
    budgets_time: bool

    @property
    def one_prefix(self) -> bool:
        """Whether one prefix serves all parts of a gang: nothing of the search is newer than 0.13."""
        return not (
            self.doubling or self.own_scenario or self.nodes_of_recorded or self.joined_chunks
            or self.carries_running or self.restores_nodes or self.nodes_by_name
            or self.generators != _NODE_LOCAL
        )  # fmt: skip


class NotedRules(ReleaseRules):
    """The same rules, which note what of them is read: what was not has changed nothing. Equal to no others."""

    __slots__ = ("read",)
    read: set[str]

    @classmethod
    def of(cls, rules: ReleaseRules) -> "NotedRules":
        """``rules``, of which nothing has been read."""
        noted = cls(**{name: getattr(rules, name) for name in _FIELDS})
        object.__setattr__(noted, "read", set())
        return noted

    def __getattribute__(self, name: str) -> Any:
        if name in _FIELDS:
            self.read.add(name)
        return super().__getattribute__(name)


_FIELDS: Final = frozenset(ReleaseRules.__dataclass_fields__)
_NODE_LOCAL: Final[tuple[Generator, ...]] = ("node-local",)
KAI_0_13: Final = ReleaseRules(
    release="0.13", source="KAI-Scheduler 72de64f", draws=False,
    filters_by_queue=False, generators=_NODE_LOCAL, doubling=False, own_scenario=False,
    nodes_of_recorded=False, joined_chunks=False, carries_running=False, restores_nodes=False, nodes_by_name=False,
    sub_group_trees=False, knows_stuck=False, delays_preemption=False, own_staleness=False, measures_gpu_memory=False,
    compares_gpus=False, leaves_out_absent=False, overfull_for_all=False, skips_oversized=False, budgets_time=False,
)  # fmt: skip
KAI_0_17: Final = ReleaseRules(
    release="0.17", source="KAI-Scheduler d5bc503a", draws=True,
    filters_by_queue=True, generators=("node-local", "multi-node"), doubling=True, own_scenario=True,
    nodes_of_recorded=True, joined_chunks=True, carries_running=True, restores_nodes=True, nodes_by_name=True,
    sub_group_trees=True, knows_stuck=True, delays_preemption=True, own_staleness=True, measures_gpu_memory=True,
    compares_gpus=True, leaves_out_absent=True, overfull_for_all=True, skips_oversized=True, budgets_time=True,
)  # fmt: skip
RELEASES: Final[dict[Release, ReleaseRules]] = {rules.release: rules for rules in (KAI_0_13, KAI_0_17)}


@dataclass(frozen=True, slots=True)
class Change:
    """A rule that 0.17 changed: its id, the field of ``ReleaseRules`` that holds it, what it was and what it is."""

    rule: str
    field: str
    before: str
    now: str
    source: str

    def undone(self, rules: ReleaseRules) -> ReleaseRules:
        """``rules``, with this one as it was in 0.13."""
        old: dict[str, Any] = {self.field: getattr(KAI_0_13, self.field)}
        return replace(rules, **old)


_SOLVERS = "actions/common/solvers"
CHANGES: Final = (
    Change(
        "reclaim-victim-filter", "filters_by_queue", "reclaim tries every preemptible job of another queue",
        "reclaim leaves out whose queue, or one above it, holds no more than its share",
        "plugins/proportion/reclaimable/filter_victims.go",
    ),
    Change(
        "sg-multinodegang", "generators", "a scenario evicts on one node of the latest victim",
        "a second search evicts on several nodes at once", "plugins/multinodegang",
    ),
    Change(
        "doubling-and-final-probe", "doubling", "a gang is solved one pod more at a time",
        "a gang is solved for 1, 2, 4 and so on of its pods, and the whole once more", f"{_SOLVERS}/job_solver.go",
    ),
    Change(
        "validator-judges-own-scenario-only", "own_scenario",
        "validators judge every victim listed so far, and a refusal ends what the list could still offer",
        "validators judge what one scenario takes, and the next one is tried", "plugins/nodelocalgreedy/generator.go",
    ),
    Change(
        "feasible-nodes-of-recorded-victims", "nodes_of_recorded", "pods go to open nodes and those of new victims",
        "pods go to nodes of victims that smaller parts of the gang needed too", f"{_SOLVERS}/by_pod_solver.go",
    ),
    Change(
        "chunks-of-a-job-grouped", "joined_chunks", "an elastic victim is recorded pod by pod",
        "what a scenario takes of an elastic victim is recorded whole", "plugins/nodelocalgreedy/generator.go",
    ),
    Change(
        "partial-gang-carries-running-pods", "carries_running", "a part of a gang competes as if nothing of it ran",
        "a part of a gang competes with the pods that its job runs", f"{_SOLVERS}/job_solver.go",
    ),
    Change(
        "feasible-nodes-restored", "restores_nodes", "nodes that a refused scenario opened stay open",
        "nodes that a refused scenario opened are closed again", f"{_SOLVERS}/by_pod_solver.go",
    ),
    Change(
        "nodes-by-name", "nodes_by_name",
        "nodes of the latest victim are taken in the order of a map, those too where nothing is listed",
        "nodes of the latest victim are taken by name, where something is listed",
        "plugins/nodelocalgreedy/generator.go",
    ),
    Change(
        "sub-group-trees", "sub_group_trees", "a gang is pod sets that are all needed",
        "a gang is a tree of sub groups, elastic at every level", "api/podgroup_info/subgroup_info",
    ),
    Change(
        "stuck-pods-keep-their-room", "knows_stuck", "what a pod that should have gone holds is about to be free",
        "a pod that should have gone keeps its room", "api/pod_info/pod_info.go",
    ),
    Change(
        "delayed-preemption", "delays_preemption", "a job may make others go at once",
        "a job can be made to wait before it makes anybody go", "actions/utils/input_jobs.go",
    ),
    Change(
        "staleness-of-the-group", "own_staleness", "every gang has the same grace before it is evicted as stale",
        "a gang may have a grace of its own before it is evicted as stale",
        "actions/stalegangeviction/stalegangeviction.go",
    ),
    Change(
        "gpu-memory-by-node", "measures_gpu_memory",
        "GPU memory counts in GPUs of 100 MiB, and for bounds of a gang not at all",
        "GPU memory counts in GPUs of the smallest node before it has one, and of the largest for bounds",
        "api/node_info/gpu_sharing_node_info.go",
    ),
    Change(
        "no-easier-by-gpus", "compares_gpus",
        "a job is no easier than one that failed by the devices of its pods and the part that they want of each",
        "a job is no easier than one that failed by the GPUs that its pods count",
        "actions/common/minimal_job_comparison.go",
    ),
    Change(
        "absent-is-not-counted", "leaves_out_absent",
        "pods that hold what their node has nothing of leave it below 0 there, and it takes nobody",
        "what a node has nothing of is not counted there, whoever holds it", "api/node_info/node_info.go",
    ),
    Change(
        "overfull-for-everybody", "overfull_for_all",
        "beside CPU, memory and GPUs a pod is held to what it names alone, of which some must be left if it is 0",
        "an overfull node takes nobody, whatever it is overfull of", "api/resource_info/resource_vector.go",
    ),
    Change(
        "oversized-passed-over", "skips_oversized",
        "a job with a pod larger than any node is tried, and those that are no easier are skipped for it",
        "a job with a pod larger than any node is passed over, and nobody is skipped for it",
        "actions/common/action_eligibility.go",
    ),
)  # fmt: skip


_SOLVER = "actions/common/solvers"
_MIN_RUNTIME = "design; plugins/minruntime/minruntime.go"
_RECLAIMABLE = "plugins/proportion/reclaimable/reclaimable.go"


def _rule(rule: str, sentence: str, source: str) -> Rule:
    return Rule(rule=rule, sentence=sentence, source=source)


_VERDICTS = (
    _rule("reclaim", "Evicted by the reclaim action: its queue held more than its share, and a queue that had less "
          "than its own needed the room.", "actions/reclaim/reclaim.go"),
    _rule("preempt", "Evicted by the preempt action: an ask of its own queue has a higher priority.",
          "actions/preempt/preempt.go"),
    _rule("consolidation", "Evicted by the consolidation action, which gives it another place at once.",
          "actions/consolidation/consolidation.go"),
    _rule("stalegangeviction", "Evicted by the stalegangeviction action: it has run with fewer pods than it needs for "
          "longer than its grace.", "actions/stalegangeviction/stalegangeviction.go"),
    _rule("fits-with-it", "It was taken in the search and put back where it was, since the ask fits with it there.",
          f"{_SOLVER}/by_pod_solver.go"),
    _rule("enough-without", "It might have been taken, and the search found room without it.",
          f"{_SOLVER}/pod_scenario_builder.go"),
    _rule("nothing-found", "It might have been taken, and no victims that the search tried made room.",
          f"{_SOLVER}/pod_scenario_builder.go"),
    _rule("goes-for-another", "It was taken for this ask, and goes for another ask of the cycle in the end.",
          "Arbiter"),
    _rule("reclaim-min-runtime", "It has not run for the minimum that protects it from reclaim, and is not elastic.",
          _MIN_RUNTIME),
    _rule("preempt-min-runtime", "It has not run for the minimum that protects it from preemption, and is not "
          "elastic.", _MIN_RUNTIME),
    _rule("queue-within-share", "Its queue, or the one above it that is a sibling of the ask's side, holds no more "
          "than it may keep, so that reclaim does not look at it (since 0.17).",
          "plugins/proportion/reclaimable/filter_victims.go"),
    _rule("just-placed", "The same cycle has given pods of it a place: under the documented rules nobody takes it back "
          "at once.", "Arbiter"),
    _rule("not-preemptible", "It is not preemptible, and no action may take it.", "actions/reclaim/reclaim.go"),
    _rule("priority-not-lower", "Preempt takes only what has a lower priority than the ask.",
          "actions/preempt/preempt.go"),
    _rule("own-queue", "Reclaim takes only from other queues than the ask's.", "actions/reclaim/reclaim.go"),
    _rule("other-queue", "Preempt takes only from the ask's own queue.", "actions/preempt/preempt.go"),
    _rule("queue-not-a-leaf", "Its queue has queues below it, and actions look at jobs of leaves only.",
          "cache/cluster_info/queue.go"),
    _rule("beyond-cap", "Consolidation had as many jobs to move as max_consolidation_preemptees lets it look at, and "
          "one.", "actions/consolidation/consolidation.go"),
    _rule("already-going", "Nothing of it ran any more when the action looked: earlier evictions of the cycle took "
          "it.", "actions/preempt/preempt.go"),
)  # fmt: skip

_STEPS = (
    _rule("placed", "The gang fits what is idle or being released.", "actions/allocate/allocate.go"),
    _rule("no-room", "The gang does not fit what is idle or being released.", "actions/allocate/allocate.go"),
    _rule("over-limit", "A queue on the way up would pass its limit.", "plugins/proportion/capacity_policy"),
    _rule("non-preemptible-over-quota", "A queue on the way up would pass its deserved quota with what is not "
          "preemptible.", "plugins/proportion/capacity_policy"),
    _rule("over-fair-share", "The ask's queue would pass its fair share, so that it may not reclaim.", _RECLAIMABLE),
    _rule("no-easier", "A job of the same constraints that is no harder to place failed in this action before.",
          "actions/common/minimal_job_comparison.go"),
    _rule("larger-than-any-node", "A pod of the job asks for more of a resource than the largest node has: the action "
          "passes the job over, and skips no other for it (since 0.17).", "actions/common/action_eligibility.go"),
    _rule("no-victims", "There is nobody that the action may take from.", f"{_SOLVER}/by_pod_solver.go"),
    _rule("down-for-gone", "All that ran of the job was evicted in this cycle, and the released scheduler has it down "
          "for those pods until the next (documented rules try the pods that wait).",
          "api/podgroup_info/allocation_info.go"),
    _rule("too-few-gpus-free", "The cluster has fewer GPUs idle or being released than the ask needs, and moving "
          "makes no more.", "actions/consolidation/consolidation.go"),
    _rule("too-few-gpus", "Nodes could not hold the GPUs of this part of the gang, were all the victims listed so far "
          "gone.", "plugins: idle GPUs filter of the solver"),
    _rule("too-few-victims", "This part of the gang finds no place with the victims of a node gone.",
          f"{_SOLVER}/by_pod_solver.go"),
    _rule("solved", "This part of the gang fits with these victims, and every validator agrees.",
          f"{_SOLVER}/by_pod_solver.go"),
    _rule("victim-without-place", "A pod that consolidation would move has no other place.",
          "actions/consolidation/consolidation.go"),
    _rule("reclaim-min-runtime-gang", "An elastic workload that is protected from reclaim would keep fewer pods than "
          "its gang needs.", _MIN_RUNTIME),
    _rule("preempt-min-runtime-gang", "An elastic workload that is protected from preemption would keep fewer pods "
          "than its gang needs.", _MIN_RUNTIME),
    _rule("within-allocatable-share", "A queue is within its share, and nothing more can be reclaimed from it.",
          "plugins/proportion/reclaimable/strategies/strategies.go"),
    _rule("saturation", "The reclaiming side would be over its fair share, and no less than a queue that it takes "
          "from.", _RECLAIMABLE),
    _rule("preemption-delay", "The job makes nobody go before its delay since its creation and its last eviction is "
          "over (since 0.17).", "actions/utils/input_jobs.go"),
    _rule("statement-forgotten", "A solution was found, and some pod set of the gang lacks pods that the gang can do "
          "without. The released scheduler carries nothing out, and takes it as done for the rest of the cycle (since "
          "0.17; documented rules carry it out).", f"{_SOLVER}/job_solver.go"),
    _rule("search-budgets", "The released scheduler ends a search after a time (search_budgets, since 0.17). How long "
          "it takes is not known here, and no search ends so.", f"{_SOLVER}/search_budget.go"),
    _rule("search-cut-short", "The search ran out of steps before it had seen every scenario.", "Arbiter"),
    _rule("place-taken", "A later ask of the cycle takes the place that an earlier one was given.",
          "framework/statement.go"),
)  # fmt: skip

_PREEMPTIBILITY = (
    _rule("StartUnknown", "Nothing tells when it started, so that no minimum runtime protects it.", _MIN_RUNTIME),
    _rule("MinRuntimePassed", "It has run for its minimum runtime.", _MIN_RUNTIME),
    _rule("NoMinRuntime", "Its minimum runtime is 0, which never protects.", _MIN_RUNTIME),
    _rule("ElasticProtected", "It has not run for its minimum runtime, and may lose pods that its gang does not need.",
          _MIN_RUNTIME),
    _rule("MinRuntimeNotPassed", "It has not run for its minimum runtime, and can't be taken.", _MIN_RUNTIME),
)  # fmt: skip

_CHANGES = tuple(
    _rule(change.rule, f"{change.now[0].upper()}{change.now[1:]} (since 0.17; before: {change.before}).", change.source)
    for change in CHANGES
)

RULES: tuple[Rule, ...] = (*_VERDICTS, *_STEPS, *_PREEMPTIBILITY, *_CHANGES, *PROPOSALS)
