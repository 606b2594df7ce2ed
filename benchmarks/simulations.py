"""Whole traces through an engine, in J: json.loads of the trace's own NDJSON, by line, in the same run, on one core.

``python -m benchmarks.simulations [NAME ...]`` runs the cases whose names contain one of these.
"""

import csv
import gzip
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from heapq import heappop, heappush
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import process_time
from typing import Any, NamedTuple

import msgspec

from app.answering.sources import Compiled
from app.base.decoding import convert
from app.simulations.core.run import simulate
from app.simulations.core.scenario import scenario_of
from app.simulations.core.sink import Amounts, Silence
from app.simulations.schemas import Event, Job, JobLine, RoundLine, SimulationRequest, Trace

TRACES = Path(__file__).parents[2] / "shared" / "traces"
JOBS = 188_041
PROCESSORS = 24_515
COHORTS = 170
GROUPS = 10
PREEMPTS = {"preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}}
PARTS = {"ls": 0.6, "guaranteed": 0.1, "burstable": 0.2, "be": 0.1}
TREES = ("yunikorn", "kai")
"""Engines whose queues have a root of their own here."""
PRIORITIES = {"LS": 100, "Guaranteed": 100, "Burstable": 50, "BE": 0}

OVERLOAD_JOBS = 5_500
OVERLOADED_NODES, GPUS = 12, 8
TRAINING, BURST = 16, 8
"""Tasks."""
CHAINS = {TRAINING: 8, 1: 16}
"""By tasks: together one and a half times the cluster, for each of two tenants."""
TRAININGS = 0.1
PAUSE, BURST_LASTS, LASTS = 90, 120, 6000
"""Seconds in the mean: between two bursts, of a burst, of all else."""
MIXED_NODES, LONGEST = 20, 36_000
"""Nodes, seconds."""
LARGE = 96_000
"""Thousandths of a core."""

Body = dict[str, Any]


class Case(NamedTuple):
    """A trace through an engine. ``budget`` in J, ``memory`` in MB; ``stored``: with all that the service
    keeps of it."""

    name: str
    budget: float
    body: Callable[[], Body | None]
    memory: int = 400
    stored: bool = False


class Stored(Silence):
    """Makes every line that the service stores."""

    leveled = recorded = digested = True

    def event(self, event: Event) -> None:
        """See ``Sink``."""
        msgspec.json.encode(event)

    def round(self, line: RoundLine) -> None:
        """See ``Sink``."""
        msgspec.json.encode(line)

    def job(self, line: JobLine) -> None:
        """See ``Sink``."""
        msgspec.json.encode(line)

    def level(self, queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> None:
        """See ``Sink``."""
        msgspec.json.encode((queue, since, usage, waiting, guarantee))


class Measured(NamedTuple):
    """Seconds of processor time of a run and of ``json.loads``, and megabytes at the highest."""

    seconds: float
    j: float
    rounds: int
    evictions: int
    loops: int
    memory: int


def print_all(only: Sequence[str] = ()) -> None:
    """Run every case whose trace is at hand, each in a process of its own, and print its ratio, rounds a second and
    budget. ``only``: those whose name contains one of these."""
    for case in CASES:
        if only and not any(part in case.name for part in only):
            continue
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            measured = alone.submit(_measured, case.name).result()
        if measured is None:
            print(f"{case.name}: not at hand (../shared/traces)")
            continue
        ratio, rate = measured.seconds / measured.j, measured.rounds / measured.seconds
        over = "" if ratio <= case.budget and measured.memory <= case.memory else "  OVER"
        print(
            f"{case.name:<28} {ratio:8.0f} J of {case.budget:.0f}  {measured.seconds:6.1f} s  {rate:6.0f} rounds/s  "
            f"{measured.evictions} evictions  {measured.loops} loops  {measured.memory} MB of {case.memory}{over}",
            flush=True,
        )


def _measured(name: str) -> Measured | None:
    """Processor time, for what else a machine does is no cost of a run."""
    case = next(case for case in CASES if case.name == name)
    body_of, sink = case.body, Stored() if case.stored else Silence()
    body = body_of()
    if body is None:
        return None
    lines = list(map(json.dumps, body.pop("jobs")))
    before = _loads(lines)
    decoder = msgspec.json.Decoder(Job)
    request = convert({**body, "trace": {}}, SimulationRequest)
    scenario_of(msgspec.structs.replace(request, trace=Trace(jobs=[])), Compiled(None))  # the engine's code is loaded
    trace = Trace(jobs=[decoder.decode(line) for line in lines])
    del lines
    begun = process_time()
    summary = simulate(msgspec.structs.replace(request, trace=trace), Compiled(None), sink, lambda: False)
    spent = process_time() - begun
    memory = getrusage(RUSAGE_SELF).ru_maxrss >> 10
    again = body_of()
    assert again is not None
    after = _loads(list(map(json.dumps, again["jobs"])))
    j = (before + after) / 2  # a machine changes its pace within seconds
    return Measured(spent, j, summary.rounds, summary.total.evictions, summary.loops, memory)


def _loads(lines: Sequence[str]) -> float:
    """Seconds of ``json.loads`` of all lines: the best of five."""
    best = float("inf")
    for _ in range(5):
        begun = process_time()
        for line in lines:
            json.loads(line)
        best = min(best, process_time() - begun)
    return best


def _overload(engine: str) -> Body:
    """Three tenants with a third each of a small cluster that is asked for three times over until the end. Two of them
    always have trainings of sixteen tasks and runs of one waiting: what ends is followed by the next of its chain, and
    what is evicted goes on from its last minute. Bursts of eight tasks come meanwhile, two thirds of them of the third
    tenant, and take their room by quota, priority or weight. Operations of YTsaurus keep one task whatever comes, so
    that without wide ones nobody would go there. Every task takes one GPU; priorities are drawn."""
    draw, jobs, now = random.Random(3), list[Body](), 0.0
    prefix = _root_of(engine)
    chains: dict[tuple[str, int], list[tuple[int, int, str]]] = {}
    for i in range(OVERLOAD_JOBS):
        burst, after = i % 3 > 0, ""
        if burst:
            now += draw.expovariate(1 / PAUSE)
            tenant, count, priority, lasts = draw.choice("abcccc"), BURST, 90, _drawn(draw, BURST_LASTS)
        else:
            count, priority = (TRAINING, 20) if draw.random() < TRAININGS else (1, draw.randrange(10))
            tenant, lasts = draw.choice("ab"), _drawn(draw, LASTS)
            of = chains.setdefault((tenant, count), [(0, chain, "") for chain in range(CHAINS[count])])
            work, chain, after = heappop(of)  # the one that ends first, were each alone
            heappush(of, (work + lasts, chain, f"job-{i}"))
        job = _job(f"job-{i}", prefix + tenant, int(now) if burst else 0, lasts, {"cpu": 1, "gpu": 1}, count)
        job |= {"checkpoint": {"every": 60}, "after": [after] if after else []}
        job["ask"] |= {"priority": priority}
        if engine == "ytsaurus":
            job["ask"] |= {"weight": 10 if burst else 1}
        if engine == "kai":
            job["ask"] |= {"preemptible": True}
        jobs.append(job)
    jobs.sort(key=lambda job: job["submitted_at"])
    return {**_of_three(engine, *_alike(OVERLOADED_NODES, ("cpu", "gpu"))), "jobs": jobs}


def _root_of(engine: str) -> str:
    """What names of queues begin with."""
    return "root." if engine == "yunikorn" else ""


def _alike(count: int, resources: Sequence[str]) -> tuple[list[Body], Body, Body]:
    """So many nodes of eight, a third of what they have, and all of it."""
    nodes = [{"name": f"n{i:02}", "capacity": dict.fromkeys(resources, GPUS)} for i in range(count)]
    third, all_of_it = ({r: {"guaranteed": count * GPUS // part} for r in resources} for part in (3, 1))
    return nodes, third, all_of_it


def _of_three(engine: str, nodes: list[Body], third: Body, all_of_it: Body) -> Body:
    """Tenants a, b and c with a third each of these nodes."""
    names = [_root_of(engine) + name for name in "abc"]
    if engine == "kueue":
        queues = [_queue("all", None, None), *(_queue(name, "all", third, kueue=PREEMPTS) for name in names)]
        return {"configuration": {"engine": engine, "queues": queues}}
    if engine in TREES:
        top = _queue("root", None, all_of_it if engine == "kai" else None)
        queues = [top, *(_queue(name, "root", third) for name in names)]
    else:
        queues = [_queue(name, None, None if engine == "kube-scheduler" else third) for name in names]
    return {"configuration": {"engine": engine, "queues": queues}, "state": {"nodes": nodes}}


def _mixed(engine: str, count: int) -> Body | None:
    """Pods of many shapes that ask for three times what twenty nodes have, in queues with a third each: Alibaba's, at
    random within so short a time, none for more than ten hours. Priorities are drawn beside those of its classes."""
    body = _alibaba(engine)
    if body is None:
        return None
    draw, jobs = random.Random(5), body["jobs"]
    every = list(_table("openb_nodes.csv.gz"))
    large = [node for node in every if int(node["gpu"]) == GPUS and int(node["cpu_milli"]) >= LARGE]
    small = [node for node in every if int(node["gpu"]) < GPUS]
    nodes = draw.sample(large, MIXED_NODES // 2) + draw.sample(small, MIXED_NODES // 2)
    there = list(zip(*map(_capacity, nodes), strict=True))
    jobs = sorted(jobs, key=lambda job: job["submitted_at"])[:count]
    jobs = [job for job in jobs if all(of <= max(each) for of, each in zip(_amounts(job), there, strict=True))]
    for job in jobs:
        job["duration"] = min(job["duration"], LONGEST)
    work = zip(*([of * job["duration"] for of in _amounts(job)] for job in jobs), strict=True)
    within = max(sum(done) / (3 * sum(each)) for done, each in zip(work, there, strict=True))
    for job, at in zip(jobs, sorted(draw.uniform(0, within) for _ in jobs), strict=True):
        job["submitted_at"] = int(at)
        ask = job["ask"]
        ask |= {"queue": _root_of(engine) + draw.choice("abc"), "priority": ask["priority"] + draw.randrange(10)}
        ask["tasks"][0].pop("node_affinity", None)
        if engine == "kai":
            ask["preemptible"] = True
    third, all_of_it = _part(nodes, 1 / 3), _part(nodes, 1)
    return {**_of_three(engine, [_as_node(node) for node in nodes], third, all_of_it), "jobs": jobs}


def _backlog(engine: str, count: int) -> Body:
    """A grid's jobs of one processor at three times what there is, in queues with a third each: two thirds of all that
    came wait at the end of the eleven days. Priorities are drawn."""
    draw, jobs = random.Random(7), _grid(count)["jobs"]
    for job in jobs:
        site = int(job["ask"]["queue"][1:].partition("-")[0])
        job["ask"] |= {
            "queue": _root_of(engine) + "abc"[site % 3], "priority": draw.randrange(10),
        } | ({"preemptible": True} if engine == "kai" else {})  # fmt: skip
    used = sum(job["duration"] for job in jobs) / jobs[-1]["submitted_at"]
    return {**_of_three(engine, *_alike(max(1, int(used / 3) // GPUS), ("cpu",))), "jobs": jobs}


def _drawn(draw: random.Random, mean: float) -> int:
    return max(1, int(draw.expovariate(1 / mean)))


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
    nodes, prefix = list(_table("openb_nodes.csv.gz")), _root_of(engine)
    jobs: list[Body] = []
    for pod in _table("openb_pods.csv.gz"):
        if not pod["scheduled_time"]:
            continue
        lasts = int(float(pod["deletion_time"])) - int(float(pod["scheduled_time"]))
        if lasts > 0:
            jobs.append(_pod(pod, prefix, lasts, by_model=engine == "kueue"))
    if engine == "kueue":
        return {"configuration": _by_model(nodes), "jobs": jobs}
    top = [_queue("root", None, None if engine == "yunikorn" else _part(nodes, 1))] if engine in TREES else []
    leaves = [
        _queue(prefix + name, "root" if top else None, None if engine == "kube-scheduler" else _part(nodes, part))
        for name, part in PARTS.items()
    ]
    state = {"nodes": list(map(_as_node, nodes))}
    return {"configuration": {"engine": engine, "queues": [*top, *leaves]}, "state": state, "jobs": jobs}


def _as_node(row: dict[str, str]) -> Body:
    capacity = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "gpu": int(row["gpu"])}
    return {"name": row["sn"], "capacity": capacity}


def _capacity(row: dict[str, str]) -> list[int]:
    """Thousandths of a core, MiB, thousandths of a GPU."""
    return [int(row["cpu_milli"]), int(row["memory_mib"]), 1000 * int(row["gpu"])]


def _amounts(job: Body) -> list[int]:
    """The same of what a pod requests."""
    requests = job["ask"]["tasks"][0]["requests"]
    return [int(requests["cpu"][:-1]), int(requests["memory"][:-2]), round(1000 * requests.get("gpu", 0))]


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
    cpu, memory, gpu = (int(sum(each) * part) for each in zip(*map(_capacity, nodes), strict=True))
    return {
        "cpu": {"guaranteed": f"{cpu}m"}, "memory": {"guaranteed": f"{memory}Mi"}, "gpu": {"guaranteed": f"{gpu}m"},
    }  # fmt: skip


def _grid(count: int = JOBS) -> Body:
    """A grid's log of eleven days, the same each time: jobs of one processor on 170 sites that are used very unequally
    and are cohorts; groups are queues, which borrow all but one processor of their site's. Nobody waits for long."""
    draw, jobs, at = random.Random(1), list[Body](), 0.0
    use = [1 / (site + 1) ** 0.9 for site in range(COHORTS)]
    sites = draw.choices(range(COHORTS), use, k=count)
    for i, site in enumerate(sites):
        at += draw.expovariate(count / (11 * 86400))
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


OVERLOADS: dict[str, tuple[float, float]] = {
    "kueue": (359, 919),
    "yunikorn": (408, 1_120),
    "kai": (755, 1_900),
    "ytsaurus": (864, 1_400),
    "kube-scheduler": (496, 805),
}
"""Budgets in J by engine, of a run that nobody looks at, and of one that the service stores."""
CASES = [
    Case("kueue-nasa", 66, _nasa),
    Case("kueue-alibaba", 64, lambda: _alibaba("kueue")),
    Case("yunikorn-alibaba", 68, lambda: _alibaba("yunikorn")),
    Case("kai-alibaba", 85, lambda: _alibaba("kai")),
    Case("ytsaurus-alibaba", 98, lambda: _alibaba("ytsaurus")),
    Case("kube-scheduler-alibaba", 138, lambda: _alibaba("kube-scheduler")),
    Case("kueue-170-cohorts", 83, _grid),
    *(Case(f"overload-{engine}", budget, partial(_overload, engine)) for engine, (budget, _) in OVERLOADS.items()),
    *(
        Case(f"overload-stored-{engine}", budget, partial(_overload, engine), stored=True)
        for engine, (_, budget) in OVERLOADS.items()
    ),
    *(
        Case(f"{name}-{engine}", budget, partial(body, engine, count))
        for name, body, of in (
            (
                "backlog",
                _backlog,
                (
                    ("kueue", 20_000, 191),
                    ("yunikorn", 8_000, 456),
                    ("kai", 1_500, 355),
                    ("ytsaurus", 3_000, 288),
                    ("kube-scheduler", 8_000, 159),
                ),
            ),
            (
                "mixed",
                _mixed,
                (
                    ("kueue", 2_000, 1_580),
                    ("yunikorn", 2_000, 1_560),
                    ("kai", 500, 5_200),
                    ("ytsaurus", 2_000, 1_300),
                    ("kube-scheduler", 2_000, 865),
                ),
            ),
        )
        for engine, count, budget in of
    ),
]

if __name__ == "__main__":
    print_all(sys.argv[1:])
