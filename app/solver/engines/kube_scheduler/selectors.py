"""What selects: labels of pods, namespaces and nodes, in terms of affinity, in constraints of spread and in budgets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.solver.model import kube_scheduler as wire
from app.solver.model.state import Task

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector. ``nothing``: none was given; ``everything``: an empty one was."""

    requirements: tuple[tuple[str, str, frozenset[str]], ...] = ()
    nothing: bool = False

    @property
    def everything(self) -> bool:
        return not self.nothing and not self.requirements

    def matches(self, labels: Labels) -> bool:
        """Kubernetes: ``NotIn`` and ``DoesNotExist`` match where the label is missing."""
        if self.nothing:
            return False
        for key, operator, values in self.requirements:
            value = labels.get(key)
            if operator == "In":
                fits = value is not None and value in values
            elif operator == "NotIn":
                fits = value is None or value not in values
            else:
                fits = (value is not None) == (operator == "Exists")
            if not fits:
                return False
        return True


NOTHING = Selector(nothing=True)


def selector_of(given: wire.LabelSelector | None, also: Iterable[tuple[str, str]] = ()) -> Selector:
    """``also``: labels that must be there besides; with any of these an absent selector is an empty one."""
    more = [(key, "In", frozenset((value,))) for key, value in also]
    if given is None:
        return Selector(tuple(more)) if more else NOTHING
    labels = [(key, "In", frozenset((value,))) for key, value in given.match_labels.items()]
    rest = [(one.key, one.operator, frozenset(one.values)) for one in given.match_expressions]
    return Selector((*labels, *rest, *more))


@dataclass(frozen=True, slots=True)
class Term:
    """A required term of affinity: of which pods, by which label of nodes."""

    key: str
    selector: Selector
    namespaces: frozenset[str]
    others: Selector
    """Namespaces by their labels."""

    def matches(self, namespace: str, labels: Labels) -> bool:
        """Kubernetes: a namespace that is listed, or whose labels are selected."""
        if namespace not in self.namespaces and not self.others.matches({NAMESPACE_LABEL: namespace}):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class Spread:
    """A constraint that decides where a pod may go."""

    key: str
    max_skew: int
    min_domains: int
    selector: Selector
    affinity: bool
    taints: bool


def terms_of(given: Sequence[wire.PodAffinityTerm], namespace: str) -> tuple[Term, ...]:
    """Those of a pod in ``namespace``, which is meant where no namespace is said."""
    return tuple(
        Term(
            key=one.topology_key,
            selector=selector_of(one.label_selector),
            namespaces=frozenset(one.namespaces or ((namespace,) if one.namespace_selector is None else ())),
            others=selector_of(one.namespace_selector),
        )
        for one in given
    )


def spreads_of(task: Task) -> tuple[Spread, ...]:
    """Its constraints; ``match_label_keys`` become part of the selector, where the pod has these labels."""
    labels = task.labels or {}
    return tuple(
        Spread(
            key=one.topology_key, max_skew=one.max_skew, min_domains=one.min_domains or 1,
            selector=selector_of(
                one.label_selector, [(key, labels[key]) for key in one.match_label_keys if key in labels]
            ),
            affinity=one.node_affinity_policy == "Honor", taints=one.node_taints_policy == "Honor",
        )
        for one in task.topology_spread or ()
    )  # fmt: skip
