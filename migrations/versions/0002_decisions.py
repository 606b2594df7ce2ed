"""The decision log."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", UUID, primary_key=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("now", sa.BigInteger, nullable=False),
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("configuration_name", sa.Text(collation="C")),
        sa.Column("configuration_revision", sa.Integer),
        sa.Column("configuration_digest", sa.Text, nullable=False),
        sa.Column("state_digest", sa.Text, nullable=False),
        sa.Column("asks", ARRAY(sa.Text), nullable=False),
        sa.Column("outcomes", ARRAY(sa.Text), nullable=False),
        sa.Column("evicted", ARRAY(sa.Text), nullable=False),
        sa.Column("evictions", sa.Integer, nullable=False),
        sa.Column("seconds", JSONB, nullable=False),
        sa.Column("request_digest", sa.Text, nullable=False),
        sa.Column("request", sa.LargeBinary, nullable=False),
        sa.Column("answer", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_decisions_configuration_name", "decisions", ["configuration_name", "id"])
    op.create_index("ix_decisions_asks", "decisions", ["asks"], postgresql_using="gin")
    op.create_index("ix_decisions_evicted", "decisions", ["evicted"], postgresql_using="gin")
    # Request and answer arrive compressed: another attempt by the server would only cost time.
    op.execute("alter table decisions alter column request set storage external")
    op.execute("alter table decisions alter column answer set storage external")


def downgrade() -> None:
    op.drop_table("decisions")
