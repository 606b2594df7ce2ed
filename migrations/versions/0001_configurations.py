"""Configurations and their immutable revisions."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "configurations",
        sa.Column("name", sa.Text(collation="C"), primary_key=True),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint("revision > 0", name="revision_positive"),
    )
    op.create_table(
        "configuration_revisions",
        sa.Column("name", sa.Text(collation="C"), sa.ForeignKey("configurations.name"), primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
    )
    # Whoever holds a decision must be able to replay it: a revision, once written, stays as it is.
    op.execute(
        """
        create function configuration_revisions_are_immutable() returns trigger language plpgsql as $$
        begin
            raise exception 'configuration revisions are immutable';
        end $$
        """
    )
    op.execute(
        """
        create trigger immutable before update or delete on configuration_revisions
        for each row execute function configuration_revisions_are_immutable()
        """
    )


def downgrade() -> None:
    op.drop_table("configuration_revisions")
    op.drop_table("configurations")
    op.execute("drop function configuration_revisions_are_immutable()")
