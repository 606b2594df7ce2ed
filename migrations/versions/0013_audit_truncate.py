"""The audit log refuses TRUNCATE too."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "create trigger never_emptied before truncate on audit "
        "for each statement execute function audit_is_append_only()"
    )


def downgrade() -> None:
    op.execute("drop trigger never_emptied on audit")
