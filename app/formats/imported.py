"""What an import gives, and what every system's importer shares."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.formats.objects import Object
from app.formats.reader import Findings
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding
from app.solver.model.state import Ask, State


@dataclass(frozen=True, slots=True)
class Imported:
    """``state`` and ``asks`` are what runs and what waits, where the source says so; ``findings`` say what could not
    be carried over, with pointers into the source."""

    configuration: Configuration
    state: State
    asks: list[Ask]
    findings: list[Finding]


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

    by_name: dict[tuple[str, str], PriorityClass] = field(default_factory=dict[tuple[str, str], PriorityClass])

    def find(self, name: str | None, group: str = "scheduling.k8s.io") -> PriorityClass | None:
        """The class called ``name``, else the default one."""
        if name is not None:
            return self.by_name.get((group, name))
        return next((found for (of, _), found in self.by_name.items() if of == group and found.default), None)


# Kubernetes has these two without anyone creating them.
_SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_ALLOW_PREEMPTION = "yunikorn.apache.org/allow-preemption"


def read_classes(found: Iterable[Object]) -> Classes:
    """PriorityClass (core) and WorkloadPriorityClass (Kueue) objects."""
    classes = Classes()
    for name, value in _SYSTEM.items():
        classes.by_name["scheduling.k8s.io", name] = PriorityClass(value, False, False, None)
    for made in found:
        root = made.root
        value = root.integer("value")
        if value is None:
            root.warn("value", "a priority class without a value counts as 0", "error", "bad-value")
        if made.name not in _SYSTEM and (made.group, made.name) in classes.by_name:
            root.warn("metadata", f"a second {made.kind} {made.name!r}: this one holds", "error", "duplicate")
        victim = made.annotations.get(_ALLOW_PREEMPTION)
        classes.by_name[made.group, made.name] = PriorityClass(
            value=value or 0,
            default=bool(root.boolean("globalDefault")),
            never_preempts=root.text("preemptionPolicy") == "Never",
            victim=None if victim is None else victim != "false",
        )
        root.ignore("description")
        root.close()
    return classes


def instead(made: Object, findings: Findings) -> None:
    """Say that ``made`` holds and the settings of the same kind before it don't."""
    detail = f"a second {made.kind}: this one holds, nothing of the one before"
    findings.add("several-settings", "warning", made.root.at, detail)


def unique(names: Iterable[tuple[str, Object]], kind: str, findings: Findings) -> set[str]:
    """The names, each once; a second object of one name is a finding of severity error."""
    seen: set[str] = set()
    for name, made in names:
        if name in seen:
            findings.add("duplicate", "error", (*made.root.at, "metadata", "name"), f"a second {kind} {name!r}")
        seen.add(name)
    return seen
