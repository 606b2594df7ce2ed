"""What can be asked: one value an operation, the same for whoever asks, carries and answers."""

from datetime import datetime
from enum import Enum

import msgspec

from app.answering.recording import Known
from app.formats.exported import Format
from app.solver.model.decision import ConfigurationUsed, StateUsed


class Operation(Enum):
    """An operation on bytes. Those on a kept snapshot name it beside the bytes."""

    DECISION = "decision"
    COMPARISON = "comparison"
    PLAN = "plan"
    PREEMPTION = "preemption"
    SHARES = "shares"
    PREEMPTIBILITY = "preemptibility"
    EFFECTIVE_SETTINGS = "effective-settings"
    IMPORT = "import"
    SNAPSHOT_PUT = "snapshot-put"
    SNAPSHOT_DELTA = "snapshot-delta"
    SNAPSHOT_APPLY = "snapshot-apply"
    SNAPSHOT_GET = "snapshot-get"
    SNAPSHOT_STATE = "snapshot-state"
    SNAPSHOT_ASKS = "snapshot-asks"
    SNAPSHOT_DELETE = "snapshot-delete"
    SNAPSHOT_LIST = "snapshot-list"


class Used(msgspec.Struct, frozen=True):
    """The part of a recorded answer that says what it was based on."""

    configuration: ConfigurationUsed
    state: StateUsed


class Asked(msgspec.Struct, frozen=True):
    """One call, without the bytes of its body. ``now``: what stands for the request's own where it gives none.

    ``snapshot``: the one that it is about, where that is known. ``pinned``: decide on the revision and generation of
    an earlier answer. ``format``: of a manifest. ``known``: what the decision log has of the snapshot; None: it is to
    be given nothing. ``configuration``: the one that is meant, where the body does not name it."""

    operation: Operation
    now: datetime
    snapshot: str = ""
    pinned: Used | None = None
    format: Format | None = None
    known: Known | None = None
    configuration: str = ""
