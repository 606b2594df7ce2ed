"""A manifest as Arbiter reads it: bytes in, bytes out. Parsing stops at safe points, as solving does."""

import msgspec

from app.formats import import_configuration
from app.formats.exported import Format
from app.formats.schemas import ImportedManifest
from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding


def imported(body: bytes, format: Format) -> bytes:  # noqa: A002
    """The JSON of an ``ImportedManifest``. Raises InvalidInput for what is no manifest at all."""
    found = import_configuration(body, format)
    return msgspec.json.encode(
        ImportedManifest(
            format=format,
            configuration=found.configuration,
            state=found.state,
            asks=found.asks,
            findings=found.findings,
            configuration_findings=_remarks(found.configuration),
        )
    )


def _remarks(configuration: Configuration) -> list[Finding]:
    """Nothing to say about a manifest that holds no configuration."""
    if configuration.engine is None or not configuration.queues:
        return []
    return solve.findings(configuration)
