"""Every rule that answers of kube-scheduler name. Files are those of ``pkg/scheduler`` in Kubernetes 1.37.2."""

from app.solver.model.problems import PROPOSALS, Rule

_PLUGINS = "framework/plugins"
_DEFAULT = f"{_PLUGINS}/defaultpreemption/default_preemption.go"
_PREEMPTION = "framework/preemption/preemption.go"
_FILTERS = (
    ("required-node", "It requires another node.", f"{_PLUGINS}/nodeaffinity"),
    ("cordon", "The node is cordoned and it does not tolerate that.", f"{_PLUGINS}/nodeunschedulable"),
    ("taint", "It does not tolerate a taint of the node.", f"{_PLUGINS}/tainttoleration"),
    ("node-affinity", "Its node selector or required node affinity does not match.", f"{_PLUGINS}/nodeaffinity"),
    ("ports", "A port that it needs is taken on the node.", f"{_PLUGINS}/nodeports"),
    ("resources", "The node has too little free, or too many pods.", f"{_PLUGINS}/noderesources/fit.go"),
    ("spread-key", "The node has no label that a spread constraint needs.", f"{_PLUGINS}/podtopologyspread"),
    ("spread", "The pods that a spread constraint counts would be too uneven.", f"{_PLUGINS}/podtopologyspread"),
    ("pod-affinity", "No pod that its affinity needs is near the node.", f"{_PLUGINS}/interpodaffinity"),
    ("pod-anti-affinity", "A pod that it avoids is near the node.", f"{_PLUGINS}/interpodaffinity"),
    ("existing-anti-affinity", "A pod near the node avoids it.", f"{_PLUGINS}/interpodaffinity"),
)
_WAITS = (
    ("gated", "A pod with a scheduling gate is in no cycle.", f"{_PLUGINS}/schedulinggates"),
    ("never", "Its preemption policy is Never.", f"{_DEFAULT}, PodEligibleToPreemptOthers"),
    (
        "ongoing",
        "A victim of an earlier preemption still terminates on the node that it is nominated to.",
        f"{_DEFAULT}, PodEligibleToPreemptOthers",
    ),
    ("not-helpful", "No node would take it whoever left.", f"{_PREEMPTION}, findCandidates"),
    ("no-candidate", "No node has room for it without its less important pods.", f"{_PREEMPTION}, DryRunPreemption"),
    ("gang-priorities", "All pods of a gang must have its priority.", "schedule_one_podgroup.go, validatePodGroup"),
)
_CANDIDATES = (
    ("preempted", "It had to go, and could not be put back.", f"{_DEFAULT}, SelectVictimsOnNode"),
    ("reprieved", "It was taken away and put back: the pod fits with it.", f"{_DEFAULT}, SelectVictimsOnNode"),
    (
        "not-less-important",
        "Its priority is not lower than that of the pod that asks.",
        f"{_DEFAULT}, isPreemptionAllowed",
    ),
    ("another-node", "It is on a node that was not chosen.", f"{_PREEMPTION}, pickOneNodeForPreemption"),
)
_STEPS = (
    ("fits", "The node with the best score among those that fit.", "schedule_one.go, prioritizeNodes"),
    ("preempt", "The node whose victims matter least.", f"{_PREEMPTION}, pickOneNodeForPreemption"),
    ("node", "What one node would lose.", f"{_PREEMPTION}, DryRunPreemption"),
    ("looked-at", "How many nodes were looked at, from which on.", f"{_DEFAULT}, GetOffsetAndNumCandidates"),
    ("sample", "From how many starting points the sample would have chosen worse.", "Arbiter"),
    ("tie", "Nodes that the origin chooses among by chance.", f"{_PREEMPTION}, pickOneNodeForPreemption"),
    (
        "budgets-not-binding",
        "Budgets are preferred and never binding: victims violate them.",
        "framework/preemption/util.go, FilterVictimsWithPDBViolation",
    ),
    (
        "budget-order",
        "More than one budget selects a pod: the origin asks them in the order of a map, here in that of the request.",
        "framework/preemption/util.go, FilterVictimsWithPDBViolation",
    ),
    ("terminating-victim", "A victim terminates already; it is named again.", f"{_DEFAULT}, SelectVictimsOnNode"),
    ("gang", "The pods of a gang, each at its best node in turn.", "schedule_one_podgroup.go"),
    (
        "gang-node-order",
        "Equal scores go by the order of nodes, which is a map's in the origin: another order may evict others.",
        "framework/preemption/podgrouppreemption.go",
    ),
    (
        "group-pod-order",
        "A group is one victim: its pods come in the order of a map in the origin, here in that of the request; the"
        " first one's priority and the counts of spread hang on it.",
        "framework/preemption/types.go, searchCrossNodesVictimPods",
    ),
    ("pods-in-turn", "Pods of one ask are scheduled one after the other.", "Arbiter"),
)
RULES: tuple[Rule, ...] = (
    *(Rule(rule=rule, sentence=sentence, source=source)
      for rule, sentence, source in (*_FILTERS, *_WAITS, *_CANDIDATES, *_STEPS)),
    *PROPOSALS,
)  # fmt: skip
