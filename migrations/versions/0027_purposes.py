"""What a decision was asked for, and whose asks evict whose work, counted by queue and reason."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("decisions", sa.Column("purpose", sa.Text))
    op.add_column("decisions", sa.Column("stops", JSONB))


def downgrade() -> None:
    op.drop_column("decisions", "stops")
    op.drop_column("decisions", "purpose")
