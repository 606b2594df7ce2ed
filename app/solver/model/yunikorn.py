"""YuniKorn's blocks."""

from typing import Annotated, Literal

import msgspec

from app.solver.model.base import Name, Resources, Time, Wire

Rules = Literal["documented", "shipped"]
Release = Literal["be3bb487"]


class Settings(Wire, frozen=True, kw_only=True):
    """``settings.yunikorn``: which rule set decides (docs/engines/yunikorn.md)."""

    rules: Rules = "documented"
    """`documented`: as YuniKorn's design says, and as released where it is silent; `shipped`: as the release does,
    known defects included."""
    preemption: bool = True
    """Whether work is preempted at all (the partition's `preemption.enabled`), but for asks that require their node."""
    release: Release = "be3bb487"
    """Which release that is: yunikorn-core as of that commit (July 2026)."""


Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class ChildTemplate(Wire, frozen=True, kw_only=True):
    """What queues made at run time below this one start with."""

    properties: dict[str, str] = {}
    """Properties that they start with, as YuniKorn spells them."""
    guaranteed: Resources = {}
    """What they are entitled to. Read by imports, which make such queues."""
    max: Resources = {}
    """The most that they may use. Read by imports, which make such queues."""
    max_applications: Number = 0
    """How many applications may run in each of them. Read by imports, which make such queues."""

    @property
    def empty(self) -> bool:
        """Whether it is as good as none (YuniKorn: isChildTemplateEmpty): a template above it counts then."""
        return not (self.max_applications or self.guaranteed or self.max or any(self.properties.values()))


class Limit(Wire, frozen=True, kw_only=True):
    """What users and groups may have of a queue. `*` as a user: each that no limit of the queue names; as a group:
    those of users of whose groups none is named."""

    limit: str = ""
    """What it is for, in words."""
    users: list[str] = []
    """The users, each of whom may have so much."""
    groups: list[str] = []
    """The groups, each of which may have so much together."""
    max_resources: Resources = {}
    """The most that runs. Absent: no limit."""
    max_applications: Number = 0
    """How many applications may run. Default: no limit."""


class Queue(Wire, frozen=True, kw_only=True):
    """``queue.yunikorn``: properties as YuniKorn spells them."""

    properties: dict[str, str] = {}
    """Its properties, as YuniKorn spells them: `preemption.policy`, `preemption.delay`, `priority.offset` and more."""
    parent: bool = False
    """Whether it is a parent although no queue below it is listed."""
    dynamic: bool = False
    """Whether it was made at run time by a placement rule; it inherits by template only."""
    child_template: ChildTemplate | None = None
    """What queues made at run time below it start with. Absent: nothing."""
    max_applications: Number = 0
    """How many applications may run in it and below. Default: no limit."""
    limits: list[Limit] = []
    """What users and groups may have of it and of what is below."""


class Application(Wire, frozen=True, kw_only=True):
    """``workload.yunikorn``: whose application it is."""

    user: str = "nobody"
    """The user who submitted it."""
    groups: list[str] = []
    """The user's groups."""


class Ask(Wire, frozen=True, kw_only=True):
    """``ask.yunikorn``: what earlier cycles did for this ask."""

    last_preemption_check_at: Time | None = None
    """When preemption was last tried for it; another try comes 15 seconds later at the earliest. Absent: never."""
    triggered_preemption: bool = False
    """Whether an earlier cycle preempted for it; then it does not preempt again."""
    application: Name | None = None
    """Its application, where nothing of that runs yet. Absent: `workload`, else the ask itself."""
    user: str = "nobody"
    """The user who submitted it, where nothing of its application runs yet."""
    groups: list[str] = []
    """The user's groups."""


class Options(Wire, frozen=True, kw_only=True):
    """``options.yunikorn``."""

    node_choice: Literal["first", "scored"] = "scored"
    """`scored`: nodes are compared as with the Kubernetes shim; `first`: the first that can make room, as without a
    predicate callback."""
    enforce_quota: str | None = None
    """Enforce this queue's lowered quota: `asks` stay empty, victims are in `plan`. Absent: decide the asks."""
