"""Names of configurations as the revisions that they mean when something is asked for."""

from typing import TypeVar

import msgspec

from app.answering.sources import Documents
from app.simulations.schemas import Change, SimulationRequest, Trace
from app.solver.model.configuration import Configuration
from app.solver.model.request import Variant

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
