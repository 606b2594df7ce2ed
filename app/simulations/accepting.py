"""What somebody asks for, read, checked and pinned to revisions, so that it can be put aside for a worker."""

import socket
import traceback
from itertools import islice
from typing import TypeVar

import msgspec

from app.answering.sources import Compiled, Documents
from app.base.decoding import MAX_PROBLEMS, decode
from app.base.errors import BadInput
from app.simulations.core.scenario import scenario_of, variants_of
from app.simulations.schemas import Change, SimulationRequest, Trace, too_many_jobs
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Problem, pointer, repeated
from app.solver.model.request import Variant
from app.workers.messages import (
    Failed,
    Processes,
    Remote,
    WantDocument,
    WantHead,
    failed,
    raised,
    receive,
    send,
    serve_once,
    supply,
)

Part = TypeVar("Part", Change, Variant)


class Pinning:
    """Names of configurations as the revisions that they mean now: a run that is begun again is the same run."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def request(self, request: SimulationRequest) -> SimulationRequest:
        """Raises NotFound, BadInput, Unavailable."""
        trace = request.trace
        if isinstance(trace, Trace):
            changes = [self.part(change) for change in trace.changes]
            trace = msgspec.structs.replace(trace, changes=changes)
        return msgspec.structs.replace(
            request,
            configuration=self.reference(request.configuration),
            variants=None if request.variants is None else [self.part(variant) for variant in request.variants],
            trace=trace,
        )

    def part(self, part: Part) -> Part:
        """A change or a variant. Raises as ``request``."""
        if part.configuration is None:
            return part
        return msgspec.structs.replace(part, configuration=self.reference(part.configuration))

    def reference(self, configuration: str | Configuration) -> str | Configuration:
        """A configuration by revision; one that is written out stays. Raises as ``request``."""
        if not isinstance(configuration, str):
            return configuration
        name, revision = self._documents.head(configuration)
        self._documents.document(name, revision)  # it is there
        return f"{name}@{revision}"


class Terms(msgspec.Struct, frozen=True, tag=True):
    """The most ``variants`` that one may have, and ``jobs`` that it may bring along."""

    variants: int
    jobs: int


class Accepted(msgspec.Struct, frozen=True, tag=True):
    """``names`` of the variants; ``trace``: the stored one that it names; ``request``: as JSON, with revisions;
    ``name``: its own."""

    names: list[str]
    trace: str | None
    request: bytes
    name: str | None


def accept(body: bytes, terms: Terms, documents: Documents, configurations: Compiled) -> Accepted:
    """Raises InvalidInput, BadInput, NotFound, Unavailable."""
    request = decode(body, SimulationRequest)
    names = variant_names(request, terms.variants)
    if isinstance(request.trace, Trace) and len(request.trace.jobs) > terms.jobs:
        raise BadInput([Problem(pointer="/trace/jobs", detail=too_many_jobs(terms.jobs))])
    pinned = Pinning(documents).request(request)
    for _, variant in variants_of(pinned, configurations):  # what is wrong is told now
        scenario_of(variant, configurations, None if isinstance(request.trace, Trace) else ())
    trace = request.trace if isinstance(request.trace, str) else None
    return Accepted(names, trace, msgspec.json.encode(pinned), request.name)


def variant_names(request: SimulationRequest, most: int) -> list[str]:
    """The names of the variants; one empty name where there are none. Raises BadInput."""
    if request.variants is None:
        return [""]
    names = [variant.name for variant in request.variants]
    problems = [
        Problem(pointer=pointer("variants", i, "name"), detail="another variant has this name")
        for i in islice(repeated(names), MAX_PROBLEMS)
    ]
    if not 0 < len(names) <= most:
        problems.append(Problem(pointer="/variants", detail=f"{len(names)} variants; 1 to {most} are allowed"))
    if problems:
        raise BadInput(problems)
    return names


ENTRY = ["-m", "app.simulations.accepting"]


class Acceptors:
    """The processes that read at the moment. ``documents``: what those that name configurations are told of them.

    A large simulation is read in a process of its own, at low priority: its trace takes the interpreter for seconds,
    which decisions would have to wait for.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._processes = Processes("read the simulation")

    def accepted(self, body: bytes, terms: Terms) -> Accepted:
        """See ``accept``. Raises what it does, DeadlinePassed, Unavailable."""
        with self._processes.started(ENTRY) as connection:
            send(connection, terms, body)
            while True:
                message, request = receive(connection, WantHead | WantDocument | Accepted | Failed)
                match message:
                    case Accepted():
                        return msgspec.structs.replace(message, request=request)
                    case Failed():
                        raise raised(message)
                    case _:
                        supply(connection, message, self._documents)

    def close(self) -> None:
        """End them all: who waits for one gets Unavailable."""
        self._processes.close()


def _accept(connection: socket.socket) -> None:
    """In the process: one simulation. Raises Closed."""
    terms, body = receive(connection, Terms)
    remote = Remote(connection)
    try:
        accepted = accept(body, terms, remote, Compiled(remote))
    except Exception as error:
        send(connection, failed(error, traceback.format_exc()))
    else:
        send(connection, msgspec.structs.replace(accepted, request=b""), accepted.request)


if __name__ == "__main__":
    serve_once(_accept)
