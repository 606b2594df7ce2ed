"""Of which release the rules of a decision are, where there are several."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("decisions", sa.Column("release", sa.Text))


def downgrade() -> None:
    op.drop_column("decisions", "release")
