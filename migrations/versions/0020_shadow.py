"""Real preemptions, compared with Arbiter's."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "shadow",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("cluster", sa.Text(collation="C"), nullable=False),
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("ask", sa.Text(collation="C"), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("bytes", sa.Integer, nullable=False),
        sa.Column("record", sa.LargeBinary, nullable=False),
        sa.Column("request", sa.LargeBinary),
    )
    op.create_index("ix_shadow_cluster", "shadow", ["cluster", "id"])
    op.create_index("ix_shadow_outcome", "shadow", ["outcome", "id"])
    op.create_index("ix_shadow_ask", "shadow", ["ask", "id"])


def downgrade() -> None:
    op.drop_table("shadow")
