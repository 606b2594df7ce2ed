"""Answers to writes that carried an Idempotency-Key."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("actor", sa.Text(collation="C"), primary_key=True),
        sa.Column("key", sa.Text(collation="C"), primary_key=True),
        sa.Column("request", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("status", sa.Integer),
        sa.Column("headers", JSONB),
        sa.Column("body", sa.LargeBinary),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])


def downgrade() -> None:
    op.drop_table("idempotency_keys")
