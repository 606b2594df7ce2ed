"""Kinds of objects that start pods, as data, and their pod sets read by it: how many pods of which template.

The data says where the pod sets of a kind are, how many pods each has, and how they are grouped. A path is a chain of
field names; ``[]`` after a name means every element of that list, ``{}`` every value of that mapping. One more kind is
one more entry of ``KINDS``. Paths are followed with readers so that findings know where they are.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from app.base.documents import Path
from app.formats.objects import Object
from app.formats.pods import PodSpec, Steps, read_pod_spec, steps
from app.formats.reader import Reader

ReadSpec = Callable[[Reader], PodSpec]
Grouping = Literal["one", "pod", "replica", "set"]
"""What is decided together: all pods of the object, each pod by itself, each replica of the object, or each pod set."""
Minimum = Literal["one", "all", "workers"]
"""How many pods of a group must start together: one, all of them, or head and the fewest workers (Ray)."""


@dataclass(frozen=True, slots=True)
class Times:
    """A factor of a count: the number at ``path``, ``default`` where there is none; not more than that at
    ``at_most``."""

    path: str
    default: int = 1
    at_most: str | None = None


@dataclass(frozen=True, slots=True)
class PodSets:
    """Pod sets of a kind: ``path`` leads to one or several elements of the object, the other paths go on from there.

    ``name``: a fixed one, or ``@field`` for the value of that field, ``@`` for the key of the mapping in lower case.
    ``less``: pods that another pod set has out of this count. ``unless``, ``when``: a field beside the template that
    must be absent, or present; ``when`` may be ``field=value``, where that value is the field's default. ``first``:
    keys of the mapping that go before the others, in this order.
    """

    path: str
    template: str = "template"
    name: str = "main"
    count: tuple[Times, ...] = (Times("replicas"),)
    least: str | None = None
    less: int = 0
    when: str | None = None
    unless: str | None = None
    first: tuple[str, ...] = ()
    default_requests: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """``kueue``: what is one Workload; ``kai``: what is one pod group, of which ``minimum`` pods must start together;
    ``kai_class``: the priority class of that pod group where the object names none; ``kai_order``: where the object
    says in which order its pod sets start, as all of them are one group unless that is one after the other.
    ``metadata``: of what the system sees, where that is not the object itself. ``priority``: where the object itself
    names a priority class."""

    group: str
    name: str
    sets: tuple[PodSets, ...]
    kueue: Grouping = "one"
    kai: Grouping = "one"
    minimum: Minimum = "one"
    kai_class: str = "train"
    kai_order: str | None = None
    metadata: str = "metadata"
    replicas: str | None = None
    priority: str | None = None
    least_of_all: tuple[str, ...] = ()

    @property
    def full(self) -> str:
        """Group and kind, as messages name it."""
        return f"{self.group}/{self.name}" if self.group else self.name


_RUN_POLICY = "spec.runPolicy.schedulingPolicy"
_PARALLELISM = Times("parallelism", at_most="completions")
_ONCE: tuple[Times, ...] = ()
_LWS = "spec.leaderWorkerTemplate"
_SIZE = (Times("size"),)


def _training(name: str, specs: str, *first: str, minimum: tuple[str, ...] = ()) -> Kind:
    """A job of Kubeflow's training operator: replica specs by role."""
    return Kind(
        "kubeflow.org", name,
        (PodSets(f"spec.{specs}{{}}", name="@", first=first),),
        minimum="all", priority=f"{_RUN_POLICY}.priorityClass", least_of_all=(f"{_RUN_POLICY}.minAvailable", *minimum),
    )  # fmt: skip


def _ray(name: str, cluster: str, *more: PodSets) -> Kind:
    """A Ray cluster, and what else the kind starts."""
    return Kind(
        "ray.io", name,
        (
            PodSets(f"{cluster}.headGroupSpec", name="head", count=_ONCE),
            PodSets(f"{cluster}.workerGroupSpecs[]", name="@groupName", least="minReplicas",
                    count=(Times("replicas"), Times("numOfHosts"))),
            *more,
        ),
        minimum="workers",
    )  # fmt: skip


# Kinds without pod sets of their own are read by functions: ``work.SPECIAL``.
KINDS: tuple[Kind, ...] = (
    Kind("", "Pod", (PodSets("", template="", count=_ONCE),), kueue="pod", kai="pod"),
    Kind("batch", "Job", (PodSets("spec", count=(_PARALLELISM,)),), kai="pod"),
    Kind("batch", "CronJob", (PodSets("spec.jobTemplate.spec", count=(_PARALLELISM,)),),
         metadata="spec.jobTemplate.metadata"),
    Kind("apps", "Deployment", (PodSets("spec"),), kueue="pod", kai="pod", kai_class="inference"),
    Kind("apps", "ReplicaSet", (PodSets("spec"),), kueue="pod"),
    Kind("apps", "StatefulSet", (PodSets("spec"),)),
    Kind(
        "jobset.x-k8s.io", "JobSet",
        (PodSets("spec.replicatedJobs[]", template="template.spec.template", name="@name",
                 count=(Times("replicas"), Times("template.spec.parallelism", at_most="template.spec.completions"))),),
        kai="set", minimum="all", kai_order="spec.startupPolicy.startupPolicyOrder",
    ),
    _ray("RayCluster", "spec"),
    _ray("RayJob", "spec.rayClusterSpec",
         PodSets("spec", template="submitterPodTemplate", name="submitter", count=_ONCE,
                 when="submissionMode=K8sJobMode", default_requests=(("cpu", "500m"), ("memory", "200Mi")))),
    _training("PyTorchJob", "pytorchReplicaSpecs", "Master", "Worker", minimum=("spec.elasticPolicy.minReplicas",)),
    _training("TFJob", "tfReplicaSpecs", "Chief", "Master", "PS", "Worker"),
    _training("XGBoostJob", "xgbReplicaSpecs", "Master", "Worker"),
    _training("PaddleJob", "paddleReplicaSpecs", "Master", "Worker"),
    _training("JAXJob", "jaxReplicaSpecs", "Worker"),
    _training("MPIJob", "mpiReplicaSpecs", "Launcher", "Worker"),
    Kind(
        "leaderworkerset.x-k8s.io", "LeaderWorkerSet",
        (
            PodSets(_LWS, template="leaderTemplate", name="leader", count=_ONCE, when="leaderTemplate"),
            PodSets(_LWS, template="workerTemplate", name="worker", count=_SIZE, less=1, when="leaderTemplate"),
            PodSets(_LWS, template="workerTemplate", count=_SIZE, unless="leaderTemplate"),
        ),
        kueue="replica", kai="replica", minimum="all", replicas="spec.replicas",
    ),
    Kind("sparkoperator.k8s.io", "SparkApplication", ()),
    Kind("workload.codeflare.dev", "AppWrapper", ()),
    Kind("trainer.kubeflow.org", "TrainJob", ()),
)  # fmt: skip


_EACH, _VALUES = "[]", "{}"


def follow(reader: Reader, path: str) -> Reader:
    """The mapping at ``path``, a chain of names; an empty one where there is none."""
    for name in _steps(path):
        _misspelt(reader, name)
        reader = reader.child(name)
    return reader


def elements(reader: Reader, path: str, first: Sequence[str] = ()) -> Iterator[tuple[str, Reader]]:
    """The mappings that ``path`` leads to, each with its key where the last step names the values of a mapping. Keys go
    in the order of ``first``, then by name: the order of a mapping means nothing."""
    if path.endswith(_EACH):
        above, _, name = path.removesuffix(_EACH).rpartition(".")
        for element in follow(reader, above).children(name):
            yield "", element
    elif path.endswith(_VALUES):
        element = follow(reader, path.removesuffix(_VALUES))
        for key in sorted(element.value, key=lambda key: (first.index(key) if key in first else len(first), key)):
            yield key, element.child(key)
    else:
        yield "", follow(reader, path)


def leaf(reader: Reader, path: str) -> tuple[Reader, str]:
    """The mapping that holds the last name of ``path``, and that name."""
    above, _, name = path.rpartition(".")
    holder = follow(reader, above)
    _misspelt(holder, name)
    return holder, name


def _steps(path: str) -> list[str]:
    return path.split(".") if path else []


def _misspelt(reader: Reader, name: str) -> None:
    """A field that is not there, and one that is spelt much like it."""
    if name in reader.value:
        return
    for near in difflib.get_close_matches(name, reader.value, 1, 0.85):
        reader.warn(near, f"no field of this name; did you mean {name!r}?", rule="unknown-field")


MOST_PODS = 2**31
"""Of one pod set, as the wire has it."""


@dataclass(frozen=True, slots=True)
class PodSet:
    """``count`` pods alike. ``least``: fewer that are of use, where the object says so. ``labels``, ``annotations``: of
    the template. ``spec``: what ``pod`` was read of."""

    name: str
    count: int
    least: int | None
    pod: PodSpec
    labels: dict[str, str]
    annotations: dict[str, str]
    path: Path
    spec: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Work:
    """An object that starts pods: ``replicas`` times its pod sets. ``least``: the pods that it says must start
    together. ``priority_class``: the one that the object itself names; ``in_order``: whether its pod sets start one
    after the other; ``manifest.name`` may be the start of a generated name. Labels and annotations of ``manifest`` are
    those that the system sees, at ``metadata``."""

    kind: Kind
    manifest: Object
    name: str
    pod_sets: list[PodSet]
    replicas: int = 1
    least: int | None = None
    priority_class: str | None = None
    in_order: bool = True

    @property
    def id(self) -> str:
        """Namespace and name, as objects of an import are called."""
        return f"{self.manifest.namespace}/{self.name}" if self.manifest.namespace else self.name

    @property
    def title(self) -> str:
        """Kind, namespace and name, for messages."""
        return f"{self.kind.full} {self.id}"

    @property
    def metadata(self) -> Path:
        """Where the labels and annotations are that the system sees."""
        return (*self.manifest.root.path, *_steps(self.kind.metadata))

    @property
    def pods(self) -> int:
        """All of them."""
        return self.replicas * sum(pod_set.count for pod_set in self.pod_sets)


def read_pod_sets(kind: Kind, root: Reader, read: ReadSpec = read_pod_spec) -> list[PodSet]:
    """The pod sets of an object of ``kind``. One without pods is left out, as the queue systems do. ``read``: reads the
    specs of pods."""
    pod_sets = [pod_set for sets in kind.sets for pod_set in _of(sets, root, read)]
    names: set[str] = set()
    for pod_set in pod_sets:
        if pod_set.name in names:
            root.findings.add("duplicate", "error", pod_set.path, f"a second pod set {pod_set.name!r}")
        names.add(pod_set.name)
    return [pod_set for pod_set in pod_sets if pod_set.count]


def _of(sets: PodSets, root: Reader, read: ReadSpec) -> Iterator[PodSet]:
    for key, element in elements(root, sets.path, sets.first):
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
            element.findings.add("bad-value", "error", element.path, f"{count} pods are too many")
            continue
        pod_set = read_template(element, sets, name, max(count, 0), least, read)
        if pod_set is not None:
            yield pod_set


def _meant(sets: PodSets, element: Reader) -> bool:
    if sets.unless is not None and sets.unless in element:
        return False
    if sets.when is None:
        return True
    name, _, value = sets.when.partition("=")
    return element.value.get(name, value) == value if value else name in element


def read_template(
    element: Reader, sets: PodSets, name: str, count: int, least: int | None, read: ReadSpec = read_pod_spec
) -> PodSet | None:
    """The pod set of the template below ``element``; None, and a finding, where there is none."""
    template = follow(element, sets.template)
    if not template.value and sets.default_requests:
        return PodSet(name, count, least, default_pod(dict(sets.default_requests), element), {}, {}, element.path)
    metadata = template.child("metadata")
    if "spec" not in template:
        detail = f"no pod template: {'.'.join([*sets.template.split('.'), 'spec']).lstrip('.')!r} is missing"
        element.findings.add("missing-field", "error", element.path, detail)
        return None
    spec = template.child("spec")
    if not spec.value.get("containers"):
        spec.warn("containers", "a pod needs a container", "error", "missing-field")
        return None
    return PodSet(
        name=name, count=count, least=least, pod=read(spec), labels=metadata.labels("labels"),
        annotations=metadata.labels("annotations"), path=template.path, spec=spec.value,
    )  # fmt: skip


def default_pod(requests: dict[str, Any], element: Reader) -> PodSpec:
    """A pod that asks for ``requests`` and nothing else."""
    amounts: Steps = steps(Reader({"requests": requests}, element.path, element.findings), "requests")
    return PodSpec(
        requests=amounts, node_name=None, priority=None, priority_class=None, never_preempts=False, scheduler=None,
        gated=False, node_selector=None, tolerations=None, node_affinity=None, pinned_node=None,
    )  # fmt: skip


def product(element: Reader, factors: tuple[Times, ...]) -> int:
    """The product of counts; of none, 1."""
    count = 1
    for factor in factors:
        times = number(element, factor.path)
        times = factor.default if times is None else times
        if factor.at_most is not None and (most := number(element, factor.at_most)) is not None:
            times = min(times, most)
        count *= times
    return count


def number(element: Reader, path: str) -> int | None:
    """The count at ``path``; None where there is none, or no count."""
    holder, name = leaf(element, path)
    return holder.count(name)
