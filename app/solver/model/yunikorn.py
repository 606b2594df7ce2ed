"""YuniKorn's blocks."""

from typing import Literal

from app.solver.model.base import Time, Wire


class Settings(Wire, frozen=True, kw_only=True):
    """``settings.yunikorn``: which rule set decides (docs/engines/yunikorn.md)."""

    rules: Literal["documented", "shipped"] = "documented"


class ChildTemplate(Wire, frozen=True, kw_only=True):
    """What queues made at run time below this one start with."""

    properties: dict[str, str] = {}


class Queue(Wire, frozen=True, kw_only=True):
    """``queue.yunikorn``: properties as YuniKorn spells them."""

    properties: dict[str, str] = {}
    parent: bool = False
    dynamic: bool = False
    child_template: ChildTemplate | None = None


class Ask(Wire, frozen=True, kw_only=True):
    """``ask.yunikorn``: what earlier cycles did for this ask."""

    last_preemption_check_at: Time | None = None
    triggered_preemption: bool = False


class Options(Wire, frozen=True, kw_only=True):
    """``options.yunikorn``."""

    node_choice: Literal["first", "scored"] = "scored"
    enforce_quota: str | None = None
