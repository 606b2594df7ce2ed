"""Shared wire types: the struct base, quantities, times and durations as they arrive; native fields as kept.

A ``Quantity`` and a ``Duration`` stay as sent until a compile step parses them (``quantity.py``,
``duration.py``); a ``Time`` is decoded by msgspec, which refuses one without an offset.
"""

from datetime import datetime
from typing import Annotated, Any

import msgspec

Quantity = Annotated[
    int | float | str,
    msgspec.Meta(title="Quantity", description="A Kubernetes quantity: `1500m`, `4Gi`, or a number of units"),
]
Resources = dict[str, Quantity]
Time = Annotated[datetime, msgspec.Meta(tz=True)]
Duration = Annotated[
    int | float | str, msgspec.Meta(title="Duration", description="Seconds, or a Go duration: `30s`, `1h30m`")
]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
Total = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""How many of what is counted over time or over a cluster: exact in JSON everywhere."""
Priority = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


class Wire(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Base of every struct that crosses the wire: immutable, unknown fields refused."""


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
