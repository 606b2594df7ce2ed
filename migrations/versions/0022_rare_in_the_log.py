"""What is rare in a long decision log is found without reading all of it: an outcome, an engine."""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_decisions_outcomes", "decisions", ["outcomes"], postgresql_using="gin")
    op.create_index("ix_decisions_engine", "decisions", ["engine", "id"])


def downgrade() -> None:
    op.drop_index("ix_decisions_engine", "decisions")
    op.drop_index("ix_decisions_outcomes", "decisions")
