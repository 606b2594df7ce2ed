"""Names, by any part of which something is found: what the log and followers told of, once each; and whom a compared
preemption really stopped."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_NEWEST = "(select * from decisions order by id desc limit 100000) as newest"
_FITS = "octet_length(n) between 1 and 2000"
_TOLD = [
    f"select '{kind}', n, lower(n), max(created_at) from {_NEWEST}, unnest({those}) as n where {_FITS} group by n"
    for kind, those in (
        ("workload", "evicted || coalesce(workloads, '{}') || coalesce(spared, '{}')"), ("ask", "asks"),
        ("queue", "coalesce(queues, '{}')"),
    )
] + [
    f"select '{kind}', n, lower(n), max(at) from (select {column} as n, at from cluster_evictions) as seen"
    f" where {_FITS} group by n"
    for kind, column in (("workload", "workload"), ("workload", "job"), ("queue", "queue"), ("ask", "by"))
]  # fmt: skip
"""Those that the log and followers have told of so far."""


def upgrade() -> None:
    op.create_table(
        "names",
        sa.Column("kind", sa.Text(collation="C"), primary_key=True),
        sa.Column("name", sa.Text(collation="C"), primary_key=True),
        sa.Column("folded", sa.Text(collation="C"), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_names_seen_at", "names", ["seen_at"])
    op.add_column("shadow", sa.Column("victims", ARRAY(sa.Text)))
    op.create_index(
        "ix_shadow_victims", "shadow", ["victims"], postgresql_using="gin",
        postgresql_where=sa.text("victims is not null"),
    )  # fmt: skip
    for told in _TOLD:
        op.execute(f"insert into names (kind, name, folded, seen_at) {told} on conflict do nothing")


def downgrade() -> None:
    op.drop_index("ix_shadow_victims", "shadow")
    op.drop_column("shadow", "victims")
    op.drop_table("names")
