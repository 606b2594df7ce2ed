"""When a job of each caller was begun last: workers take callers in turns."""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_jobs_actor_started_at", "jobs", ["actor", "started_at"])


def downgrade() -> None:
    op.drop_index("ix_jobs_actor_started_at", "jobs")
