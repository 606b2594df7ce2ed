"""Budgets by input, all in J: the time of ``json.loads`` of the same body, taken in the same run.

``real``: what the real system needs on a state that it already holds (CPU time, one thread). ``cold``: the
whole request over loopback HTTP with the state in the body. ``again``: the same by a client that sends the same
configuration again and again. ``resident``: with the state kept as a snapshot; ``other``: there, of what nobody
has asked for alike before. ``ahead``: how many times as fast as the real system both are at least, in one run.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    real: float | None
    cold: float
    resident: float
    again: float | None = None
    other: float | None = None
    ahead: float | None = None


_EACH: dict[str, Budget] = {
    "kueue-classic-flat-n1000-q100": Budget(0.5, 4, 4),
    "kueue-classic-flat-n10000-q100": Budget(0.8, 1.5, 0.25),
    "kueue-classic-flat-n50000-q1000": Budget(0.54, 1, 0.04, again=0.9),
    "kueue-classic-tree-n50000-q1000": Budget(0.34, 1, 0.04, again=0.9),
    "kueue-fair-flat-n10000-q100": Budget(1.1, 1.6, 0.25),
    "kueue-fair-flat-n50000-q1000": Budget(0.81, 1.1, 0.03, again=0.9),
    "kueue-fair-tree-n50000-q1000": Budget(0.73, 1.1, 0.03, again=0.9),
    "kueue-fair-nofit-n10000-q1000": Budget(16, 3, 1),
    "kueue-racks-5000n-50000": Budget(None, 2, 0.1),
    "kube-scheduler-5000n-50000": Budget(None, 2, 0.1, other=0.1, ahead=5),
    "yunikorn-node-1000n-10000a-100q": Budget(38, 2.5, 0.2),
    "yunikorn-node-5000n-50000a-100q": Budget(24, 2, 0.2),
    "yunikorn-node-5000n-50000a-500q": Budget(85, 2, 0.15),
    "yunikorn-queue-5000n-50000a-500q": Budget(0.17, 2, 0.2),
    "kai-reclaim-large-100": Budget(130, 20, 10),
    "kai-reclaim-large-500": Budget(2100, 40, 20),
    "kai-reclaim-large-1000": Budget(8000, 50, 25),
    "kai-reclaim-n500-p3": Budget(None, 50, 25),
    "kai-reclaim-n1000-p10": Budget(93, 30, 15),
    "kai-reclaim-n2000-p3": Budget(56, 25, 12.5),
    "kai-preempt-n1000-p10": Budget(38, 15, 7.5),
    "kai-all-n1000-p3": Budget(5800, 100, 50),
    "kai-all-n2000-p3": Budget(53, 25, 12.5),
    "ytsaurus-tree-100000": Budget(None, 3, 3),
}
_LATER = 1.5
BUDGETS: dict[str, Budget] = _EACH | {
    name.replace("kai-", "kai-0.17-"): Budget(None, _LATER * of.cold, _LATER * of.resident)
    for name, of in _EACH.items()
    if name.startswith("kai-")
}
"""In J, by input. A release that solves parts of a gang more than once may take that much longer."""
MEMORY_MB = {"kueue": 500, "yunikorn": 600}
SMALL_MEDIAN = 3.0
"""A small decision against ``/healthz`` in the same run, medians over loopback."""
SMALL_TAIL = 3.0
"""Its 99th percentile against its median, with the decision log on."""
CROWD_SECONDS = 0.25
"""The 99th percentile of a small decision while eighty small requests that take seconds arrive at once."""
BUSY_CROWD_SECONDS = 1.0
"""The same with twice as many processes that would run all the time as the machine has cores."""
PAGE_SECONDS, OVERVIEW_SECONDS, FIND_SECONDS = 0.3, 0.05, 0.1
"""Of the service's processor for the first paint of a page of the console, with 10,000 workloads or 5,000 nodes."""
PICTURE_SECONDS = 0.2
"""Of the service's processor for the numbers of a picture of a simulation of 10,000 jobs, once they were asked for."""
