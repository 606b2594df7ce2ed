"""The database. SQL lives in the ``repository.py`` of each package; its tables hang on ``metadata``."""

from app.db.connecting import Statement, connect_arguments, with_driver
from app.db.database import MIGRATIONS, Database, after_commit, head_revision, is_newer, metadata, migrate

__all__ = ["MIGRATIONS", "Database", "Statement", "after_commit", "connect_arguments", "head_revision", "is_newer",
           "metadata", "migrate", "with_driver"]  # fmt: skip
