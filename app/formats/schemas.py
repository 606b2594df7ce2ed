"""What the import and export endpoints answer."""

from app.formats.names import ExportFormat, Format
from app.solver.model.base import Wire
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding
from app.solver.model.state import Ask, State


class ImportedManifest(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A manifest in Arbiter's words.

    ``findings`` say what could not be carried over; their pointers lead into the manifest, with the number of the
    document first where there are several. ``configuration_findings`` are remarks about the configuration itself, as a
    write of it would give; errors among them would refuse the write.
    """

    format: Format
    """The format that was read."""
    configuration: Configuration
    """The queues and settings that were found."""
    state: State
    """The nodes and the running work that were found."""
    asks: list[Ask]
    """The waiting work that was found."""
    findings: list[Finding]
    """What could not be carried over; pointers lead into the manifest, the number of the document first where there are
    several."""
    configuration_findings: list[Finding]
    """Remarks about the configuration, as a write of it would give; errors among them would refuse the write."""


class ExportedManifest(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A configuration in one system's words. ``findings`` say what it has no words for; pointers into the
    configuration. ``text`` is YAML."""

    format: ExportFormat
    """The format that was written."""
    text: str
    """The manifest, as YAML."""
    findings: list[Finding]
    """What the format has no words for; pointers lead into the configuration."""
