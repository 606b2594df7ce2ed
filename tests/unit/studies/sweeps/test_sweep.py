"""A sweep: every point once, the same files whatever ran them and however often it was stopped."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from app.base.errors import BadInput
from app.simulations.router import SIMULATION
from app.studies.sweep_executors import Local, Played, Point, Ran, Runner, on_ray, play
from app.studies.sweeps import read, sweep

CONFIGURATION: dict[str, Any] = SIMULATION["configuration"]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    jobs = SIMULATION["trace"]["jobs"]
    (tmp_path / "t.ndjson").write_text("".join(json.dumps(job) + "\n" for job in jobs))
    grid = {
        "configurations": {"two-teams": CONFIGURATION},
        "traces": {"t": {"file": "t.ndjson", "sample": 0.9}, "all": "t.ndjson"},
        "seeds": [1, 2],
        "settings": {"/grace": ["0s", "30s"], "/configuration/settings/kueue/fair_sharing": [False, True]},
    }
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(grid))
    return tmp_path


def here(points: Sequence[Point], traces: Mapping[str, Played]) -> Iterator[Ran]:
    for point in points:
        yield Ran(point, play(point.request, traces[point.trace]))


def swept(base: Path, out: str, run: Runner) -> dict[str, bytes]:
    """Every file of the folder by name."""
    sweep(read((base / "grid.yaml").read_bytes()), base, base / out, run, lambda ran, left: None)
    return {str(path.relative_to(base / out)): path.read_bytes() for path in (base / out).rglob("*") if path.is_file()}


def test_two_processes_make_the_same_files_as_one_loop(base: Path) -> None:
    one, two = swept(base, "one", here), swept(base, "two", Local(2))
    assert one == two
    table = pq.read_table(base / "one" / "results.parquet").to_pylist()
    whole = [row for row in table if row["queue"] == "" and row["trace"] == "all"]
    assert len(whole) == 8
    assert {row["finished"] for row in whole} == {2}
    assert [run["status"] for run in json.loads(one["manifest.json"])["runs"]] == ["done"] * 16


def test_a_sweep_that_was_stopped_goes_on(base: Path) -> None:
    whole = swept(base, "whole", here)
    seen: list[str] = []

    def dies(points: Sequence[Point], traces: Mapping[str, Played]) -> Iterator[Ran]:
        for ran in here(points[:3], traces):
            seen.append(ran.point.key)
            yield ran
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swept(base, "broken", dies)

    def counted(points: Sequence[Point], traces: Mapping[str, Played]) -> Iterator[Ran]:
        seen.extend(point.key for point in points)
        return here(points, traces)

    assert swept(base, "broken", counted) == whole
    assert len(seen) == len(set(seen))


def test_a_run_that_fails_is_told_and_the_rest_goes_on(base: Path) -> None:
    def fails(points: Sequence[Point], traces: Mapping[str, Played]) -> Iterator[Ran]:
        first, *rest = points
        yield Ran(first, None, "its node burnt down")
        yield from here(rest, traces)

    found = json.loads(swept(base, "failed", fails)["manifest.json"])["runs"]
    assert next(run for run in found if run["status"] == "failed")["error"] == "its node burnt down"
    assert swept(base, "failed", here) == swept(base, "whole", here)


def test_each_run_is_told_with_how_many_are_left_and_what_is_done_is_not_run(base: Path) -> None:
    grid, told = read((base / "grid.yaml").read_bytes()), list[tuple[str, int]]()

    def tell(ran: Ran, left: int) -> None:
        told.append((ran.point.key, left))

    done, errors = sweep(grid, base, base / "out", here, tell)
    assert told == [(point.key, 15 - number) for number, (point, _) in enumerate(done)]
    assert (len(told), errors) == (16, {})

    def never(points: Sequence[Point], traces: Mapping[str, Played]) -> Iterator[Ran]:
        raise AssertionError

    assert sweep(grid, base, base / "out", never, tell) == (done, {})
    assert len(told) == 16


PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p-0,12000,16384,1,1000,,LS,Running,0,400,0
p-1,6000,1024,0,0,,BE,Running,10,500,12
"""
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,262144,0,\nn-1,96500,262144,8,V100M16\n"
MAPPED = {"queue": "{qos}", "resources": {"cpu": {"column": "cpus"}}}
CLUSTER = {"engine": "yunikorn", "each": {"queue": {"name": "*"}}}


def test_a_trace_and_what_goes_with_it_are_read_from_beside_the_grid(tmp_path: Path) -> None:
    files = {"pods.csv": PODS, "nodes.csv": NODES, "m.yaml": yaml.safe_dump({**MAPPED, "cluster": CLUSTER}),
             "bare.yaml": yaml.safe_dump(MAPPED), "c.json": json.dumps(CONFIGURATION)}  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    traced = {"file": "pods.csv", "nodes": "nodes.csv", "mapping": "m.yaml", "format": "alibaba-gpu-2023"}
    document = {"configurations": {"made": "trace", "file": "c.json"}, "traces": {"t": {**traced, "sample": 0.5}}}
    asked = list[Any]()

    def looks(points: Sequence[Point], traces: Mapping[str, Played]) -> Iterator[Ran]:
        asked.extend(json.loads(point.request)["configuration"] for point in points)
        asked.append(traces["t"].sample)
        yield from (Ran(point, None, "enough") for point in points)

    done, errors = sweep(read(json.dumps(document).encode()), tmp_path, tmp_path / "out", looks, lambda ran, left: None)
    made, given, sample = asked
    assert (made["engine"], sorted(queue["name"] for queue in made["queues"])) == ("yunikorn", ["BE", "LS"])
    shares = [queue["quota"]["cpu"]["guaranteed"] for queue in made["queues"]]
    assert shares == ["64250m", "64250m"], "each half of what the nodes have, 32 and 96.5"
    assert (given["engine"], sample) == (CONFIGURATION["engine"], 0.5)
    assert (done, set(errors.values()), len(errors)) == ([], {"enough"}, 2)
    bare = {**document, "traces": {"t": {**traced, "mapping": "bare.yaml"}}}
    with pytest.raises(BadInput) as refused:
        sweep(read(json.dumps(bare).encode()), tmp_path, tmp_path / "out", looks, lambda ran, left: None)
    assert [(one.pointer, one.detail) for one in refused.value.problems] == [
        ("/configurations/made", "the mapping of a trace has no cluster")
    ]


@pytest.mark.slow
def test_a_ray_cluster_that_loses_a_node_makes_the_same_files(base: Path) -> None:
    ray = pytest.importorskip("ray", reason="needs the extra arbiter-preemption[ray]")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    lost = cluster.add_node(num_cpus=1)
    run = on_ray(cluster.address)

    def losing(points: Sequence[Point], traces: Mapping[str, Played]) -> Iterator[Ran]:
        for number, ran in enumerate(run(points, traces)):
            if number == 1:
                cluster.remove_node(lost)
            yield ran

    try:
        assert swept(base, "ray", losing) == swept(base, "here", here)
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_settings_of_kube_scheduler_are_swept(tmp_path: Path) -> None:
    """Four nodes are full. Where one candidate is enough it is the first, whose pod evicts the next, and so on; where
    all are looked at only the least goes."""
    begun, asked = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"

    def job(name: str, priority: int, at: str, duration: int) -> dict[str, Any]:
        task = {"name": name, "requests": {"cpu": 4}}
        made = {"id": name, "queue": "batch", "priority": priority, "created_at": at, "tasks": [task]}
        return {"ask": made, "submitted_at": at, "duration": duration}

    running = [job(f"old-{i}", 4 - i, begun, 600) for i in range(4)]
    lines = [*running, job("serve", 100, asked, 60)]
    (tmp_path / "t.ndjson").write_text("".join(json.dumps(one) + "\n" for one in lines))
    configuration = {"engine": "kube-scheduler", "queues": [{"name": "batch"}], "settings": {"kube_scheduler": {}}}
    grid = {
        "request": {"state": {"nodes": [{"name": f"n{i}", "capacity": {"cpu": 4}} for i in range(4)]}},
        "configurations": {"own": configuration}, "traces": {"t": "t.ndjson"},
        "settings": {"/configuration/settings/kube_scheduler/min_candidate_nodes_absolute": [1, 100]},
    }  # fmt: skip
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(grid))
    swept(tmp_path, "out", here)
    rows = [row for row in pq.read_table(tmp_path / "out" / "results.parquet").to_pylist() if row["queue"] == ""]
    assert [(row["settings"].split(":")[-1], row["evictions"], row["finished"]) for row in rows] == [
        ("1}", 4, 5),
        ("100}", 1, 5),
    ]
