"""The releases of KAI Scheduler that an answer can follow, and every rule of the search in which they part.

A release is a row of ``RELEASES``; what a rule does is in the file of its subject, which asks the row. ``CHANGES``
names the rules one by one, so that a comparison of releases can say which of them decided: 0.17 with one rule as it was
in 0.13 is a row too.

Sources: KAI-Scheduler 72de64f (0.13) and d5bc503a (0.17), paths below pkg/scheduler.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from app.solver.model.kai import Release

Generator = Literal["node-local", "multi-node"]
"""How scenarios come out of a prefix of the victim order: on one node of its latest victim, or on growing sets."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """What a release does. ``filters_by_queue``: reclaim leaves out victims whose queue, or one above it, is within
    its share. ``generators``: in the order in which each has to solve the whole gang. ``doubling``: parts of a gang
    are 1, 2, 4 and so on, then halved, and the whole is solved once more; otherwise one pod more each time.
    ``own_scenario``: validators judge what one scenario takes and its refusal ends nothing else; otherwise the whole
    prefix, which a refusal ends. ``nodes_of_recorded``: nodes of everybody recorded are open to pods too.
    ``joined_chunks``: what a scenario takes of a job is recorded whole. ``carries_running``: a part of a gang counts
    the pods that its job runs. ``restores_nodes``: nodes that a refused scenario opened are closed again.
    ``sub_group_trees``: gangs are trees, elastic at every level; otherwise pod sets that are all needed.
    ``knows_stuck``: pods that should have gone keep their room; otherwise it is about to be free.
    ``delays_preemption``: a job can be made to wait before it makes anybody go. ``own_staleness``: a gang may have a
    grace of its own before it is evicted as stale. ``measures_gpu_memory``: GPU memory counts in GPUs of the smallest
    node before it has one, and of the largest for bounds; otherwise in GPUs of 100 MiB, and for bounds not at all.
    """

    release: Release
    filters_by_queue: bool
    generators: tuple[Generator, ...]
    doubling: bool
    own_scenario: bool
    nodes_of_recorded: bool
    joined_chunks: bool
    carries_running: bool
    restores_nodes: bool
    sub_group_trees: bool
    knows_stuck: bool
    delays_preemption: bool
    own_staleness: bool
    measures_gpu_memory: bool

    @property
    def one_prefix(self) -> bool:
        """Whether one prefix serves all parts of a gang: nothing of the search is newer than 0.13."""
        return not (
            self.doubling or self.own_scenario or self.nodes_of_recorded or self.joined_chunks
            or self.carries_running or self.restores_nodes or self.generators != _NODE_LOCAL
        )  # fmt: skip

    @property
    def draws(self) -> bool:
        """Whether what hangs on the order of a map is drawn. For 0.13 the order of the request stands."""
        return self.release != "0.13"


_NODE_LOCAL: Final[tuple[Generator, ...]] = ("node-local",)
KAI_0_13: Final = RuleSet(
    release="0.13", filters_by_queue=False, generators=_NODE_LOCAL, doubling=False, own_scenario=False,
    nodes_of_recorded=False, joined_chunks=False, carries_running=False, restores_nodes=False,
    sub_group_trees=False, knows_stuck=False, delays_preemption=False, own_staleness=False, measures_gpu_memory=False,
)  # fmt: skip
KAI_0_17: Final = RuleSet(
    release="0.17", filters_by_queue=True, generators=("node-local", "multi-node"), doubling=True, own_scenario=True,
    nodes_of_recorded=True, joined_chunks=True, carries_running=True, restores_nodes=True,
    sub_group_trees=True, knows_stuck=True, delays_preemption=True, own_staleness=True, measures_gpu_memory=True,
)  # fmt: skip
RELEASES: Final[dict[Release, RuleSet]] = {"0.13": KAI_0_13, "0.17": KAI_0_17}


@dataclass(frozen=True, slots=True)
class Change:
    """A rule that 0.17 changed: its id, the field of ``RuleSet`` that holds it, what it was and what it is."""

    rule: str
    field: str
    before: str
    now: str
    source: str

    def undone(self, rules: RuleSet) -> RuleSet:
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
        "gpu-memory-by-node", "measures_gpu_memory", "GPU memory counts in GPUs of 100 MiB, and for bounds not at all",
        "GPU memory counts in GPUs of the smallest node before it has one, and of the largest for bounds",
        "api/node_info/gpu_sharing_node_info.go",
    ),
)  # fmt: skip
