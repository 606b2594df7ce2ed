"""How much of the service's processor the first paint of every page takes, against ``budgets.PAGE_SECONDS``.

``python -m benchmarks.console_pages``: a kept snapshot of 10,000 workloads in 100 queues, one of 5,000 nodes with
50,000 pods in 10,000 workloads, a followed cluster with a day of use, and a decision. ``first`` is the first visit,
after which ``again`` is the least of three. The document alone is asked for, as a browser's first paint does.
Linux only.
"""

import json
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
Item = dict[str, Any]


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
    page, overview, find = budgets.PAGE_SECONDS, budgets.OVERVIEW_SECONDS, budgets.FIND_SECONDS
    return [
        ("overview", "/", overview), ("find", "/v1/find?text=999", find), ("find, a page", "/find?text=999", find),
        ("queues", "/queues?configuration=many&snapshot=many", page),
        ("a queue", "/queues/of?configuration=many&snapshot=many&queue=q7", page),
        ("quotas", "/queues/quotas?configuration=many&snapshot=many", page),
        ("log", "/decisions", page), ("decision", f"/decisions/{decision}", page),
        ("why", "/why?workload=w7", page), ("next", "/next", page), ("ask", "/ask", page), ("plan", "/plan", page),
        ("compare", "/compare", page), ("simulations", "/simulations", page), ("simulate", "/simulate", page),
        ("configurations", "/configurations", page), ("a configuration", "/configurations/many", page),
        ("clusters", "/clusters", page), ("a cluster", "/clusters/many", page),
        ("its use over a day", "/clusters/many/use.json?resource=cpu&queue=q7", page),
        ("nodes", "/nodes?snapshot=nodes", page),
        ("nodes by a label", "/nodes?snapshot=nodes&label=zone", page),
        ("a node", "/nodes?snapshot=nodes&node=n7", page),
        ("forecasts", "/forecasts", page), ("backtests", "/backtests", page),
        ("sweeps", "/sweeps", page), ("traces", "/traces", page),
        ("tokens", "/access", page), ("audit", "/audit", page),
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
            over += first > budget
            print(f"{title:20} {first:8.2f} {again:8.2f} {budget:8.2f}{' above' * (first > budget)}", flush=True)
    sys.exit(over > 0)


if __name__ == "__main__":
    main()
