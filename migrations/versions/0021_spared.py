"""Decisions know whom they spare."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("decisions", sa.Column("spared", ARRAY(sa.Text)))
    op.create_index(
        "ix_decisions_spared", "decisions", ["spared"], postgresql_using="gin",
        postgresql_where=sa.text("spared is not null"),
    )  # fmt: skip


def downgrade() -> None:
    op.drop_index("ix_decisions_spared", "decisions")
    op.drop_column("decisions", "spared")
