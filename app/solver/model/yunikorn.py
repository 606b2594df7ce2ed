"""YuniKorn's blocks."""

from typing import Literal

from app.solver.model.base import Time, Wire

Release = Literal["be3bb487"]


class Settings(Wire, frozen=True, kw_only=True):
    """``settings.yunikorn``: which rule set decides (docs/engines/yunikorn.md)."""

    rules: Literal["documented", "shipped"] = "documented"
    """`documented`: as YuniKorn's design says, and as released where it is silent; `shipped`: as the release does,
    known defects included."""
    release: Release = "be3bb487"
    """Which release that is: yunikorn-core as of that commit (July 2026)."""


class ChildTemplate(Wire, frozen=True, kw_only=True):
    """What queues made at run time below this one start with."""

    properties: dict[str, str] = {}
    """Properties that they start with, as YuniKorn spells them."""


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


class Ask(Wire, frozen=True, kw_only=True):
    """``ask.yunikorn``: what earlier cycles did for this ask."""

    last_preemption_check_at: Time | None = None
    """When preemption was last tried for it; another try comes 15 seconds later at the earliest. Absent: never."""
    triggered_preemption: bool = False
    """Whether an earlier cycle preempted for it; then it does not preempt again."""


class Options(Wire, frozen=True, kw_only=True):
    """``options.yunikorn``."""

    node_choice: Literal["first", "scored"] = "scored"
    """`scored`: nodes are compared as with the Kubernetes shim; `first`: the first that can make room, as without a
    predicate callback."""
    enforce_quota: str | None = None
    """Enforce this queue's lowered quota: `asks` stay empty, victims are in `plan`. Absent: decide the asks."""
