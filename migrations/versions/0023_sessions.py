"""Sessions of the console stand in the database; their cookies only name them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", postgresql.UUID(as_uuid=True), primary_key=True),
        sa.Column("hash", sa.LargeBinary(), nullable=False, unique=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("token", sa.LargeBinary()),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
    )
    op.create_table(
        "sign_ins",
        sa.Column("hash", sa.LargeBinary(), primary_key=True),
        sa.Column("said", postgresql.JSONB(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
    )
    op.drop_table("ended_sessions")


def downgrade() -> None:
    op.create_table(
        "ended_sessions",
        sa.Column("id", sa.Text(collation="C"), primary_key=True),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
    )
    op.drop_table("sign_ins")
    op.drop_table("sessions")
