"""The kinds of objects that start pods, as data: where their pod sets are, how many pods each has, how they are
grouped.

A path is a chain of field names; ``[]`` after a name means every element of that list, ``{}`` every value of that
mapping. One more kind is one more entry of ``KINDS``.
"""

from dataclasses import dataclass
from typing import Literal

Grouping = Literal["one", "pod", "replica"]
"""What is decided together: all pods of the object, each pod by itself, or each replica of the object."""
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
    """Pod sets of a kind: ``at`` leads to one or several elements of the object, the other paths go on from there.

    ``name``: a fixed one, or ``@field`` for the value of that field, ``@`` for the key of the mapping in lower case.
    ``less``: pods that another pod set has out of this count. ``unless``, ``when``: a field beside the template that
    must be absent, or present; ``when`` may be ``field=value``, where that value is the field's default. ``first``:
    keys of the mapping that go before the others, in this order.
    """

    at: str
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
    ``kai_class``: the priority class of that pod group where the object names none. ``priority``: where the object
    itself names a priority class."""

    group: str
    name: str
    sets: tuple[PodSets, ...]
    kueue: Grouping = "one"
    kai: Grouping = "one"
    minimum: Minimum = "one"
    kai_class: str = "train"
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
    Kind("batch", "CronJob", (PodSets("spec.jobTemplate.spec", count=(_PARALLELISM,)),)),
    Kind("apps", "Deployment", (PodSets("spec"),), kueue="pod", kai="pod", kai_class="inference"),
    Kind("apps", "ReplicaSet", (PodSets("spec"),), kueue="pod"),
    Kind("apps", "StatefulSet", (PodSets("spec"),)),
    Kind(
        "jobset.x-k8s.io", "JobSet",
        (PodSets("spec.replicatedJobs[]", template="template.spec.template", name="@name",
                 count=(Times("replicas"), Times("template.spec.parallelism", at_most="template.spec.completions"))),),
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
