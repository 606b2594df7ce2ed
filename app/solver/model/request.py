"""The bodies of the four questions."""

from typing import Literal

from app.solver.model import kai as kai_model
from app.solver.model import kueue as kueue_model
from app.solver.model import ytsaurus as ytsaurus_model
from app.solver.model import yunikorn as yunikorn_model
from app.solver.model.base import Time, Wire
from app.solver.model.configuration import Configuration, EngineName, Settings
from app.solver.model.state import Ask, State

Explain = Literal["none", "summary", "full"]
Mode = Literal["independent", "cycle"]


class Options(Wire, frozen=True, kw_only=True):
    kueue: kueue_model.Options | None = None
    yunikorn: yunikorn_model.Options | None = None
    kai: kai_model.Options | None = None
    ytsaurus: ytsaurus_model.Options | None = None


class StateOrReference(State, frozen=True, kw_only=True):
    """A State, or ``{snapshot: name}``: one struct, so that decoding stays one pass."""

    snapshot: str | None = None


class DecisionRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/decisions``."""

    engine: EngineName | None = None
    now: Time | None = None
    mode: Mode = "independent"
    configuration: str | Configuration
    state: StateOrReference
    asks: list[Ask] = []
    options: Options = Options()
    explain: Explain = "none"


class SharesRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/shares``."""

    engine: EngineName | None = None
    now: Time | None = None
    configuration: str | Configuration
    state: StateOrReference
    asks: list[Ask] = []


class Eviction(Wire, frozen=True, kw_only=True):
    workload: str
    task: str | None = None


class PreemptibilityRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/preemptibility``."""

    engine: EngineName | None = None
    now: Time | None = None
    configuration: str | Configuration
    state: StateOrReference
    asks: list[Ask] = []
    ask: Ask | None = None
    action: Literal["reclaim", "preempt"] | None = None
    evict: list[Eviction] = []


class EffectiveSettingsRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/effective-settings``."""

    engine: EngineName | None = None
    configuration: str | Configuration
    state: StateOrReference | None = None


class Variant(Wire, frozen=True, kw_only=True):
    """One variant of a comparison: what differs from the base request."""

    name: str
    engine: EngineName | None = None
    settings: Settings | None = None
    configuration: str | Configuration | None = None
