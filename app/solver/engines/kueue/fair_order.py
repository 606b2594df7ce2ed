"""The order of heads in a fair-sharing cycle: a tournament up each cohort tree, run again after every head.

Source: Kueue ``pkg/scheduler/fair_sharing_iterator.go``. Kueue leaves two things to chance: which cohort tree is
served next, and heads that are equal in everything. Arbiter takes both in the order of the request.
"""

from collections.abc import Iterator, Mapping

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.kueue.nominate import Nomination
from app.solver.engines.kueue.share import Share, share
from app.solver.engines.kueue.snapshot import Snapshot

Standing = tuple[bool, Share, int, int, int]
"""Ascending: borrows what the head wants, share, negated priority, creation, place in the request."""


def fair_order(snapshot: Snapshot, heads: list[Nomination]) -> Iterator[Nomination]:
    """``heads``: one a queue, in the order of the request. Each is drawn when asked for, so that shares see what was
    booked for the heads before it."""
    waiting = {head.preemptor.queue: (place, head) for place, head in enumerate(heads)}
    root = snapshot.loaded.configured.root
    while waiting:
        first = min(waiting.values(), key=lambda entry: entry[0])[1]
        tree = root[first.preemptor.queue]
        entries = {queue: entry for queue, entry in waiting.items() if root[queue] == tree}
        winner = _winner(snapshot, entries, tree)
        yield waiting.pop(winner)[1]


def _winner(snapshot: Snapshot, entries: Mapping[int, tuple[int, Nomination]], root: int) -> int:
    """The queue whose head goes next. At each cohort the best of its children's winners goes up; they are compared
    by the standing of the child that each came through."""
    parent, depth = snapshot.loaded.configured.tree.parent, snapshot.loaded.configured.tree.depth
    if len(entries) == 1:
        return next(iter(entries))
    standings = {queue: _standings(snapshot, *entry) for queue, entry in entries.items()}
    rising: dict[int, int] = {queue: queue for queue in entries}
    while set(rising) != {root}:
        deepest = max(depth[node] for node in rising)
        arrived: dict[int, int] = {node: queue for node, queue in rising.items() if depth[node] < deepest}
        for node, queue in rising.items():
            if depth[node] == deepest:
                above = parent[node]
                rival = arrived.get(above)
                if rival is None or standings[queue][above] < standings[rival][above]:
                    arrived[above] = queue
        rising = arrived
    return rising[root]


def _standings(snapshot: Snapshot, place: int, head: Nomination) -> dict[int, Standing]:
    """How the head stands at each cohort above its queue, with its own usage added to its path."""
    configured, usage = snapshot.loaded.configured, snapshot.usage
    queue, request = head.preemptor.queue, head.preemptor.request
    wanted = [fr for fr, _ in request]
    out: dict[int, Standing] = {}
    usage.add(queue, request)
    node = queue
    while (above := configured.tree.parent[node]) != ROOTLESS:
        priority, created = head.preemptor.priority, head.preemptor.created
        out[above] = (usage.exceeds(node, wanted), share(configured, usage, node), -priority, created, place)
        node = above
    usage.remove(queue, request)
    return out
