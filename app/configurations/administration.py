"""What the configuration endpoints work with, put together once."""

from app.configurations.idempotency.service import Writes
from app.configurations.labels.service import Labels
from app.configurations.queues.service import Queues
from app.configurations.service import Configurations
from app.configurations.writing import Editor
from app.db import Database


class Administration:
    """The stored configurations, and everything that changes them. ``idempotency``: seconds that answers are kept."""

    def __init__(self, database: Database, stored: Configurations, idempotency: float) -> None:
        self.stored = stored
        self.editor = Editor(stored)
        self.queues = Queues(stored, self.editor)
        self.labels = Labels(database, stored)
        self.writes = Writes(database, idempotency)
