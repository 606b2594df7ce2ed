"""Decisions of the guard are found by the names of pods."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("decisions", sa.Column("pods", ARRAY(sa.Text)))
    op.create_index(
        "ix_decisions_pods", "decisions", ["pods"], postgresql_using="gin", postgresql_where=sa.text("pods is not null")
    )


def downgrade() -> None:
    op.drop_index("ix_decisions_pods", "decisions")
    op.drop_column("decisions", "pods")
