"""What a system's own documents say beyond what Arbiter decides: kept for an export, read by no engine."""

from typing import Any

from app.solver.model.base import Wire

Fields = dict[str, Any]
"""Part of a native document, as its system writes it: nested mappings and lists, strings, numbers and bools."""


class Native(Wire, frozen=True, kw_only=True):
    """By system, the part of one native document that Arbiter does not decide, in the shape of the document. An export
    to that system writes it again beside what Arbiter decides; no decision depends on it."""

    kueue: Fields = {}
    """Of a ClusterQueue, Cohort, ResourceFlavor or of Kueue's own Configuration, from its top: `metadata`, `spec`."""
    yunikorn: Fields = {}
    """Of a queue of queues.yaml, or of the partition."""
    kai: Fields = {}
    """Of a Queue, or of the SchedulingShard, from its top: `metadata`, `spec`."""
    ytsaurus: Fields = {}
    """Attributes of a pool, or of the pool tree."""


class NativeDocuments(Native, frozen=True, kw_only=True):
    """What belongs to no queue and no flavor: the rest of the configuration's own document, and whole objects."""

    objects: list[Fields] = []
    """Kubernetes objects that belong to the configuration and bear on no decision, whole: LocalQueues, AdmissionChecks,
    Topologies, WorkloadPriorityClasses. An export to the system of their API group writes them again."""
