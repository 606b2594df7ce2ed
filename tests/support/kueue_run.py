"""What tests of kueue run share with those beside them."""

from typing import Any

PREEMPTS = {"preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}}


def two_queues(**kueue: Any) -> dict[str, Any]:
    quota = {"cpu": {"guaranteed": 2}}
    return {
        "engine": "kueue",
        "queues": [
            {"name": "all"},
            {"name": "a", "parent": "all", "quota": quota, "kueue": PREEMPTS | kueue},
            {"name": "b", "parent": "all", "quota": quota, "kueue": PREEMPTS | kueue},
        ],
    }
