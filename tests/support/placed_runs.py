"""What tests of placed runs share with those beside them."""

from typing import Any

from tests.unit.simulations.running import job

NODES = {"nodes": [{"name": f"n{i}", "capacity": {"cpu": 4, "gpu": 4}} for i in range(2)]}


GUARANTEE = {"cpu": {"guaranteed": 4}, "gpu": {"guaranteed": 4}}


def configuration(engine: str, **queue: Any) -> dict[str, Any]:
    whole = {"cpu": {"guaranteed": 8}, "gpu": {"guaranteed": 8}}
    top = {"yunikorn": [{"name": "root"}], "kai": [{"name": "root", "quota": whole}]}.get(engine, [])
    below = {"parent": "root"} if top else {}
    name = "root.{}" if engine == "yunikorn" else "{}"
    leaves = [{"name": name.format(q), "quota": GUARANTEE, **below, **queue} for q in "ab"]
    return {"engine": engine, "queues": [*top, *leaves]}


def queue(engine: str, name: str) -> str:
    return f"root.{name}" if engine == "yunikorn" else name


def mixed(engine: str) -> list[dict[str, Any]]:
    """Jobs that fill the nodes from one queue, then some of the other that need room."""
    jobs = [job(f"a{i}", queue(engine, "a"), 1, i, 200 + i) for i in range(5)]
    jobs += [job(f"b{i}", queue(engine, "b"), 1 + i % 2, 10 + i, 60, priority=i % 2) for i in range(4)]
    for one in jobs:
        one["ask"]["tasks"][0]["count"] = 2 if one["ask"]["id"].startswith("a") else 1
        one["ask"]["tasks"][0]["requests"]["gpu"] = one["ask"]["tasks"][0]["requests"]["cpu"]
        one["ask"]["preemptible"] = one["ask"]["id"].startswith("a")
    return jobs
