"""Clusters that are followed: reports, and who writes."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cluster_followers",
        sa.Column("cluster", sa.Text(collation="C"), primary_key=True),
        sa.Column("follower", sa.Text(collation="C"), primary_key=True),
        sa.Column("reported_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("report", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "cluster_writers",
        sa.Column("cluster", sa.Text(collation="C"), primary_key=True),
        sa.Column("follower", sa.Text(collation="C"), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    for table in ("cluster_writers", "cluster_followers"):
        op.drop_table(table)
