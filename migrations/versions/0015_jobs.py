"""Jobs with their results, and stored traces."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _jobs()
    _traces()
    # What is stored is compressed already: another attempt by the server would only cost time.
    for table, column in (("jobs", "request"), ("jobs", "outcome"), ("job_chunks", "data"), ("trace_chunks", "data")):
        op.execute(f"alter table {table} alter column {column} set storage external")


def downgrade() -> None:
    for table in ("trace_chunks", "traces", "job_chunks", "jobs"):
        op.drop_table(table)


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False, server_default="queued"),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True)),
        sa.Column("attempt", sa.Integer, nullable=False, server_default="0"),
        sa.Column("trace", sa.Uuid),
        sa.Column("about", sa.LargeBinary, nullable=False),
        sa.Column("request", sa.LargeBinary, nullable=False),
        sa.Column("progress", JSONB),
        sa.Column("outcome", sa.LargeBinary),
        sa.Column("error", sa.Text),
    )
    op.create_index("ix_jobs_status_created_at", "jobs", ["status", "created_at"])
    op.create_index("ix_jobs_trace", "jobs", ["trace"])
    op.create_table(
        "job_chunks",
        sa.Column("job", sa.Uuid, sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("stream", sa.Text(collation="C"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("lines", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )


def _traces() -> None:
    op.create_table(
        "traces",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("name", sa.Text(collation="C")),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("summary", sa.LargeBinary, nullable=False),
        sa.Column("configuration", sa.LargeBinary),
    )
    op.create_index("ix_traces_name", "traces", ["name"], unique=True)
    op.create_table(
        "trace_chunks",
        sa.Column("trace", sa.Uuid, sa.ForeignKey("traces.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("jobs", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
