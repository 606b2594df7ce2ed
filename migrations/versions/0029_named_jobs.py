"""The names of simulations, as they are looked for."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("folded", sa.Text(collation="C")))
    op.create_index("ix_jobs_folded", "jobs", ["kind", "id"], postgresql_where=sa.text("folded is not null"))
    connection = op.get_bind()
    for identity, about in connection.execute(sa.text("select id, about from jobs where kind = 'simulation'")).all():
        name = json.loads(bytes(about)).get("name")
        if name is not None:
            folded = name.replace("\0", "\ufffd").casefold()
            connection.execute(
                sa.text("update jobs set folded = :folded where id = :id"), {"folded": folded, "id": identity}
            )


def downgrade() -> None:
    op.drop_index("ix_jobs_folded", "jobs")
    op.drop_column("jobs", "folded")
