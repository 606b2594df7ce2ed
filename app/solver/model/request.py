"""The bodies of the four questions."""

from typing import Annotated, Any, Literal

import msgspec

from app.solver.model import kai as kai_model
from app.solver.model import kube_scheduler as kube_scheduler_model
from app.solver.model import kueue as kueue_model
from app.solver.model import ytsaurus as ytsaurus_model
from app.solver.model import yunikorn as yunikorn_model
from app.solver.model.base import Count, Time, Wire
from app.solver.model.configuration import Configuration, EngineName, Settings
from app.solver.model.state import Ask, State

Explain = Literal["none", "summary", "full"]
Mode = Literal["independent", "cycle"]
Asks = Annotated[
    list[Ask] | Literal["pending"],
    msgspec.Meta(title="Asks", description="Asks, or `pending`: those that are kept beside the snapshot of the state"),
]


class Options(Wire, frozen=True, kw_only=True):
    kueue: kueue_model.Options | None = None
    """Options of Kueue."""
    yunikorn: yunikorn_model.Options | None = None
    """Options of YuniKorn."""
    kai: kai_model.Options | None = None
    """Options of KAI Scheduler."""
    ytsaurus: ytsaurus_model.Options | None = None
    """Options of YTsaurus."""
    kube_scheduler: kube_scheduler_model.Options | None = None
    """Options of kube-scheduler."""


class RunOptions(Wire, frozen=True, kw_only=True):
    """Options of an engine for a run over time."""

    kueue: kueue_model.RunOptions | None = None
    """Options of Kueue."""


class StateOrReference(State, frozen=True, kw_only=True):
    """A State, or ``{snapshot: name}``: one struct, so that decoding stays one pass."""

    snapshot: str | None = None
    """The name of a kept snapshot, in place of all else here."""


class Eviction(Wire, frozen=True, kw_only=True):
    workload: str
    """The id of the workload."""
    task: str | None = None
    """The name of one of its tasks. Absent: all of it."""


class Proposal(Wire, frozen=True, kw_only=True):
    """Running work that another scheduler would evict together."""

    node: str
    """Where the room would be: what the answer calls the proposal; unique among them."""
    evict: list[Eviction] = []
    """Whom it would evict. One that the state does not have is refused."""
    rank: Count | None = None
    """Its place in the order in which that scheduler prefers them, from 1; it draws among those of one place. Absent:
    that is not known."""


class DecisionRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/decisions``."""

    engine: EngineName | None = None
    """Whose rules decide. Absent: the configuration's engine."""
    now: Time | None = None
    """The time of the decision. Absent: the host's clock, and recorded."""
    mode: Mode = "independent"
    """`independent`: each ask against the same state, as if it were alone; `cycle`: one scheduling cycle over all asks,
    each seeing what the earlier ones took."""
    configuration: str | Configuration | None = None
    """The configuration: `name`, `name@revision`, `name@label`, or the document itself. Absent: the snapshot's own, as
    it was given when the snapshot was put; a state that is sent along needs one."""
    state: StateOrReference
    """What runs: the state itself, or `{snapshot: name}`."""
    asks: Asks = []
    """What waits; `pending`: what is kept waiting beside the snapshot."""
    options: Options = Options()
    """Options of the engine for this request."""
    explain: Explain = "none"
    """How much to tell about why: nothing, candidates grouped by what became of them, or every candidate."""
    proposals: list[Proposal] | None = None
    """What another scheduler would evict for the one ask: which of these do the rules allow? Nothing else is decided
    then, and nothing planned. Without an ask: for work that is in no queue. Absent: victims are looked for."""


class SharesRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/shares``."""

    engine: EngineName | None = None
    """Whose rules count. Absent: the configuration's engine."""
    now: Time | None = None
    """The time of the question. Absent: the host's clock. Read by YTsaurus."""
    configuration: str | Configuration | None = None
    """The configuration: `name`, `name@revision`, `name@label`, or the document itself. Absent: the snapshot's own, as
    it was given when the snapshot was put; a state that is sent along needs one."""
    state: StateOrReference
    """What runs: the state itself, or `{snapshot: name}`."""
    asks: Asks = []
    """What waits: it is demand. `pending`: what is kept waiting beside the snapshot. Read by KAI, YuniKorn and
    YTsaurus."""
    options: Options = Options()
    """What the engine reads beside that. Read by YTsaurus: `last_update_at`."""


class PreemptibilityRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/preemptibility``."""

    engine: EngineName | None = None
    """Whose rules protect. Absent: the configuration's engine."""
    now: Time | None = None
    """The time of the question. Absent: the host's clock. Read by KAI and YTsaurus."""
    configuration: str | Configuration | None = None
    """The configuration: `name`, `name@revision`, `name@label`, or the document itself. Absent: the snapshot's own, as
    it was given when the snapshot was put; a state that is sent along needs one."""
    state: StateOrReference
    """What runs: the state itself, or `{snapshot: name}`."""
    asks: list[Ask] = []
    """What else waits: it is demand."""
    ask: Ask | None = None
    """From whom work is protected. Absent: from anybody, as far as the engine can tell."""
    action: Literal["reclaim", "preempt"] | None = None
    """By which action it would be taken. Absent: by the one that the queues tell. Read by KAI."""
    evict: list[Eviction] = []
    """Tell also whether evicting exactly these together would pass. Read by KAI."""


class EffectiveSettingsRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/effective-settings``."""

    engine: EngineName | None = None
    """Whose settings. Absent: the configuration's engine."""
    configuration: str | Configuration | None = None
    """The configuration: `name`, `name@revision`, `name@label`, or the document itself. Absent: the snapshot's own, as
    it was given when the snapshot was put; a state that is sent along needs one."""
    state: StateOrReference | None = None
    """What runs, where the settings of workloads are wanted too."""


class Variant(Wire, frozen=True, kw_only=True):
    """One variant of a comparison: what differs from the base request."""

    name: str
    """What the answer calls it; unique among the variants."""
    engine: EngineName | None = None
    """Another engine: queues, state and asks are told in its words. Absent: as in the request."""
    settings: Settings | None = None
    """Settings of engines that take the place of the configuration's own, block by block. Absent: as in the request."""
    configuration: str | Configuration | None = None
    """Another configuration. Absent: as in the request."""
    set: dict[str, Any] = {}
    """Fields of the configuration to set, by path: names of fields and of queues with dots between them, as
    `queues.research.quota.gpu.guaranteed`. What leads to a field must be there."""
