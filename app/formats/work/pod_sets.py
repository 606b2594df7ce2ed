"""An object that starts pods, and its pod sets: how many pods of which template."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from app.base.documents import Path
from app.formats.documents.reader import Reader
from app.formats.kubernetes.amounts import Steps, steps
from app.formats.kubernetes.objects import Object
from app.formats.kubernetes.pod_spec import PodSpec, read_pod_spec
from app.formats.work.kinds import Kind, PodSets, Times
from app.formats.work.paths import elements, follow, leaf

MOST_PODS = 2**31
"""Of one pod set, as the wire has it."""


@dataclass(frozen=True, slots=True)
class PodSet:
    """``count`` pods alike. ``least``: fewer that are of use, where the object says so. ``labels``, ``annotations``: of
    the template."""

    name: str
    count: int
    least: int | None
    pod: PodSpec
    labels: dict[str, str]
    annotations: dict[str, str]
    at: Path


@dataclass(frozen=True, slots=True)
class Work:
    """An object that starts pods: ``replicas`` times its pod sets. ``least``: the pods that it says must start
    together. ``priority_class``: the one that the object itself names; ``made.name`` may be the start of a generated
    name."""

    kind: Kind
    made: Object
    name: str
    pod_sets: list[PodSet]
    replicas: int = 1
    least: int | None = None
    priority_class: str | None = None
    more: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def id(self) -> str:
        """Namespace and name, as objects of an import are called."""
        return f"{self.made.namespace}/{self.name}" if self.made.namespace else self.name

    @property
    def title(self) -> str:
        """Kind, namespace and name, for messages."""
        return f"{self.kind.full} {self.id}"

    @property
    def pods(self) -> int:
        """All of them."""
        return self.replicas * sum(pod_set.count for pod_set in self.pod_sets)


def read_pod_sets(kind: Kind, root: Reader) -> list[PodSet]:
    """The pod sets of an object of ``kind``. One without pods is left out, as the queue systems do."""
    found = [pod_set for sets in kind.sets for pod_set in _of(sets, root)]
    names: set[str] = set()
    for pod_set in found:
        if pod_set.name in names:
            root.findings.add("duplicate", "error", pod_set.at, f"a second pod set {pod_set.name!r}")
        names.add(pod_set.name)
    return [pod_set for pod_set in found if pod_set.count]


def _of(sets: PodSets, root: Reader) -> Iterator[PodSet]:
    for key, element in elements(root, sets.at, sets.first):
        if not _meant(sets, element):
            continue
        name = key.lower() if sets.name == "@" else sets.name
        if sets.name.startswith("@") and sets.name != "@":
            name = (element.text(sets.name[1:]) or "").lower()
            if not name:
                element.warn(sets.name[1:], "a pod set needs a name", "error", "missing-field")
                continue
        least = None if sets.least is None else number(element, sets.least)
        count = product(element, sets.count) - sets.less
        if least is not None:
            least *= product(element, sets.count[1:])
        if count > MOST_PODS:
            element.findings.add("bad-value", "error", element.at, f"{count} pods are too many")
            continue
        made = read_template(element, sets, name, max(count, 0), least)
        if made is not None:
            yield made


def _meant(sets: PodSets, element: Reader) -> bool:
    if sets.unless is not None and sets.unless in element:
        return False
    if sets.when is None:
        return True
    name, _, value = sets.when.partition("=")
    return element.value.get(name, value) == value if value else name in element


def read_template(element: Reader, sets: PodSets, name: str, count: int, least: int | None) -> PodSet | None:
    """The pod set of the template below ``element``; None, and a finding, where there is none."""
    template = follow(element, sets.template)
    if not template.value and sets.default_requests:
        return PodSet(name, count, least, default_pod(dict(sets.default_requests), element), {}, {}, element.at)
    metadata = template.child("metadata")
    if "spec" not in template:
        detail = f"no pod template: {'.'.join([*sets.template.split('.'), 'spec']).lstrip('.')!r} is missing"
        element.findings.add("missing-field", "error", element.at, detail)
        return None
    spec = template.child("spec")
    if not spec.value.get("containers"):
        spec.warn("containers", "a pod needs a container", "error", "missing-field")
        return None
    return PodSet(
        name=name, count=count, least=least, pod=read_pod_spec(spec), labels=metadata.labels("labels"),
        annotations=metadata.labels("annotations"), at=template.at,
    )  # fmt: skip


def default_pod(requests: dict[str, Any], element: Reader) -> PodSpec:
    """A pod that asks for ``requests`` and nothing else."""
    amounts: Steps = steps(Reader({"requests": requests}, element.at, element.findings), "requests")
    return PodSpec(
        requests=amounts, node_name=None, priority=None, priority_class=None, never_preempts=False, scheduler=None,
        gated=False, node_selector=None, tolerations=None, node_affinity=None, pinned_node=None,
    )  # fmt: skip


def product(element: Reader, factors: tuple[Times, ...]) -> int:
    """The product of counts; of none, 1."""
    count = 1
    for factor in factors:
        found = number(element, factor.path)
        found = factor.default if found is None else found
        if factor.at_most is not None and (most := number(element, factor.at_most)) is not None:
            found = min(found, most)
        count *= found
    return count


def number(element: Reader, path: str) -> int | None:
    """The count at ``path``; None where there is none, or no count."""
    holder, name = leaf(element, path)
    return holder.count(name)
