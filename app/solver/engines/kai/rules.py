"""Every rule that answers of KAI Scheduler name, with what it says and where it comes from.

Sources are paths below pkg/scheduler of KAI-Scheduler; "design" is its design page on minimum runtimes.
"""

from app.solver.engines.kai.rule_sets import CHANGES
from app.solver.model.problems import PROPOSALS, Rule

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
    _rule("no-victims", "There is nobody that the action may take from.", f"{_SOLVER}/by_pod_solver.go"),
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
