"""Gangs as trees of sub groups: which pods come next, which go first, and whether enough are there.

Leaves are pod sets, which need a number of their pods; sets need a number of their members, all of them unless they say
so. A job without sub groups is one pod set, and the rest of the engine counts it without a tree. Sources:
KAI-Scheduler ``api/podgroup_info`` (subgroup_info, allocation_info, eviction_info) and ``plugins/subgrouporder``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from app.solver.model.kai import SubGroup
from app.solver.model.problems import Problem, pointer

Pods = Mapping[str, Sequence[int]]
"""Pods by the name of their pod set, in an order."""
_NOBODY: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class PodSet:
    """A leaf, and how many of its pods it needs."""

    name: str
    minimum: int


@dataclass(frozen=True, slots=True)
class SubGroupSet:
    """A branch, and how many of its members it needs; None: all."""

    name: str
    minimum: int | None
    members: tuple["PodSet | SubGroupSet", ...]

    @property
    def threshold(self) -> int:
        """How many members it needs."""
        return len(self.members) if self.minimum is None else self.minimum


Member = PodSet | SubGroupSet
Place = tuple[tuple[int, str], ...]
"""Where a pod set stands in the tree that a flat gang is written as, to sort by."""


@dataclass(frozen=True, slots=True)
class Gang:
    """A tree; ``pod_sets`` are its leaves. ``flat``: those stand side by side, and each is needed (0.13).
    ``place``: of those of a flat one when their pods are placed; empty where none comes before another."""

    root: SubGroupSet
    pod_sets: tuple[PodSet, ...]
    flat: bool = False
    place: Mapping[str, "Place"] = field(default_factory=dict[str, "Place"])

    def satisfied(self, active: Pods) -> bool:
        """Whether the root has as many satisfied members as it needs."""
        return _satisfied(self.root, active)

    def every_set_satisfied(self, active: Pods) -> bool:
        """Whether every pod set has the pods that it needs, members that the gang can do without included."""
        return all(len(active.get(pod_set.name, _NOBODY)) >= pod_set.minimum for pod_set in self.pod_sets)

    def rank(self, active: Pods) -> int:
        """0 while some pod set lacks pods, 1 where each has just as many as it needs, 2 above."""
        counts = [(len(active.get(pod_set.name, _NOBODY)), pod_set.minimum) for pod_set in self.pod_sets]
        if any(have < need for have, need in counts):
            return 0
        return 2 if any(have > need for have, need in counts) else 1

    def elastic(self, pods: Pods) -> bool:
        """Whether some pod set has more pods than it needs, in whatever state."""
        return any(len(pods.get(pod_set.name, _NOBODY)) > pod_set.minimum for pod_set in self.pod_sets)

    def next_pods(self, active: Pods, able: Pods) -> list[int]:
        """The pods to place next: what the gang lacks, else one more of the first member that has any."""
        return _of_each(self.pod_sets, active, able) if self.flat else _next(self.root, active, able)

    def placing_order(self, pods: Sequence[int], pod_set: Callable[[int], str]) -> list[int]:
        """The order in which pods that come next are placed, each being of a pod set. A flat gang goes along the tree
        that it is written as: what is below a sub group before pod sets beside that one, sub groups by name."""
        return sorted(pods, key=lambda t: self.place[pod_set(t)]) if self.place else list(pods)

    def first_to_go(self, active: Pods) -> list[int]:
        """The pods to evict together: one above a pod set's need, a member above a set's, else all. ``active``: the
        last to come first."""
        return _surplus(self.root, active) or _all(self.root, active)

    def split(self, listed: Pods) -> tuple[list[int], list[int]]:
        """Listed pods beyond what each pod set needs, and the others."""
        elastic: list[int] = []
        core: list[int] = []
        for pod_set in self.pod_sets:
            tasks = listed.get(pod_set.name, _NOBODY)
            core += tasks[: pod_set.minimum]
            elastic += tasks[pod_set.minimum :]
        return elastic, core

    def lacking(self, used: Pods, lost: Pods) -> PodSet | None:
        """A pod set that would keep fewer pods than it needs, were those gone; None without any."""
        for pod_set in self.pod_sets:
            gone = len(lost.get(pod_set.name, _NOBODY))
            if gone and len(used.get(pod_set.name, _NOBODY)) - gone < pod_set.minimum:
                return pod_set
        return None

    def part(self, pods: Pods) -> "Gang":
        """The gang that has only these pods, and needs no more than it has."""
        return Gang(root := _part(self.root, pods), tuple(_leaves(root)), self.flat, self.place)

    @property
    def needs(self) -> int:
        """The fewest pods with which it is satisfied."""
        return _needs(self.root)


def _count(member: Member, active: Pods) -> int:
    if isinstance(member, PodSet):
        return len(active.get(member.name, _NOBODY))
    return sum(_satisfied(below, active) for below in member.members)


def _threshold(member: Member) -> int:
    return member.minimum if isinstance(member, PodSet) else member.threshold


def _satisfied(member: Member, active: Pods) -> bool:
    return _count(member, active) >= _threshold(member)


def _order(member: Member, active: Pods) -> tuple[int, float, str]:
    """Those below their threshold first; then the least above it, by ratio; what needs nothing last; then by name."""
    count, threshold = _count(member, active), _threshold(member)
    if count < threshold:
        return 0, 0.0, member.name
    return (1, count / threshold, member.name) if threshold else (2, float(count), member.name)


def _ordered(members: Iterable[Member], active: Pods, *, worst_first: bool = False) -> list[Member]:
    return sorted(members, key=lambda member: _order(member, active), reverse=worst_first)


def _next(branch: SubGroupSet, active: Pods, able: Pods) -> list[int]:
    members = _ordered(branch.members, active)
    if _satisfied(branch, active):
        return next((pods for member in members if (pods := _more(member, active, able))), list[int]())
    lacking: list[int] = []
    for member in members[: branch.threshold]:
        if not _satisfied(member, active):
            lacking += _more(member, active, able)
    return lacking


def _of_each(pod_sets: Sequence[PodSet], active: Pods, able: Pods) -> list[int]:
    """Of as many pod sets as lack pods, or of one: where one has none to place, the next one in order gives its own."""
    given = (pods for pod_set in _ordered(pod_sets, active) if (pods := _more(pod_set, active, able)))
    lacking = sum(not _satisfied(pod_set, active) for pod_set in pod_sets)
    return [t for pods in islice(given, max(1, lacking)) for t in pods]


def _more(member: Member, active: Pods, able: Pods) -> list[int]:
    if isinstance(member, SubGroupSet):
        return _next(member, active, able)
    lacks = member.minimum - len(active.get(member.name, _NOBODY))
    return list(able.get(member.name, _NOBODY)[: max(1, lacks)])


def _surplus(branch: SubGroupSet, active: Pods) -> list[int]:
    satisfied = _count(branch, active)
    if not satisfied:
        return []
    members = _ordered(branch.members, active, worst_first=True)
    for member in members:
        if isinstance(member, SubGroupSet):
            pods = _surplus(member, active)
        else:
            have = active.get(member.name, _NOBODY)
            pods = list(have[:1]) if len(have) > member.minimum else []
        if pods:
            return pods
    if branch.threshold < satisfied:
        return next((pods for member in members if (pods := _all(member, active))), list[int]())
    return []


def _all(member: Member, active: Pods) -> list[int]:
    return [t for pod_set in _leaves(member) for t in active.get(pod_set.name, _NOBODY)]


def _leaves(member: Member) -> Iterator[PodSet]:
    if isinstance(member, PodSet):
        yield member
        return
    for below in member.members:
        yield from _leaves(below)


def _part(branch: SubGroupSet, pods: Pods) -> SubGroupSet:
    members: list[Member] = []
    held = 0
    for below in branch.members:
        if isinstance(below, PodSet):
            have = len(pods.get(below.name, _NOBODY))
            members.append(PodSet(below.name, min(below.minimum, have)) if have else below)
            held += bool(have)
        else:
            members.append(_part(below, pods))
            held += any(pods.get(leaf.name) for leaf in _leaves(below))
    minimum = None if branch.minimum is None else min(branch.minimum, held)
    return SubGroupSet(branch.name, minimum, tuple(members))


def _needs(member: Member) -> int:
    if isinstance(member, PodSet):
        return member.minimum
    return sum(sorted(map(_needs, member.members))[: member.threshold])


ROOT = ""
_MOST_LEVELS = 32


def compile_gang(groups: Sequence[SubGroup], min_sub_group: int | None, *, flat: bool) -> Gang:
    """The tree of sound sub groups (see ``gang_problems``). ``flat``: pod sets side by side, each of them needed, with
    one pod at least."""
    branches = {group.parent for group in groups if group.parent is not None}
    least = 1 if flat else 0
    leaves = [
        PodSet(g.name, 1 if g.min_available is None else max(least, g.min_available))
        for g in groups if g.name not in branches
    ]  # fmt: skip
    if flat:
        return Gang(SubGroupSet(ROOT, None, tuple(leaves)), tuple(leaves), flat, _places(groups, leaves))
    below: dict[str | None, list[SubGroup]] = {}
    for group in groups:
        below.setdefault(group.parent, []).append(group)
    leaf = {pod_set.name: pod_set for pod_set in leaves}

    def branch(name: str | None, minimum: int | None) -> SubGroupSet:
        members = tuple(
            leaf[g.name] if g.name in leaf else branch(g.name, g.min_sub_group) for g in below.get(name, ())
        )
        return SubGroupSet(name or ROOT, minimum, members)

    root = branch(None, min_sub_group)
    return Gang(root, tuple(_leaves(root)))


def _places(groups: Sequence[SubGroup], leaves: Sequence[PodSet]) -> dict[str, Place]:
    """By pod set the sub groups that it is below, from the top, and itself behind those beside it; empty where there
    are only pod sets. Of unsound groups it says something, and ends."""
    if len(leaves) == len(groups):
        return {}
    parent = {group.name: group.parent for group in groups}

    def line(name: str) -> Iterator[str]:
        for _ in range(_MOST_LEVELS):
            above = parent.get(name)
            if above is None:
                return
            yield above
            name = above

    return {leaf.name: (*((0, group) for group in [*line(leaf.name)][::-1]), (1, "")) for leaf in leaves}


def gang_problems(
    groups: Sequence[SubGroup], tasks: Iterable[tuple[tuple[str | int, ...], str | None]], path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """What is wrong with sub groups: names that occur twice, parents that there are not, circles, and pods of none of
    the pod sets. ``tasks``: where each pod's ``sub_group`` is, and what it says; ``path``: where the job is."""
    parent = {group.name: group.parent for group in groups}
    seen: set[str] = set()
    for i, group in enumerate(groups):
        where = pointer(*path, "sub_groups", i)
        if group.name in seen:
            yield Problem(pointer=f"{where}/name", detail=f"there is a sub group {group.name!r} already")
        seen.add(group.name)
        if group.parent is not None and group.parent not in parent:
            yield Problem(pointer=f"{where}/parent", detail=f"no sub group {group.parent!r}")
        elif _too_deep(group.name, parent):
            detail = f"it is below itself, or more than {_MOST_LEVELS} levels deep"
            yield Problem(pointer=f"{where}/parent", detail=detail)
    leaves = seen - {group.parent for group in groups}
    for place, name in tasks:
        if name not in leaves:
            detail = (
                f"{name!r} is no sub group that pods are in"
                if name is not None
                else "its job has sub groups: say which"
            )
            yield Problem(pointer=pointer(*place), detail=detail)


def _too_deep(name: str, parent: Mapping[str, str | None]) -> bool:
    group = name
    for _ in range(_MOST_LEVELS):
        above = parent.get(group)
        if above is None:
            return False
        group = above
    return True
