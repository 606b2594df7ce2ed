"""A cluster's objects as configuration, state and asks: the translation of ``arbiter import``."""

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from app.base.documents import Path
from app.following.mirror import View
from app.following.objects import FOLLOWED, Item, Key, part
from app.formats.manifests import OF_STATE, Within, read_manifests
from app.formats.reader import Findings, worst
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.kube_scheduler import DisruptionBudget
from app.solver.model.problems import Finding
from app.solver.model.state import Ask, Node, QueueState, Reservation, State, Workload

LISTED = 200
"""How many findings of one kind are listed: whoever follows a cluster wants to know each."""
_OF_USERS = "no-queue"
_WORK = ("/Workload/", "/Pod/", "/PodGroup/")
"""Work in a queue that does not exist: its user's mistake, and nothing that is left out."""


@dataclass(frozen=True, slots=True)
class Translated:
    """What a cluster is in Arbiter's words. ``local_queues``: the ClusterQueue of each; values of classes by
    name, those of Kubernetes and Kueue's apart; ``queues``: what LocalQueues have consumed, where that counts;
    ``reservations``: by ask, pods nominated to a node; ``budgets``: PodDisruptionBudgets; ``of_state``: those of
    ``findings`` that the state carries."""

    configuration: Configuration
    nodes: dict[str, Node]
    workloads: dict[str, Workload]
    asks: dict[str, Ask]
    findings: list[Finding]
    local_queues: dict[str, str]
    priority_classes: dict[str, int]
    workload_priority_classes: dict[str, int] = field(default_factory=dict[str, int])
    queues: dict[str, QueueState] = field(default_factory=dict[str, QueueState])
    reservations: dict[str, Reservation] = field(default_factory=dict[str, Reservation])
    budgets: list[DisruptionBudget] = field(default_factory=list[DisruptionBudget])
    of_state: list[Finding] = field(default_factory=list[Finding])

    def carrying(self) -> "Translated":
        """The same with ``findings`` that bear on decisions in the documents that they are about, in an order of their
        own. Without a place they are about how objects stand together, which changes as the state does."""
        ordered = sorted(self.findings, key=lambda one: (one.pointer, one.rule, one.detail))
        of_state = [one for one in ordered if not one.pointer or one.pointer.split("/", 2)[1] in OF_STATE]
        of_configuration = [one for one in ordered if one.pointer and one.pointer.split("/", 2)[1] not in OF_STATE]
        configuration = msgspec.structs.replace(self.configuration, findings=worst(of_configuration))
        return replace(self, configuration=configuration, of_state=worst(of_state))

    def state(self) -> State:
        """What runs, and what bears on it."""
        return State(
            nodes=list(self.nodes.values()), workloads=list(self.workloads.values()), queues=self.queues,
            reservations=list(self.reservations.values()), disruption_budgets=self.budgets, findings=self.of_state,
        )  # fmt: skip


def translate(
    engine: EngineName, view: View, findings: Findings | None = None, within: Within | None = None,
    known: Configuration | None = None,
) -> Translated:  # fmt: skip
    """All of ``view``. Pointers of findings begin with kind, namespace and name of the object. ``findings``: what was
    found before; ``within``: pods that were read before, and what all of this is some of; ``known``: the configuration,
    where it was read before."""
    findings = Findings(LISTED) if findings is None else findings
    layers = {kind.name: kind.layers for kind in FOLLOWED[engine] if kind.layers}
    items = {**view.items, **{kind: _layered(view.items[kind], names) for kind, names in layers.items()}}
    read = read_manifests(_documents(items), engine, findings, known, within)
    return Translated(
        configuration=read.configuration,
        nodes={node.name: node for node in read.state.nodes},
        workloads={workload.id: workload for workload in read.state.workloads},
        asks={ask.id: ask for ask in read.asks},
        findings=[
            msgspec.structs.replace(one, severity="warning")
            if one.rule == _OF_USERS and one.pointer.startswith(_WORK)
            else one
            for one in read.findings
        ],
        local_queues=_local_queues(view.items.get("LocalQueue", {})),
        priority_classes=_values(view.items.get("PriorityClass", {})),
        workload_priority_classes=_values(view.items.get("WorkloadPriorityClass", {})),
        queues=read.state.queues,
        reservations={held.ask.id: held for held in read.state.reservations},
        budgets=read.state.disruption_budgets,
    )


def says_settings(found: Configuration) -> bool:
    """Whether the settings of a translation are those of an object: Kueue's manager keeps its configuration in one."""
    return found.native is not None and bool(found.native.kueue)


def _documents(items: dict[str, dict[Key, Item]]) -> list[tuple[Path, Any]]:
    return [((kind, *key), of[key]) for kind, of in items.items() for key in sorted(of)]


def _layered(found: dict[Key, Item], names: tuple[str, ...]) -> dict[Key, Item]:
    """The objects of these names as one, see ``Kind``."""
    named = {name: item for (_, name), item in found.items() if name in names}
    space = next((space for space, _ in found), "")
    if not named:
        return {}
    data = {key: value for name in names if name in named for key, value in part(named[name], "data").items()}
    name = max(named, key=names.index)
    return {(space, name): {**named[name], "data": data}}


def _local_queues(items: dict[Key, Item]) -> dict[str, str]:
    found = {f"{space}/{name}": part(item, "spec").get("clusterQueue") for (space, name), item in sorted(items.items())}
    return {name: queue for name, queue in found.items() if isinstance(queue, str)}


def _values(classes: dict[Key, Item]) -> dict[str, int]:
    found = {name: item.get("value") for (_, name), item in sorted(classes.items())}
    return {name: value for name, value in found.items() if isinstance(value, int)}
