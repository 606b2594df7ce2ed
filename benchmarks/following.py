"""``python -m benchmarks.following fill|measure FOLDER``: a follower of 5,000 nodes and 50,000 pods of YuniKorn in a
real API server, against a plain list with the same client. ``fill`` takes minutes, once; etcd keeps it in the folder.
"""

import argparse
import http.client
import json
import os
import resource
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from app.following.arbiter import Arbiter
from app.following.follower import Follower, Task
from app.following.kinds import FOLLOWED
from app.following.reading import Reader, connect
from benchmarks.service import service
from tests.cluster import pods
from tests.cluster.server import Cluster

NODES, PODS = 5_000, 50_000
_THREADS = 8
_CHANGING_SECONDS = 20.0
_WANTED = 1000
Item = dict[str, Any]


def main() -> None:
    """One of both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["fill", "measure"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1.0, help="of all numbers")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    made = Cluster(options.folder)
    try:
        made.start()
        if options.what == "fill":
            fill(made, options.scale)
        else:
            measure(made)
    finally:
        made.stop()


class Sender:
    """Requests over connections that are kept, one a thread."""

    def __init__(self, cluster: Cluster) -> None:
        self._port = int(cluster.address.rpartition(":")[2])
        self._token = cluster.token
        self._local = threading.local()

    def send(self, method: str, path: str, body: Item) -> None:
        """Raises RuntimeError unless it succeeds or is there already."""
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=600, context=context)
            self._local.connection = connection
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        connection.request(method, path, json.dumps(body), headers)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status >= 300 and answer.status != 409:
            raise RuntimeError(f"{method} {path}: {answer.status} {said[:200]!r}")


def fill(cluster: Cluster, scale: float) -> None:
    """Nodes, and pods that run on them."""
    sender, begun = Sender(cluster), time.perf_counter()
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    patch = {"status": {"allocatable": amounts, "capacity": amounts}}

    def node(i: int) -> None:
        sender.send("POST", "/api/v1/nodes", pods.node(f"node-{i}"))
        sender.send("PATCH", f"/api/v1/nodes/node-{i}/status", patch)

    def pod(i: int) -> None:
        made = pods.yunikorn_pod(f"pod-{i}", f"app-{i % 500}", "root.prod", 1, f"node-{i % int(NODES * scale)}")
        sender.send("POST", "/api/v1/namespaces/default/pods", made)

    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "yunikorn"}}
    sender.send("POST", "/api/v1/namespaces", space)
    sender.send("POST", "/api/v1/namespaces/yunikorn/configmaps", pods.yunikorn_queues(8))
    with ThreadPoolExecutor(_THREADS) as threads:
        _all(threads.map(node, range(int(NODES * scale))))
        _all(threads.map(pod, range(int(PODS * scale))))
    print(f"filled in {time.perf_counter() - begun:.0f} s")


def _all(done: Iterable[None]) -> None:
    for _ in done:
        pass


def measure(cluster: Cluster) -> None:
    """A plain list, a first list by a follower, and changes."""
    kinds = [kind for kind in FOLLOWED["yunikorn"] if kind.name in ("Pod", "Node")]
    reader = Reader(connect(kubeconfig=str(cluster.kubeconfig())))
    begun = time.perf_counter()
    listed = {kind.name: len(reader.list(kind, "v1").items) for kind in kinds}
    plain = time.perf_counter() - begun
    print(f"plain list of {listed}: {plain:.1f} s", flush=True)
    with service() as (port, _):
        url = f"http://127.0.0.1:{port}"
        begun = time.perf_counter()
        command = [
            sys.executable, "-m", "app.cli", "follow", "yunikorn", "--snapshot", "big", "--configuration", "big",
            "--kubeconfig", str(cluster.kubeconfig()), "--url", url, "--once",
        ]  # fmt: skip
        subprocess.run(command, check=True, env=dict(os.environ))
        first = time.perf_counter() - begun
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"first list kept: {first:.1f} s, {first / plain:.1f} times a plain list; {memory:.0f} MB", flush=True)
        _changes(cluster, reader, url)


def _change(sender: Sender, step: int, number: int) -> None:
    path = f"/api/v1/namespaces/default/pods/pod-{number % 1000}"
    sender.send("PATCH", path, {"metadata": {"labels": {"step": str(step)}}})


def _changes(cluster: Cluster, reader: Reader, url: str) -> None:
    task = Task(engine="yunikorn", cluster="big", snapshot="big", configuration="big")
    follower, sender = Follower(task, reader, Arbiter(url, None)), Sender(cluster)
    thread = threading.Thread(target=follower.run, daemon=True)
    thread.start()
    while follower.pulse().age is None:
        time.sleep(0.1)
    begun, sent = time.perf_counter(), 0
    lags: list[float] = []
    with ThreadPoolExecutor(_THREADS) as threads:
        while (spent := time.perf_counter() - begun) < _CHANGING_SECONDS:
            number = max(0, min(_WANTED, int(spent * _WANTED) - sent))
            _all(threads.map(partial(_change, sender, int(spent)), range(sent, sent + number)))
            sent += number
            lags.append(follower.pulse().lag)
    rate = sent / (time.perf_counter() - begun)
    heard = sum(kind.changes for kind in follower.pulse().kinds)
    time.sleep(1)
    print(
        f"{sent} changes at {rate:.0f} a second, {heard} heard by then; lag {lags[-1]:.1f} s, at most {max(lags):.1f} s"
    )
    follower.stop()
    thread.join(60)


if __name__ == "__main__":
    main()
