"""A follower for tests, in this process; and waiting until it has caught up."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import httpx2
import msgspec

from app.following.follower import Follower, Task
from app.following.grouped import Translated, translate
from app.following.keeping import Arbiter
from app.following.mirror import Mirror
from app.following.objects import FOLLOWED
from app.following.reading import Reader, connect
from app.solver.model.configuration import EngineName
from tests.cluster import pods
from tests.cluster.server import Cluster

QUIET = 1.0
PATIENCE = 120.0
"""Seconds that something may take on a slow machine."""


def reader(cluster: Cluster, token: str | None = None) -> Reader:
    """Reads as whoever has ``token``; else as an administrator."""
    return Reader(connect(kubeconfig=str(cluster.kubeconfig(token))))


@contextmanager
def following(
    cluster: Cluster, arbiter: httpx2.Client, engine: EngineName, name: str, token: str | None = None, *,
    shadow: bool = False, called: str = "test",
) -> Generator[Follower]:  # fmt: skip
    """A follower that runs, ``called`` so; its cluster, snapshot and configuration are all called ``name``."""
    task = Task(
        engine=engine,
        cluster=name,
        snapshot=name,
        configuration=name,
        follower=f"{called}-{name}",
        shadow=shadow,
        quiet=QUIET,
    )
    made = Follower(task, reader(cluster, token), Arbiter(str(arbiter.base_url), None))
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.stop()
        thread.join(30)
        assert not thread.is_alive()


def eventually(holds: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """What ``holds`` gives once it gives something. Raises AssertionError."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.05)
    return found


def fresh(cluster: Cluster, engine: EngineName) -> Translated:
    """What a list of everything gives now; of nodes, pods and topologies only where a flavor has a topology."""
    source, mirror = reader(cluster), Mirror(FOLLOWED[engine])
    for kind in FOLLOWED[engine]:
        if kind.placed and not mirror.places():
            mirror.absent(kind)
            continue
        version = source.version(kind)
        mirror.listed(kind, kind.api_version(version), source.list(kind, version), "test")
    view = mirror.view()
    assert view is not None
    return translate(engine, view)


def kept(arbiter: httpx2.Client, name: str) -> dict[str, dict[str, Any]]:
    """What is kept under ``name``, by kind and name."""
    if (state := arbiter.get(f"/v1/snapshots/{name}/state")).status_code != 200:
        return {}
    asks = arbiter.get(f"/v1/snapshots/{name}/asks").json()["items"]
    configuration = arbiter.get(f"/v1/configurations/{name}").json()["configuration"]
    found = state.json()
    return {
        "nodes": {one["name"]: one for one in found.get("nodes", [])},
        "workloads": {one["id"]: one for one in found.get("workloads", [])},
        "asks": {one["id"]: one for one in asks},
        "queues": {one["name"]: one for one in configuration.get("queues", [])},
    }


def plain(cluster: Cluster, engine: EngineName) -> dict[str, Any]:
    """What a fresh list gives, as the service would show it."""
    wanted = fresh(cluster, engine)
    queues = {queue.name: queue for queue in wanted.configuration.queues}
    return msgspec.json.decode(
        msgspec.json.encode(
            {"nodes": wanted.nodes, "workloads": wanted.workloads, "asks": wanted.asks, "queues": queues}
        )
    )


def differs(cluster: Cluster, arbiter: httpx2.Client, engine: EngineName, name: str) -> str:
    """Where what is kept under ``name`` is not what a list gives; empty where it is."""
    found, wanted = kept(arbiter, name), plain(cluster, engine)
    if not found:
        return "there is no snapshot"
    wrong = [f"{part} {name}" for part in wanted for name in wanted[part].keys() | found[part].keys()
             if found[part].get(name) != wanted[part].get(name)]  # fmt: skip
    return ", ".join(sorted(wrong)[:10])


def settle(cluster: Cluster, arbiter: httpx2.Client, engine: EngineName, name: str) -> None:
    """Wait until what is kept under ``name`` is what a list gives. Raises AssertionError, with what is not."""
    deadline = time.monotonic() + PATIENCE
    while wrong := differs(cluster, arbiter, engine, name):
        assert time.monotonic() < deadline, wrong
        time.sleep(0.05)


def nodes(cluster: Cluster, *names: str) -> None:
    """Ready nodes of 4 CPUs. The API server marks new ones as not ready; nobody else is there to take that back."""
    for name in names:
        cluster.apply(pods.node(name, 4))
        cluster.call("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": []}})
