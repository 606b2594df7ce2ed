"""What queues of followed clusters used, once in each interval."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cluster_use",
        sa.Column("id", postgresql.UUID(as_uuid=True), primary_key=True),
        sa.Column("cluster", sa.Text(collation="C"), nullable=False),
        sa.Column("interval", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sa.UniqueConstraint("cluster", "interval", name="uq_cluster_use"),
    )


def downgrade() -> None:
    op.drop_table("cluster_use")
