"""``python -m benchmarks.following [kueue|kai|yunikorn]``: a follower of 5,000 nodes and 50,000 pods of a real API
server, against a plain list with the same client, and then a thousand changes a second. Linux only.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from app.following.grouped import translate
from app.following.mirror import Mirror
from app.following.objects import FOLLOWED
from app.following.reading import Reader, connect
from app.solver.model.configuration import EngineName
from benchmarks.crowded import Crowd, crowd
from benchmarks.etcd import Etcd
from benchmarks.service import Client, cpu_seconds, peak_memory_mb, service
from tests.cluster.server import Cluster

_NAME = "big"
_PATIENCE = 120.0
_LOOK_SECONDS = 1.0
_ASKED: dict[str, tuple[str, str, str]] = {
    "kueue": ("app-000", "cpu", "Workload"), "kai": ("leaf", "cpu", "Pod"), "yunikorn": ("root.prod", "vcore", "Pod"),
}  # fmt: skip
"""A queue and a resource to ask for, and what changes."""


def main() -> None:
    """Fill a cluster, follow it, change it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", nargs="?", choices=["kueue", "kai", "yunikorn"], default="yunikorn")
    parser.add_argument("--seconds", type=float, default=60.0, help="of changes")
    parser.add_argument("--rate", type=int, default=1000, help="changes a second")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="arbiter-crowd-") as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.start()
            _measure(cluster, options.engine, options.seconds, options.rate)
        finally:
            cluster.stop()


def _measure(cluster: Cluster, engine: EngineName, seconds: float, rate: int) -> None:
    begun = time.perf_counter()
    made, etcd = crowd(cluster, engine), Etcd(cluster.etcd_port)
    etcd.write(made.all())
    _say(f"filled in {time.perf_counter() - begun:.0f} s")
    reader = Reader(connect(kubeconfig=str(cluster.kubeconfig())))
    plain = min(_list(reader, engine), _list(reader, engine))  # at first the API server is cold
    with service() as (port, process):
        client, begun = Client(port), time.perf_counter()
        with _follower(cluster, engine, port) as follower:
            _until_followed(client, follower)
            first = time.perf_counter() - begun
            _say(f"first list kept: {first:.1f} s, {first / plain:.1f} times a plain list; {_memory(follower)} MB")
            _steady(Steady(engine, made, etcd, client), cluster, {"service": process, "follower": follower},
                    seconds, rate)  # fmt: skip
            _say(f"memory at most: follower {_memory(follower)} MB, {peak_memory_mb(process)}")
            report = client.ask(f"/v1/clusters/{_NAME}", b"", "GET")[0]
            _say(f"lists and whole snapshots: {[one.get('lists') for one in report['followers']]}")
            _compare(client, reader, engine)


def _list(reader: Reader, engine: EngineName) -> float:
    begun = time.perf_counter()
    listed = {kind.name: len(reader.list(kind, reader.version(kind)).items) for kind in FOLLOWED[engine]}
    spent = time.perf_counter() - begun
    _say(f"plain list of {listed}: {spent:.1f} s")
    return spent


def _say(line: str) -> None:
    print(line, flush=True)


@contextmanager
def _follower(cluster: Cluster, engine: EngineName, port: int) -> Generator[subprocess.Popen[bytes]]:
    command = [
        sys.executable, "-m", "app.cli", "follow", engine, "--snapshot", _NAME, "--configuration", _NAME,
        "--kubeconfig", str(cluster.kubeconfig()), "--url", f"http://127.0.0.1:{port}",
    ]  # fmt: skip
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def _until_followed(client: Client, follower: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and follower.poll() is None:
        status, *_ = client.send("GET", f"/v1/snapshots/{_NAME}")
        if status == 200:
            return
        time.sleep(0.1)
    raise RuntimeError("nothing is kept")


class Steady:
    """Changes at a rate, and how far behind them what is answered is."""

    def __init__(self, engine: EngineName, made: Crowd, etcd: Etcd, client: Client) -> None:
        queue, resource, self._kind = _ASKED[engine]
        ask = {"id": "probe", "queue": queue, "tasks": [{"name": "t", "requests": {resource: 1}}]}
        self._body = msgspec.json.encode(
            {"engine": engine, "configuration": _NAME, "state": {"snapshot": _NAME}, "asks": [ask], "explain": "none"}
        )
        self._made, self._etcd, self._client = made, etcd, client
        self._times: list[float] = []
        self._revisions: list[int] = []
        self.sent = 0
        self.behind: list[tuple[float, float]] = []
        """When looked, and how old the first change was then that was not in an answer."""
        self.took: list[float] = []
        """Seconds until an answer."""

    def run(self, seconds: float, rate: int) -> float:
        """Change so many a second; how long that took."""
        begun = time.monotonic()
        while (spent := time.monotonic() - begun) < seconds:
            number = int(spent * rate) - self.sent
            if number > 0:
                now = time.monotonic()
                revision = self._etcd.write(self._made.change() for _ in range(min(number, rate)))
                self._times.append(now)
                self._revisions.append(revision)
                self.sent += min(number, rate)
            time.sleep(0.02)
        return time.monotonic() - begun

    def look(self) -> float:
        """How old the first change is that is not in an answer of now; 0: all are."""
        asked = time.monotonic()
        answer, took = self._client.ask("/v1/decisions", self._body)
        self.took.append(took)
        at = bisect_right(self._revisions, int(answer["state"]["resource_versions"][self._kind]))
        behind = asked - self._times[at] if at < len(self._times) else 0.0
        self.behind.append((asked, max(0.0, behind)))
        return self.behind[-1][1]


def _steady(
    of: Steady, cluster: Cluster, processes: dict[str, subprocess.Popen[bytes]], seconds: float, rate: int
) -> None:
    assert cluster.etcd is not None
    assert cluster.server is not None
    everyone = processes | {"etcd": cluster.etcd, "API server": cluster.server}
    before, own = {name: cpu_seconds(process.pid) for name, process in everyone.items()}, time.process_time()
    done = threading.Event()

    def look() -> None:
        while not done.wait(_LOOK_SECONDS):
            of.look()

    thread = threading.Thread(target=look)
    thread.start()
    spent = of.run(seconds, rate)
    done.set()
    thread.join()
    cpu = {name: (cpu_seconds(process.pid) - before[name]) / spent for name, process in everyone.items()}
    cpu["changes"] = (time.process_time() - own) / spent
    ended = time.monotonic()
    lags = [behind for _, behind in of.behind]
    while of.look() and time.monotonic() - ended < _PATIENCE:
        time.sleep(0.05)
    ordered, middle = sorted(lags), len(lags) // 2
    _say(
        f"{of.sent} changes at {of.sent / spent:.0f} a second; answers behind: median {ordered[middle]:.2f} s, "
        f"at most {ordered[-1]:.2f} s; first half {max(lags[:middle]):.2f} s, second half {max(lags[middle:]):.2f} s, "
        f"all of it {time.monotonic() - ended:.1f} s after the last; an answer took {statistics.median(of.took):.2f} s"
    )
    _say("cores: " + ", ".join(f"{name} {share:.2f}" for name, share in cpu.items()))


def _memory(process: subprocess.Popen[bytes]) -> int:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:"))


def _compare(client: Client, reader: Reader, engine: EngineName) -> None:
    """Whether what is kept is what a list of everything gives."""
    mirror = Mirror(FOLLOWED[engine])
    for kind in FOLLOWED[engine]:
        version = reader.version(kind)
        mirror.listed(kind, kind.api_version(version), reader.list(kind, version), "test")
    view = mirror.view()
    assert view is not None
    wanted = translate(engine, view)
    state = client.ask(f"/v1/snapshots/{_NAME}/state", b"", "GET")[0]
    asks = client.ask(f"/v1/snapshots/{_NAME}/asks", b"", "GET")[0]["items"]
    for what, kept, name in (("workloads", state.get("workloads", []), "id"), ("asks", asks, "id"),
                             ("nodes", state.get("nodes", []), "name")):  # fmt: skip
        of: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(getattr(wanted, what)))
        same = {one[name]: one for one in kept} == of
        _say(f"{len(of)} {what}: {'as a fresh list gives them' if same else 'NOT what a fresh list gives'}")


if __name__ == "__main__":
    main()
