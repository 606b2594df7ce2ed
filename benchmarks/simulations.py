"""Whole traces through an engine, in J: json.loads of the trace's own NDJSON, by line, in the same run, on one core."""

import csv
import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import msgspec

from app.answering.sources import Compiled
from app.base.decoding import convert
from app.simulations.core.run import simulate
from app.simulations.core.sink import Silence
from app.simulations.schemas import Job, SimulationRequest, Trace

TRACES = Path(__file__).parents[2] / "shared" / "traces"
JOBS = 188_041
PROCESSORS = 24_515
COHORTS = 170
GROUPS = 10
PREEMPTS = {"preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}}
PARTS = {"ls": 0.6, "guaranteed": 0.1, "burstable": 0.2, "be": 0.1}
PRIORITIES = {"LS": 100, "Guaranteed": 100, "Burstable": 50, "BE": 0}

Body = dict[str, Any]


class Case(NamedTuple):
    """A trace through an engine. ``budget`` in J."""

    name: str
    budget: float
    body: Callable[[], Body | None]


def print_all() -> None:
    """Run every case whose trace is at hand, and print its ratio, rounds a second and budget."""
    for case in CASES:
        body = case.body()
        if body is None:
            print(f"{case.name}: not at hand (../shared/traces)")
            continue
        jobs = body.pop("jobs")
        lines = [json.dumps(job) for job in jobs]
        begun = perf_counter()
        for line in lines:
            json.loads(line)
        loads = perf_counter() - begun
        decoder = msgspec.json.Decoder(Job)
        request = convert({**body, "trace": {}}, SimulationRequest)
        trace = Trace(jobs=[decoder.decode(line) for line in lines])
        request = msgspec.structs.replace(request, trace=trace)
        begun = perf_counter()
        summary = simulate(request, Compiled(None), Silence(), lambda: False)
        spent = perf_counter() - begun
        ratio, rate = spent / loads, summary.rounds / spent
        over = "" if ratio <= case.budget else "  OVER"
        print(f"{case.name:<28} {ratio:8.0f} J of {case.budget:.0f}  {spent:6.1f} s  {rate:6.0f} rounds/s{over}")


def _nasa() -> Body | None:
    path = TRACES / "nasa-ipsc.swf.gz"
    if not path.exists():
        return None
    with gzip.open(path, "rt") as lines:
        rows = [line.split() for line in lines if line.strip() and not line.startswith(";")]
    jobs = [
        _job(row[0], f"user-{row[11]}", int(row[1]), int(row[3]), {"nodes": 1}, count=int(row[4]))
        for row in rows
        if int(row[3]) > 0
    ]
    users = sorted({job["ask"]["queue"] for job in jobs})
    leaves = [_queue(user, "all", {"nodes": {"guaranteed": 1}}, kueue=PREEMPTS) for user in users]
    top = _queue("all", None, {"nodes": {"guaranteed": 128 - len(users)}})
    return {"configuration": {"engine": "kueue", "queues": [top, *leaves]}, "jobs": jobs}


def _alibaba(engine: str) -> Body | None:
    if not (TRACES / "openb_pods.csv.gz").exists():
        return None
    nodes, prefix = list(_table("openb_nodes.csv.gz")), "root." if engine == "yunikorn" else ""
    jobs: list[Body] = []
    for pod in _table("openb_pods.csv.gz"):
        if not pod["scheduled_time"]:
            continue
        lasts = int(float(pod["deletion_time"])) - int(float(pod["scheduled_time"]))
        if lasts > 0:
            jobs.append(_pod(pod, prefix, lasts, by_model=engine == "kueue"))
    if engine == "kueue":
        return {"configuration": _by_model(nodes), "jobs": jobs}
    top = _queue("root", None, None if engine == "yunikorn" else _part(nodes, 1))
    leaves = [_queue(prefix + name, "root", _part(nodes, part)) for name, part in PARTS.items()]
    state = [
        {
            "name": n["sn"],
            "capacity": {"cpu": f"{n['cpu_milli']}m", "memory": f"{n['memory_mib']}Mi", "gpu": int(n["gpu"])},
        }
        for n in nodes
    ]
    return {"configuration": {"engine": engine, "queues": [top, *leaves]}, "state": {"nodes": state}, "jobs": jobs}


def _pod(pod: dict[str, str], prefix: str, lasts: int, *, by_model: bool) -> Body:
    requests: Body = {"cpu": f"{pod['cpu_milli']}m", "memory": f"{pod['memory_mib']}Mi"}
    if gpu := int(pod["num_gpu"]) * int(pod["gpu_milli"]):
        requests["gpu"] = gpu / 1000
    job = _job(pod["name"], prefix + pod["qos"].lower(), int(float(pod["creation_time"])), lasts, requests)
    job["ask"] |= {"priority": PRIORITIES[pod["qos"]], "preemptible": pod["qos"] == "BE"}
    if by_model and pod["gpu_spec"]:
        wanted = {"key": "model", "operator": "In", "values": pod["gpu_spec"].split("|")}
        job["ask"]["tasks"][0]["node_affinity"] = [[wanted]]
    return job


def _by_model(nodes: list[dict[str, str]]) -> Body:
    """GPU models as flavors."""
    models = sorted({node["model"] for node in nodes if node["model"]})
    of = {model: [node for node in nodes if node["model"] == model] for model in models}
    queues = [_queue("all", None, None)]
    for name, part in PARTS.items():
        flavors = [{"name": model, "quota": _part(of[model], part)} for model in models]
        group = {"resources": ["cpu", "memory", "gpu"], "flavors": flavors}
        queues.append(_queue(name, "all", None, kueue=PREEMPTS, resource_groups=[group]))
    flavors = [{"name": model, "node_labels": {"model": model}} for model in models]
    return {"engine": "kueue", "flavors": flavors, "queues": queues}


def _part(nodes: list[dict[str, str]], part: float) -> Body:
    cpu, memory, gpu = (sum(int(n[c]) for n in nodes) * part for c in ("cpu_milli", "memory_mib", "gpu"))
    return {
        "cpu": {"guaranteed": f"{int(cpu)}m"}, "memory": {"guaranteed": f"{int(memory)}Mi"},
        "gpu": {"guaranteed": f"{int(1000 * gpu)}m"},
    }  # fmt: skip


def _grid() -> Body:
    """A grid's log of eleven days, the same each time: jobs of one processor on 170 sites that are used very unequally
    and are cohorts; groups are queues, which borrow all but one processor of their site's. Nobody waits for long."""
    draw, jobs, at = random.Random(1), list[Body](), 0.0
    use = [1 / (site + 1) ** 0.9 for site in range(COHORTS)]
    sites = draw.choices(range(COHORTS), use, k=JOBS)
    for i, site in enumerate(sites):
        at += draw.expovariate(JOBS / (11 * 86400))
        group, lasts = min(int(draw.expovariate(0.4)), GROUPS - 1), max(1, int(draw.lognormvariate(7.6, 1.9)))
        jobs.append(_job(f"job-{i}", f"c{site}-q{group}", int(at), min(lasts, 400_000), {"cpu": 1}))
    queues: list[Body] = []
    for site in range(COHORTS):
        share = round(PROCESSORS * (1 / COHORTS + use[site] / sum(use)) / 2)
        queues.append(_queue(f"c{site}", None, {"cpu": {"guaranteed": share - GROUPS}}))
        leaf = {"cpu": {"guaranteed": 1}}
        queues += [_queue(f"c{site}-q{group}", f"c{site}", leaf, kueue=PREEMPTS) for group in range(GROUPS)]
    nodes = [{"name": f"n{i}", "capacity": {"cpu": 1}} for i in range(PROCESSORS)]
    return {"configuration": {"engine": "kueue", "queues": queues}, "state": {"nodes": nodes}, "jobs": jobs}


def _table(name: str) -> Iterator[dict[str, str]]:
    with gzip.open(TRACES / name, "rt") as lines:
        yield from csv.DictReader(lines)


def _queue(name: str, parent: str | None, quota: Body | None, **more: Any) -> Body:
    return {"name": name, "parent": parent, "quota": quota, **more}


def _job(name: str, queue: str, at: int, lasts: int, requests: Body, count: int = 1) -> Body:
    task = {"name": "main", "count": count, "requests": requests}
    return {"ask": {"id": name, "queue": queue, "tasks": [task]}, "submitted_at": at, "duration": lasts}


CASES = [
    Case("kueue-nasa", 200, _nasa),
    Case("kueue-alibaba", 600, lambda: _alibaba("kueue")),
    Case("yunikorn-alibaba", 2_000, lambda: _alibaba("yunikorn")),
    Case("kai-alibaba", 4_000, lambda: _alibaba("kai")),
    Case("kueue-170-cohorts", 300, _grid),
]
