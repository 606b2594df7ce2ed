"""Tokens, and the audit log that nobody edits."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

revision = "0010"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", UUID(as_uuid=True), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scopes", ARRAY(sa.Text), nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.clock_timestamp()),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("detail", JSONB),
    )
    op.create_index("ix_audit_actor", "audit", ["actor", "id"])
    op.create_index("ix_audit_action", "audit", ["action", "id"])
    op.execute(
        """
        create function audit_is_append_only() returns trigger language plpgsql as $$
        begin
            raise exception 'the audit log is append-only';
        end $$
        """
    )
    op.execute(
        "create trigger append_only before update or delete on audit "
        "for each row execute function audit_is_append_only()"
    )


def downgrade() -> None:
    op.drop_table("audit")
    op.drop_table("tokens")
    op.execute("drop function audit_is_append_only()")
