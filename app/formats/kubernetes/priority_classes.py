"""Priority classes, of the core and of Kueue."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.formats.kubernetes.objects import Object


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """``victim``: whether pods of this class may be preempted (YuniKorn's annotation); None where it says nothing."""

    value: int
    default: bool
    never_preempts: bool
    victim: bool | None


@dataclass(slots=True)
class Classes:
    """Priority classes by group and name."""

    _by_name: dict[tuple[str, str], PriorityClass] = field(default_factory=dict[tuple[str, str], PriorityClass])
    _defaults: dict[str, PriorityClass | None] = field(default_factory=dict[str, PriorityClass | None])

    def find(self, name: str | None, group: str = "scheduling.k8s.io") -> PriorityClass | None:
        """The class called ``name``, else the default one."""
        if name is not None:
            return self._by_name.get((group, name))
        if group not in self._defaults:
            every = (found for (of, _), found in self._by_name.items() if of == group and found.default)
            self._defaults[group] = next(every, None)
        return self._defaults[group]

    def has(self, group: str, name: str) -> bool:
        """Whether there is one of that name."""
        return (group, name) in self._by_name

    def put(self, group: str, name: str, found: PriorityClass) -> None:
        """One more, or another in place of the one of that name."""
        self._by_name[group, name] = found
        self._defaults.clear()

    def over(self, others: "Classes") -> "Classes":
        """These, and those of ``others`` that have other names."""
        return Classes({**others._by_name, **self._by_name})


# Kubernetes has these two without anyone creating them.
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_ALLOW_PREEMPTION = "yunikorn.apache.org/allow-preemption"


def read_classes(found: Iterable[Object]) -> Classes:
    """PriorityClass (core) and WorkloadPriorityClass (Kueue) objects."""
    classes = Classes()
    for name, value in SYSTEM_CLASSES.items():
        classes.put("scheduling.k8s.io", name, PriorityClass(value, False, False, None))
    for made in found:
        root = made.root
        value = root.integer("value")
        if value is None:
            root.warn("value", "a priority class without a value counts as 0", "error", "bad-value")
        if made.name not in SYSTEM_CLASSES and classes.has(made.group, made.name):
            root.warn("metadata", f"a second {made.kind} {made.name!r}: this one holds", "error", "duplicate")
        victim = made.annotations.get(_ALLOW_PREEMPTION)
        found_class = PriorityClass(
            value=value or 0,
            default=bool(root.boolean("globalDefault")),
            never_preempts=root.text("preemptionPolicy") == "Never",
            victim=None if victim is None else victim != "false",
        )
        classes.put(made.group, made.name, found_class)
        root.ignore("description")
        root.close()
    return classes
