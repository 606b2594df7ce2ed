"""What followers saw of evictions, by workload, job and queue."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cluster_evictions",
        sa.Column("id", postgresql.UUID(as_uuid=True), primary_key=True),
        sa.Column("cluster", sa.Text(collation="C"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("workload", sa.Text(collation="C"), nullable=False),
        sa.Column("task", sa.Text(collation="C"), nullable=False),
        sa.Column("job", sa.Text(collation="C")),
        sa.Column("queue", sa.Text(collation="C")),
        sa.Column("by", sa.Text(collation="C")),
        sa.Column("shadow", postgresql.UUID(as_uuid=True)),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sa.UniqueConstraint("cluster", "workload", "task", "at", name="uq_cluster_evictions"),
    )
    for name in ("workload", "job", "queue"):
        op.create_index(f"ix_cluster_evictions_{name}", "cluster_evictions", ["cluster", name, "id"])
    op.create_index("ix_cluster_evictions_shadow", "cluster_evictions", ["shadow"])


def downgrade() -> None:
    op.drop_table("cluster_evictions")
