"""The arguments of ``arbiter mcp``'s tools. The text under a field is its description in the tool's schema."""

from typing import Annotated, Any
from uuid import UUID

import msgspec

from app.solver.model.base import Count, Name, Priority, Resources, Wire
from app.solver.model.configuration import EngineName


class Place(Wire, frozen=True, kw_only=True):
    cluster: Name | None = None
    """A followed cluster. Absent, and no snapshot either: the only one that is followed."""
    snapshot: Name | None = None
    """A kept snapshot, in place of a cluster."""


class Situation(Place, frozen=True, kw_only=True):
    decision: UUID | None = None
    """A recorded decision, in place of a cluster or snapshot: the question that it answered."""


class Find(Wire, frozen=True, kw_only=True):
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
    """Any part of a name or id, in any case."""


class Why(Wire, frozen=True, kw_only=True):
    name: Name
    """A running, waiting or evicted workload, or its Job or pod: `namespace/name`, or the name. Or the id of a recorded
    decision."""
    cluster: Name | None = None
    """The followed cluster that it is in. Absent: the only one that is followed, else what the log knows."""


class SweepOf(Wire, frozen=True, kw_only=True):
    sweep: UUID
    """The id of a sweep."""


class WhatIf(Situation, frozen=True, kw_only=True):
    queue: Name | None = None
    """Of a job that nobody has submitted: the queue it would go to. Not with `decision`."""
    requests: Resources = {}
    """What each of its pods asks for, by resource: `{"cpu": "4", "nvidia.com/gpu": 1}`."""
    flavors: dict[str, str] = {}
    """The flavor to use, by resource (Kueue). Absent: the engine chooses."""
    count: Count = 1
    """How many pods it has."""
    priority: Priority = 0
    """Its priority."""
    set: dict[str, Any] = {}
    """Fields of the configuration to set, by path, as `{"queues.research.quota.gpu.guaranteed": 12}`: the answer then
    says what differs. Needed with `decision`."""


class Next(Place, frozen=True, kw_only=True):
    queue: Name | None = None
    """Only work of this queue and of those below it."""
    workloads: Annotated[list[Name], msgspec.Meta(max_length=100)] = []
    """Only these, by id."""


class Plan(Place, frozen=True, kw_only=True):
    manifest: str
    """What would be submitted: YAML or JSON of one object or several; YTsaurus: the specification of an operation."""
    queue: Name | None = None
    """The queue that the work goes to, whatever it says itself."""
    namespace: Name = "default"
    """The namespace of objects that name none."""
    set: dict[str, Any] = {}
    """Fields of the configuration to set first, by path."""


class Variant(Wire, frozen=True, kw_only=True):
    name: Name
    """What the answer calls it."""
    engine: EngineName | None = None
    """Another engine: the situation is told in its words."""
    configuration: Name | None = None
    """Another stored configuration: `name`, `name@revision` or `name@label`."""
    set: dict[str, Any] = {}
    """Fields of the configuration to set, by path."""


class Compare(Situation, frozen=True, kw_only=True):
    variants: Annotated[list[Variant], msgspec.Meta(min_length=1, max_length=15)]
    """What to hold against the situation as it is."""


class ChangeConfiguration(Wire, frozen=True, kw_only=True):
    name: Name
    """The stored configuration."""
    revision: Annotated[int, msgspec.Meta(ge=1)]
    """Its newest revision, which is changed; with another one there, nothing is."""
    set: Annotated[dict[str, Any], msgspec.Meta(min_length=1)]
    """Fields to set, by path, as `{"queues.research.quota.gpu.guaranteed": 12}`."""
    comment: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    """Why, for the history."""


class CarryOut(Wire, frozen=True, kw_only=True):
    snapshot: Name
    """The kept snapshot that the decision was made on. No cluster is touched."""
    decision: UUID
    """The recorded decision."""
    ask: Name | None = None
    """The ask to carry out, where several were decided each alone."""
