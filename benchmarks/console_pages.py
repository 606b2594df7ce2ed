"""How much of the service's processor the first paint of every page takes, against ``budgets.PAGE_SECONDS``.

``python -m benchmarks.console_pages``: a kept snapshot of 10,000 workloads in 100 queues, one of 5,000 nodes with
50,000 pods in 10,000 workloads, a followed cluster with a day of use, a decision, and a simulation of 10,000 jobs in
100 queues under four variants. ``first`` is the first visit, after which ``again`` is the least of three; numbers of
pictures have their budget there. The document alone is asked for, as a browser's first paint does. Linux only.
"""

import json
import random
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from app.clusters.router import EXAMPLE as REPORT
from benchmarks import budgets, inputs, kube_cluster
from benchmarks.service import Client, cpu_seconds, service, wait_for_rest

_BEST_OF = 3
_DONE_SECONDS = 120
_DAY = 288
_RUN_SECONDS = 600
_JOBS, _QUEUES, _VARIANTS = 10_000, 100, 4
PICTURE = "picture: "
PICTURES = {
    "usage": "usage.json", "of a queue": "usage.json?name=q7", "waits": "waits.json",
    "a queue alone": "queue.json?name=q7&resource=cpu", "evictions": "evictions?variant=v1",
}  # fmt: skip
Item = dict[str, Any]


def simulation() -> Item:
    """Queues that borrow from one another, of which each evicts for what it is promised."""
    draw = random.Random(1)
    preemption = {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}
    leaf = {"parent": "all", "quota": {"cpu": {"guaranteed": 10}}, "kueue": {"preemption": preemption}}
    queues = [{"name": "all"}, *({"name": f"q{i}", **leaf} for i in range(_QUEUES))]
    task = {"name": "t", "requests": {"cpu": 1}}
    jobs = [
        {
            "ask": {"id": f"j{i}", "queue": f"q{draw.randrange(_QUEUES)}", "priority": i % 5, "tasks": [task]},
            "submitted_at": 8 * i, "duration": draw.randrange(60, 12_000),
        }
        for i in range(_JOBS)
    ]  # fmt: skip
    fair = ({"settings": {"kueue": {"fair_sharing": i % 2 > 0}}, "name": f"v{i}"} for i in range(_VARIANTS))
    return {
        "configuration": {"engine": "kueue", "queues": queues}, "trace": {"jobs": jobs}, "variants": [*fair],
        "name": "a day of 999 and more",
    }  # fmt: skip


def played(client: Client) -> str:
    """The id of one that is done. Raises RuntimeError."""
    made: str = client.ask("/v1/simulations", json.dumps(simulation()).encode())[0]["id"]
    until = time.monotonic() + _RUN_SECONDS
    status = "queued"
    while status in ("queued", "running") and time.monotonic() < until:
        time.sleep(0.5)
        status = client.ask(f"/v1/simulations/{made}", b"", "GET")[0]["status"]
    if status != "done":
        raise RuntimeError(f"the simulation is {status}")
    return made


def seed(client: Client) -> list[tuple[str, str, float]]:
    """What pages show, and each page's name, address and budget."""
    many = inputs.kueue(10_000, 100).request
    nodes = kube_cluster.cluster()
    for name, request in (("many", many), ("nodes", nodes)):
        put = {"engine": request["engine"], **request["configuration"]}
        client.ask(f"/v1/configurations/{name}", json.dumps(put).encode(), "PUT")
        kept = {"state": request["state"], "configuration": name}
        client.ask(f"/v1/snapshots/{name}", json.dumps(kept).encode(), "PUT")
    report = {**REPORT, "snapshot": "many", "configuration": "many"}
    client.ask("/v1/clusters/many", json.dumps(report).encode(), "PUT")
    now = datetime.now(UTC)
    queues = {queue["name"]: {"usage": {"default": {"cpu": 4}}} for queue in many["configuration"]["queues"]}
    for i in range(_DAY):
        at = (now - timedelta(minutes=5 * i)).isoformat()
        client.send("POST", "/v1/clusters/many/use", json.dumps({"at": at, "total": {}, "queues": queues}).encode())
    body = json.dumps({**many, "explain": "full"}).encode()
    client.ask("/v1/decisions", body)
    log: Item = {"items": []}
    until = time.monotonic() + _DONE_SECONDS
    while not log["items"] and time.monotonic() < until:
        time.sleep(0.2)
        log = client.ask("/v1/decisions?limit=1", b"", "GET")[0]
    decision = log["items"][0]["id"]
    run = f"/simulations/{played(client)}"
    page, overview, find = budgets.PAGE_SECONDS, budgets.OVERVIEW_SECONDS, budgets.FIND_SECONDS
    return [
        ("overview", "/", overview), ("find", "/v1/find?text=999", find), ("find, a page", "/find?text=999", find),
        ("queues", "/queues?configuration=many&snapshot=many", page),
        ("a queue", "/queues/of?configuration=many&snapshot=many&queue=q7", page),
        ("quotas", "/queues/quotas?configuration=many&snapshot=many", page),
        ("log", "/decisions", page), ("decision", f"/decisions/{decision}", page),
        ("why", "/why?workload=w7", page), ("next", "/next", page), ("ask", "/ask", page), ("plan", "/plan", page),
        ("compare", "/compare", page), ("simulations", "/simulations", page), ("simulate", "/simulate", page),
        ("a simulation", run, page), ("its rounds", f"{run}/rounds?variant=v0", page),
        ("its jobs", f"{run}/jobs?variant=v0", page), ("its events", f"{run}/events?variant=v0", page),
        ("configurations", "/configurations", page), ("a configuration", "/configurations/many", page),
        ("clusters", "/clusters", page), ("a cluster", "/clusters/many", page),
        ("its use over a day", "/clusters/many/use.json?resource=cpu&queue=q7", page),
        ("nodes", "/nodes?snapshot=nodes", page),
        ("nodes by a label", "/nodes?snapshot=nodes&label=zone", page),
        ("a node", "/nodes?snapshot=nodes&node=n7", page),
        ("forecasts", "/forecasts", page), ("backtests", "/backtests", page),
        ("sweeps", "/sweeps", page), ("traces", "/traces", page),
        ("tokens", "/access", page), ("audit", "/audit", page),
        *((PICTURE + of, f"{run}/plots/{file}", budgets.PICTURE_SECONDS) for of, file in PICTURES.items()),
    ]  # fmt: skip


def used(client: Client, process: subprocess.Popen[bytes], address: str) -> float:
    """Seconds of the processor of the service and all that it has started, without its database. Raises RuntimeError
    where the page fails."""
    before = cpu_seconds(process.pid)
    status, data, _ = client.send("GET", address)
    if status != 200:
        raise RuntimeError(f"{address}: {status} {data[:200]!r}")
    return cpu_seconds(process.pid) - before


def main() -> None:
    """A table on standard output; ends with 1 where a page is above its budget."""
    over = 0
    with service() as (port, process):
        client = Client(port)
        pages = seed(client)
        wait_for_rest(process)
        print(f"{'page':20} {'first':>8} {'again':>8} {'budget':>8}")
        for title, address, budget in pages:
            try:
                first = used(client, process, address)
                again = min(used(client, process, address) for _ in range(_BEST_OF))
            except RuntimeError as failed:
                print(f"{title:20} {failed}", flush=True)
                over += 1
                continue
            above = (again if title.startswith(PICTURE) else first) > budget
            over += above
            print(f"{title:20} {first:8.2f} {again:8.2f} {budget:8.2f}{' above' * above}", flush=True)
    sys.exit(over > 0)


if __name__ == "__main__":
    main()
