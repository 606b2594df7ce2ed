"""How long pages of the console take over a log of many entries, beside a page that asks nothing.

``python -m benchmarks.console_log [--entries 1000000]``: the entries are copies of one real decision, written in SQL
with times, asks, outcomes, engines and victims of their own, so that every index is as large as it would be.
"""

import argparse
import shutil
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa
from starlette.testclient import TestClient

from app.base import logs
from app.base.settings import Settings
from app.db.database import migrate
from app.db.embedded import EmbeddedPostgres
from app.decisions.log import DecisionLog
from app.decisions.repository import decisions
from app.service.main import create_app

_EXAMPLE = Path(__file__).parents[1] / "examples" / "kueue-classic.json"
_DAYS = 30
_BEST_OF = 3
_COPY = """
insert into decisions (id, created_at, now, engine, configuration_name, configuration_revision, configuration_digest,
    state_digest, asks, outcomes, evicted, evictions, seconds, request_digest, request, answer, actor, queues)
select (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '70008000'
        || lpad(to_hex(i), 12, '0'))::uuid,
    at, one.now, case when i % 50000 = 0 then 'ytsaurus' else (array['kueue', 'yunikorn', 'kai'])[1 + i % 3] end,
    'c' || i % 50, 1, one.configuration_digest,
    one.state_digest, array['job-' || i % 200000],
    array[case when i % 10000 = 0 then 'infeasible' else (array['preempt', 'wait', 'admit'])[1 + i % 3] end],
    case when i % 3 = 0 then array['w' || i % 300000] else array[]::text[] end, case when i % 3 = 0 then 1 else 0 end,
    one.seconds, one.request_digest, one.request, one.answer,
    'token:t' || case when i % 100000 = 0 then 'rare' else (i % 20)::text end,
    array['q' || case when i % 100000 = 0 then 'rare' else (i % 500)::text end]
from generate_series(1, :entries) as i, lateral (select now() - make_interval(secs => i * :step) as at) as moment,
    (select * from decisions limit 1) as one
"""


def grown(url: str, entries: int) -> None:
    """Copy the only entry; indexes are built afterwards, which is as they would be, and sooner."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for index in decisions.indexes:
            index.drop(connection)
        connection.execute(sa.text(_COPY), {"entries": entries, "step": _DAYS * 86400 / entries})
        for index in decisions.indexes:
            index.create(connection)
        connection.execute(sa.text("analyze decisions"))
    engine.dispose()


def pages(client: TestClient) -> dict[str, str]:
    """Addresses by what they show; the first asks nothing."""
    newest = client.get("/v1/decisions?limit=1").json()["items"][0]["id"]
    middle = (datetime.now(UTC) - timedelta(days=_DAYS / 2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "a page that asks nothing": "/why", "the log": "/decisions", "one engine": "/decisions?engine=kai",
        "a rare engine": "/decisions?engine=ytsaurus", "a rare actor": "/decisions?actor=token:trare",
        "a rare queue": "/decisions?queue=qrare", "a queue": "/decisions?queue=q7",
        "a frequent outcome": "/decisions?outcome=wait",
        "a rare outcome": "/decisions?outcome=infeasible", "a configuration": "/decisions?configuration=c7",
        "from the middle": f"/decisions?until={middle}", "what stopped a workload": "/decisions?workload=w150000",
        "nothing fits": "/decisions?workload=nobody", "why me": "/why?workload=w150000", "overview": "/",
        "one decision": f"/decisions/{newest}",
    }  # fmt: skip


def best(client: TestClient, address: str) -> float:
    """Milliseconds of the quickest of three visits."""
    times: list[float] = []
    for _ in range(_BEST_OF):
        began = time.perf_counter()
        answer = client.get(address)
        times.append(1000 * (time.perf_counter() - began))
        answer.raise_for_status()
    return min(times)


def main() -> None:
    """A table on standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    entries: int = parser.parse_args().entries
    logs.configure(Settings(log_level="error"))
    folder = Path(tempfile.mkdtemp(prefix="arbiter-console-log-"))
    server = EmbeddedPostgres(folder, settings=("fsync=off", "synchronous_commit=off", "max_wal_size=4GB"))
    try:
        url = server.start()
        migrate(url)
        app = create_app(Settings(database_url=url, data_dir=folder, workers=0))
        with TestClient(app, base_url="http://localhost") as client:
            headers = {"Content-Type": "application/json"}
            client.post("/v1/decisions", content=_EXAMPLE.read_bytes(), headers=headers).raise_for_status()
            app.state.services.of(DecisionLog).settle(10.0)
            began = time.perf_counter()
            grown(url, entries)
            print(f"{entries:,} entries, written in {time.perf_counter() - began:.0f} s")
            client.get("/why")
            found = {title: best(client, address) for title, address in pages(client).items()}
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    nothing = next(iter(found.values()))
    for title, took in found.items():
        print(f"{title:28} {took:8.1f} ms  {took / nothing:6.1f} x")


if __name__ == "__main__":
    main()
