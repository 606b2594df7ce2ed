"""Decisions say who asked and about which queues, and keep what they need to be made again."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "kept_documents",
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("base", sa.BigInteger, sa.ForeignKey("kept_documents.id", name="fk_kept_documents_base")),
        sa.Column("root", sa.BigInteger),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_kept_documents_digest", "kept_documents", ["digest"], unique=True)
    for name in ("base", "root"):
        op.create_index(
            f"ix_kept_documents_{name}", "kept_documents", [name], postgresql_where=sa.text(f"{name} is not null")
        )
    # The content arrives compressed: another attempt by the server would only cost time.
    op.execute("alter table kept_documents alter column content set storage external")
    for column in (
        sa.Column("actor", sa.Text(collation="C")),
        sa.Column("queues", ARRAY(sa.Text)),
        sa.Column("workloads", ARRAY(sa.Text)),
        sa.Column("kept_state", sa.BigInteger, sa.ForeignKey("kept_documents.id", name="fk_decisions_kept_state")),
        sa.Column(
            "kept_configuration",
            sa.BigInteger,
            sa.ForeignKey("kept_documents.id", name="fk_decisions_kept_configuration"),
        ),
        sa.Column("kept_bytes", sa.Integer, nullable=False, server_default="0"),
    ):
        op.add_column("decisions", column)
    # Only rows that have a value are in these: a log of a million entries is not written anew.
    there = {name: sa.text(f"{name} is not null") for name in ("actor", "queues", "workloads")}
    op.create_index("ix_decisions_actor", "decisions", ["actor", "id"], postgresql_where=there["actor"])
    for name in ("queues", "workloads"):
        op.create_index(
            f"ix_decisions_{name}", "decisions", [name], postgresql_using="gin", postgresql_where=there[name]
        )
    for name in ("kept_state", "kept_configuration"):
        op.create_index(f"ix_decisions_{name}", "decisions", [name], postgresql_where=sa.text(f"{name} is not null"))


def downgrade() -> None:
    for name in ("kept_bytes", "kept_configuration", "kept_state", "workloads", "queues", "actor"):
        op.drop_column("decisions", name)
    op.drop_table("kept_documents")
