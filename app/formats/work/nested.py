"""Kinds whose pods are described by other objects: AppWrapper wraps them, TrainJob fills in a training runtime."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from app.formats.documents.reader import Reader
from app.formats.kubernetes.objects import Object
from app.formats.work.kinds import KINDS, PodSets
from app.formats.work.paths import follow
from app.formats.work.pod_sets import PodSet, default_pod, number, read_pod_sets, read_template
from app.formats.work.read import Beside

_BY_KIND = {(kind.group, kind.name): kind for kind in KINDS if kind.sets}
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_NODE = "node"

_Admitted = Callable[[Reader], Reader]
"""With what the cluster fills in of pods."""


def app_wrapper(made: Object, beside: Beside) -> list[PodSet]:
    """The pod sets of every component, numbered as Kueue names them: inferred where the kind is known, else as the
    component's ``podSets`` say."""
    del beside
    found: list[PodSet] = []
    for component in made.spec.children("components"):
        template = component.child("template")
        group = (template.text("apiVersion") or "").rpartition("/")[0]
        kind = _BY_KIND.get((group, template.text("kind") or ""))
        declared = component.children("podSets")
        if kind is not None:
            replicas = 1 if kind.replicas is None else number(template, kind.replicas)
            sets = read_pod_sets(kind, template)
            found += [replace(one, count=one.count * (1 if replicas is None else replicas)) for one in sets]
        else:
            found += [read for one in declared if (read := _declared(component, one))]
    return [replace(one, name=f"{made.name or 'appwrapper'}-{i}") for i, one in enumerate(found)]


def _declared(component: Reader, one: Reader) -> PodSet | None:
    path, replicas = one.text("path"), one.count("replicas")
    if not path or not path.startswith("template."):
        one.warn("path", "a path that starts with 'template.' is expected", "error", "missing-field")
        return None
    return read_template(component, PodSets("", template=path), "main", 1 if replicas is None else replicas, None)


def train_job(made: Object, beside: Beside) -> list[PodSet]:
    """The replicated jobs of the training runtime; the one that trains has the nodes and the resources of the job.
    Where the runtime is not known, only that one, and a finding."""

    def admitted(pods: Reader) -> Reader:
        return beside.admission.admitted(pods, made.namespace, exists=False)

    spec = made.spec
    reference, trainer = spec.child("runtimeRef"), spec.child("trainer")
    nodes = trainer.count("numNodes")
    resources = trainer.take("resourcesPerNode")
    name, kind = reference.text("name") or "", reference.text("kind") or "ClusterTrainingRuntime"
    runtime = beside.runtimes.get((kind, name))
    if runtime is None:
        detail = f"{kind} {name!r} is not known here: only the nodes that train are planned, with resourcesPerNode"
        spec.warn("runtimeRef", detail, rule="unknown-name")
        container: dict[str, Any] = {"name": _NODE, "resources": resources or {}}
        return [_trainer({"containers": [container]}, 1 if nodes is None else nodes, spec, admitted)]
    policy = follow(runtime.root, "spec.mlPolicy").count("numNodes")
    count = next((n for n in (nodes, policy) if n is not None), 1)
    jobs = follow(runtime.root, "spec.template.spec").children("replicatedJobs")
    return [one for job in jobs if (one := _replicated(job, count, resources, admitted))]


def _replicated(job: Reader, nodes: int, resources: Any, admitted: _Admitted) -> PodSet | None:
    name = job.text("name") or "main"
    labels = follow(job, "template.metadata").labels("labels")
    trains = labels.get(_STEP) == "trainer" or (_STEP not in labels and name == _NODE)
    if not trains:
        return read_template(admitted(job), PodSets("", template="template.spec.template"), name, 1, None)
    spec = follow(job, "template.spec.template.spec")
    document = {**spec.value}
    if resources:
        listed = document.get("containers")
        containers = cast(list[Any], listed) if isinstance(listed, list) else []
        document["containers"] = [_with_resources(one, resources) for one in containers]
    return replace(_trainer(document, nodes, spec, admitted), name=name)


def _with_resources(container: Any, resources: Any) -> Any:
    if not isinstance(container, dict):
        return container
    of = cast(dict[str, Any], container)
    return {**of, "resources": resources} if of.get("name") == _NODE else of


def _trainer(document: Any, nodes: int, at: Reader, admitted: _Admitted) -> PodSet:
    element = admitted(Reader({"template": {"spec": document}}, at.at, at.findings))
    made = read_template(element, PodSets("", template="template"), _NODE, nodes, None)
    return made or PodSet(_NODE, nodes, None, default_pod({}, at), {}, {}, at.at)
