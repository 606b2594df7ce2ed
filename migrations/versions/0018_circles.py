"""Decisions know their evictions by key, and whether they belong to a circle."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("decisions", sa.Column("pairs", ARRAY(sa.BigInteger)))
    op.add_column("decisions", sa.Column("circle", sa.Boolean))
    op.create_index(
        "ix_decisions_pairs", "decisions", ["pairs"], postgresql_using="gin",
        postgresql_where=sa.text("pairs is not null"), postgresql_with={"fastupdate": "off"},
    )  # fmt: skip
    op.create_index("ix_decisions_circle", "decisions", ["id"], postgresql_where=sa.text("circle"))


def downgrade() -> None:
    op.drop_index("ix_decisions_circle", "decisions")
    op.drop_index("ix_decisions_pairs", "decisions")
    op.drop_column("decisions", "circle")
    op.drop_column("decisions", "pairs")
