"""The cause of a comparison, as they are counted."""

import json

import sqlalchemy as sa
import zstandard
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("shadow", sa.Column("cause", sa.Text(), nullable=False, server_default="unknown"))
    op.alter_column("shadow", "cause", server_default=None)
    connection = op.get_bind()
    rows = connection.execute(sa.text("select id, record from shadow"), execution_options={"yield_per": 500})
    causes: dict[str, list[object]] = {}
    for identity, record in rows:
        said = json.loads(zstandard.ZstdDecompressor().decompress(record))
        causes.setdefault(said.get("cause", "unknown"), []).append(identity)
    for cause, of in causes.items():
        connection.execute(sa.text("update shadow set cause = :cause where id = any(:of)"), {"cause": cause, "of": of})


def downgrade() -> None:
    op.drop_column("shadow", "cause")
