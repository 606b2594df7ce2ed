"""Who wrote a revision and why, labels on revisions, and a change number that replicas follow."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("configuration_revisions", sa.Column("author", sa.Text, nullable=False, server_default="anonymous"))
    op.add_column("configuration_revisions", sa.Column("comment", sa.Text))
    op.add_column("configuration_revisions", sa.Column("restored_from", sa.Integer))
    op.create_table(
        "configuration_labels",
        sa.Column("name", sa.Text(collation="C"), sa.ForeignKey("configurations.name"), primary_key=True),
        sa.Column("label", sa.Text(collation="C"), primary_key=True),
        # A label that was taken off stays as a row without a revision: its versions are never given out twice.
        sa.Column("revision", sa.Integer),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("comment", sa.Text),
        sa.ForeignKeyConstraint(
            ["name", "revision"],
            ["configuration_revisions.name", "configuration_revisions.revision"],
            name="fk_configuration_labels_revision",
        ),
    )
    op.execute("create sequence configuration_change")
    for table in ("configurations", "configuration_labels"):
        op.add_column(table, sa.Column("change", sa.BigInteger, nullable=False, server_default="0"))
    op.execute("update configurations set change = nextval('configuration_change')")
    # Numbers come in the order of commits, because whoever takes one holds the lock until it has committed. So a
    # replica that has seen a number has seen everything below it, and only asks for what is above.
    op.execute(
        """
        create function configuration_changed() returns trigger language plpgsql as $$
        begin
            perform pg_advisory_xact_lock(1095909956);
            new.change := nextval('configuration_change');
            perform pg_notify('arbiter_configurations', new.name);
            return new;
        end $$
        """
    )
    for table in ("configurations", "configuration_labels"):
        op.create_index(f"ix_{table}_change", table, ["change"])
        op.execute(
            f"create trigger changed before insert or update on {table} "
            "for each row execute function configuration_changed()"
        )


def downgrade() -> None:
    op.drop_table("configuration_labels")
    op.execute("drop trigger changed on configurations")
    op.execute("drop function configuration_changed()")
    op.drop_index("ix_configurations_change", "configurations")
    op.drop_column("configurations", "change")
    op.execute("drop sequence configuration_change")
    for column in ("restored_from", "comment", "author"):
        op.drop_column("configuration_revisions", column)
