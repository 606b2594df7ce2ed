"""The body and the answer of ``POST /v1/plans``."""

from typing import Any

from app.solver.model.base import Duration, Name, Priority, Quantity, Time, Wire
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.decision import ConfigurationUsed, Decision, Outcome, Plan, StateUsed, Units
from app.solver.model.problems import Finding
from app.solver.model.request import Asks, Explain, Options, StateOrReference
from app.solver.model.state import Ask


class PlanRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/plans``: would this work run, if it were submitted to this cluster?

    The cluster is a configuration and a state, as a decision takes them, or ``cluster``, the manifests of one.
    """

    manifest: str | dict[str, Any]
    """The work: the text of its manifest (YAML or JSON, one document or several), or one object of it, also a `List`.
    YTsaurus: the specification of an operation."""
    engine: EngineName | None = None
    """Whose rules decide. Absent: the engine of the configuration, or of the manifests of the cluster."""
    now: Time | None = None
    """The time of the decision. Absent: the host's clock."""
    cluster: str | None = None
    """Manifests of the cluster, as `POST /v1/configurations:import` takes them: queues, nodes, what runs and waits.
    Absent: `configuration` and `state` say it."""
    configuration: str | Configuration | None = None
    """The configuration: `name`, `name@revision`, `name@label`, or the document itself. With `cluster` it takes the
    place of the queues there."""
    state: StateOrReference | None = None
    """What runs: the state itself, or `{snapshot: name}`. Absent: what runs in `cluster`, else nothing."""
    asks: Asks = []
    """What waits already; it is decided in the same cycle. `pending`: what is kept waiting beside the snapshot."""
    queue: Name | None = None
    """The queue that the work goes to, whatever it says itself. Absent: the one it names."""
    namespace: Name = "default"
    """The namespace of objects that name none."""
    local_queues: dict[str, str] = {}
    """The ClusterQueue of each LocalQueue, by `namespace/name` (Kueue); added to those in the manifests. Where there is
    none at all, the label is taken for the name of the ClusterQueue."""
    priority_classes: dict[str, Priority] = {}
    """The value of each priority class, by name; added to those in the manifests."""
    waited: Duration = 0
    """For how long the work is taken to have waited: some rules let work preempt only after a delay. Default: submitted
    just now."""
    set: dict[str, Any] = {}
    """Fields of the configuration to set, by path, as a variant of a comparison has them: would it run, if the
    configuration were so?"""
    options: Options = Options()
    """Options of the engine for this request."""
    explain: Explain = "summary"
    """How much to tell about why; `summary` says what would let in what has to wait."""


class PlannedWork(Wire, frozen=True, kw_only=True):
    """An object of the manifest, as the system takes it."""

    object: str
    """Kind, namespace and name of the object."""
    queue: str
    """The queue that it is charged to."""
    priority: Priority
    """The priority that it has."""
    pods: int
    """How many pods (YTsaurus: jobs) it starts."""
    requests: dict[str, Quantity]
    """What they ask for together, by resource."""
    outcome: Outcome
    """The outcome of all of it: the worst of its asks."""
    asks: list[str]
    """The ids of the asks that it became."""


class ResourceChange(Wire, frozen=True, kw_only=True):
    """One resource of one queue, in whole units, before the plan and when it is carried out."""

    guaranteed: Quantity | None = None
    """What the queue is entitled to by its configuration, all flavors together. Absent: nothing."""
    limit: Quantity | None = None
    """The most that it may use by its configuration. Absent: no limit."""
    used_before: Units
    """What it uses now."""
    used_after: Units
    """What it will use."""
    fair_share_before: Units | str | None = None
    """What the engine finds it entitled to now. Absent: the engine does not say."""
    fair_share_after: Units | str | None = None
    """The same once the plan is carried out."""


class QueueChange(Wire, frozen=True, kw_only=True):
    """One queue before the plan and when it is carried out."""

    queue: str
    """Its name."""
    resources: dict[str, ResourceChange]
    """The resources of which it will use more or less; of the queues of the work, those that it asks for too."""
    share_before: Units | None = None
    """Its share as the engine compares queues. Absent: the engine has none."""
    share_after: Units | None = None
    """The same once the plan is carried out."""


class PlanAnswer(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """What would become of the work, and of the others."""

    engine: str
    """Whose rules decided."""
    configuration: ConfigurationUsed
    """The configuration that was used."""
    state: StateUsed
    """The state that was used."""
    outcome: Outcome
    """`admit`: all of it would run now; `preempt`: once others have stopped; else the worst outcome of its asks."""
    work: list[PlannedWork]
    """The objects of the manifest, in its order."""
    asks: list[Ask]
    """What the work became, as a decision takes it."""
    decisions: list[Decision]
    """The decisions on those asks."""
    waiting: list[Decision]
    """The decisions on the asks that waited already."""
    plan: Plan
    """What to carry out: who would stop, and what would be placed."""
    queues: list[QueueChange]
    """The queues whose use changes, and those of the work."""
    findings: list[Finding]
    """What could not be carried over; pointers lead into `/manifest` and `/cluster`. With one of severity `error`
    something of the manifest is left out."""
    stats: dict[str, float]
    """Milliseconds by stage."""
