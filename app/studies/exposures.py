"""``/v1/exposures``: who is next, as a job that whoever asks can watch and stop."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import RowMapping

from app.answering.snapshots import FollowedAge, PendingAsks, SnapshotStatus
from app.answering.sources import Compiled, Documents
from app.base.decoding import decode
from app.jobs.service import Jobs, JobsOfKind, New, Said, outcome_of, router_of, state_of
from app.simulations.accepting import Pinning
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.request import StateOrReference
from app.studies.exposing import prepared
from app.studies.exposure_schemas import (
    EXPOSURE,
    ExposureOutcome,
    ExposureProgress,
    ExposureRequest,
    Exposures,
    ExposuresPage,
)

KIND = "exposure"


class About(msgspec.Struct, frozen=True):
    """What is kept of a request to tell of it without reading it."""

    configuration: str | None
    snapshot: str | None
    followed: FollowedAge | None = None


class SnapshotReads(msgspec.Struct, frozen=True):
    """What is asked of a kept snapshot: its status, its state with its generation, and what waits beside it; each by
    name, as JSON. ``age``: how old it is, where it follows a cluster."""

    status: Callable[[str], bytes]
    state: Callable[[str], tuple[int, bytes]]
    asks: Callable[[str], bytes]
    age: Callable[[str | None], FollowedAge | None]


class ExposureJobs(JobsOfKind[Exposures, ExposuresPage]):
    """Accepted, shown, stopped."""

    def __init__(self, jobs: Jobs, documents: Documents, snapshots: SnapshotReads) -> None:
        super().__init__(jobs, KIND, _shown, ExposuresPage)
        self._documents = documents
        self._configurations = Compiled(documents)
        self._snapshots = snapshots

    def start(self, body: bytes) -> Exposures:
        """Accept a question; what it names is written out, so that the worker reads what was meant. Raises
        InvalidInput, NotFound, TooManyRequests, Unavailable."""
        request = decode(body, ExposureRequest)
        pins, snapshot = Pinning(self._documents), request.state.snapshot
        followed = self._snapshots.age(snapshot)
        pinned = msgspec.structs.replace(
            request, now=request.now or datetime.now(UTC),
            configuration=pins.reference(self._configuration(request)), asks=self._asks(request),
            state=request.state if snapshot is None else decode(self._snapshots.state(snapshot)[1], StateOrReference),
        )  # fmt: skip
        prepared(pinned, self._configurations)  # what is wrong is told now
        named = pinned.configuration if isinstance(pinned.configuration, str) else None
        new = New(msgspec.json.encode(About(named, snapshot, followed)), msgspec.json.encode(pinned))
        return self._accept(lambda _: new)

    def _configuration(self, request: ExposureRequest) -> Any:
        if request.configuration is not None:
            return request.configuration
        if request.state.snapshot is None:
            raise _missing("missing field: only a snapshot has a configuration of its own")
        used = msgspec.json.decode(self._snapshots.status(request.state.snapshot), type=SnapshotStatus).configuration
        if used.name is None:
            raise _missing("missing field: the snapshot was put with a document that has no name")
        return f"{used.name}@{used.revision}"

    def _asks(self, request: ExposureRequest) -> Any:
        if request.asks != "pending":
            return request.asks
        if request.state.snapshot is None:
            detail = "`pending` means what waits beside a snapshot: name one in `state`"
            raise InvalidInput([Problem(pointer="/asks", detail=detail)])
        return msgspec.json.decode(self._snapshots.asks(request.state.snapshot), type=PendingAsks).items


def _missing(detail: str) -> InvalidInput:
    return InvalidInput([Problem(pointer="/configuration", detail=detail)])


def _shown(row: RowMapping) -> Exposures:
    about = msgspec.json.decode(row["about"], type=About)
    progress = row["progress"]
    return Exposures(
        **state_of(row), configuration=about.configuration, snapshot=about.snapshot, followed=about.followed,
        progress=None if not progress else msgspec.convert(progress, ExposureProgress, strict=False),
        outcome=outcome_of(row, ExposureOutcome),
    )  # fmt: skip


DOCUMENTED = (ExposureRequest, Exposures, ExposuresPage)

router = router_of(
    ExposureJobs, KIND, request=ExposureRequest, shown=Exposures, page=ExposuresPage, example=EXPOSURE,
    begin=Said("expose", "Who is next?", """
    Of every running workload what would evict it, now and next, and what keeps it; and the order in which what waits
    would go. Accepted at once, made by a worker; `Location` is where to look."""),
    listed=Said("list_exposures", "Questions who is next, newest first", "Without outcomes."),
    got=Said(
        "get_exposure", "How far it is and, once done, who is next",
        "Running work, most exposed first, and what waits, in the order in which it would go.",
    ),
)  # fmt: skip
