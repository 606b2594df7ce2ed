"""Runs on this machine's processes: started before they are needed, each job checked before a run."""

import os
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from app.base.decoding import convert
from app.simulations.router import SIMULATION
from app.simulations.schemas import Trace
from app.studies import sweep_executors as processes
from app.studies.sweep_executors import Grid, Local, Played, Point, Ran, context_at, play, size
from app.studies.sweeps import Folder, engines
from app.traces.ingest import Limits, Source, ingest
from tests.support.instead import Instead

JOBS = SIMULATION["trace"]["jobs"]


def trace_of(*jobs: object) -> Played:
    read = ingest(Source("ndjson", b"\n".join(map(msgspec.json.encode, jobs))), Limits())
    return Played([chunk.data for chunk in read.chunks], msgspec.json.encode(Trace()), None)


def point(key: str = "k") -> Point:
    request = {"configuration": SIMULATION["configuration"], "trace": "t", "seed": 0}
    return Point("c", "t", 0, {}, msgspec.json.encode(request), key)


def test_processes_that_were_started_before_run_the_same_and_are_gone_in_the_end() -> None:
    trace = trace_of(*JOBS)
    with Local(2, ["kueue"]) as run:
        found = list(run([point("a"), point("b")], {"t": trace}))
    assert {(ran.point.key, ran.summary) for ran in found} == {(k, play(point().request, trace)) for k in "ab"}


def test_the_processes_of_a_sweep_that_is_killed_end_with_it() -> None:
    killed = """if __name__ == '__main__':
        import os
        from app.studies.sweep_executors import Local
        with Local(1) as run:
            run._started().submit(print, 'ready', flush=True).result()
            os.kill(os.getpid(), 9)
    """
    # whoever holds its standard output keeps this from coming to an end
    ended = subprocess.run([sys.executable, "-c", killed], check=False, stdout=subprocess.PIPE, timeout=120)
    assert (ended.returncode, ended.stdout) == (-9, b"ready\n")


def test_processes_start_where_paths_are_too_long_for_sockets(tmp_path: Path) -> None:
    code = """if __name__ == '__main__':
        from app.studies.sweep_executors import Local
        from app.studies.sweep_executors import CONTEXT, begin
        begin()
        with Local(1) as run:
            print(CONTEXT.get_start_method(), run._started().submit(len, 'four').result())
    """
    for long, said in ((False, b"forkserver 4\n"), (True, b"spawn 4\n")):
        folder = tmp_path / ("x" * 110) if long else Path("/tmp")
        folder.mkdir(exist_ok=True)
        found = subprocess.check_output([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(folder)})
        assert found == said


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_the_process_that_others_are_forked_from_starts_before_they_are_needed(method: str, instead: Instead) -> None:
    said = list[object]()
    context = SimpleNamespace(get_start_method=lambda: method, set_forkserver_preload=said.append)
    instead(processes, CONTEXT=context, ensure_running=lambda: said.append("runs"))
    processes.begin(["app.cli"])
    assert said == ([["app.cli", "app.studies.sweep_executors"], "runs"] if method == "forkserver" else [])


def test_the_longest_folder_for_sockets() -> None:
    folder = "/" + "é" * 29
    assert [context_at(folder + more).get_start_method() for more in ("", "x")] == ["forkserver", "spawn"]


def test_an_interrupted_sweep_waits_for_no_run() -> None:
    def interrupted(run: Local) -> None:
        pool = run._started()  # pyright: ignore[reportPrivateUsage]
        pool.submit(print).result()
        pool.submit(time.sleep, 200)
        raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Local(1) as run:
        interrupted(run)
    assert time.monotonic() - begun < 100
    assert not active_children()


def test_a_job_that_can_never_run_is_named_by_its_line_before_the_run() -> None:
    wide = {**JOBS[0], "ask": {**JOBS[0]["ask"], "id": "wide"}}
    wide["ask"]["tasks"] = [{"name": "main", "requests": {"gpu": 10**6}}]
    (ran,) = Local(1)([point()], {"t": trace_of(*JOBS, {**wide, "submitted_at": JOBS[-1]["submitted_at"]})})
    assert ran.summary is None
    assert ran.error.startswith(f"/trace/lines/{len(JOBS) + 1}/ask: can never run")


def test_a_grid_tells_its_size_and_engines_before_a_trace_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text('{"engine": "yunikorn", "queues": []}')
    (tmp_path / "broken").write_text("{")
    (tmp_path / "mapping").write_text("{resources: {cpu: 1}, cluster: {engine: kai, each: {queue: {name: '*'}}}}")
    (tmp_path / "plain").write_text("{resources: {cpu: 1}}")
    configurations = {"a": SIMULATION["configuration"], "b": "file", "c": "broken", "d": "absent"}
    document = {"configurations": configurations, "traces": {"t": "f"}, "seeds": [1, 2, 3]}
    grid = convert({**document, "settings": {"/grace": [0, 1]}}, Grid)
    assert (size(grid), engines(grid, tmp_path)) == (24, {"kueue", "yunikorn"})
    traces = {name: {"file": "f", "mapping": name} for name in ("mapping", "plain", "broken", "absent")}
    of_trace = convert({"request": {"engine": "ytsaurus"}, "configurations": {"e": "trace"}, "traces": traces}, Grid)
    assert (size(of_trace), engines(of_trace, tmp_path)) == (4, {"ytsaurus", "kai"})


def test_a_manifest_follows_and_its_cost_does_not_grow_with_the_square_of_the_runs(
    tmp_path: Path, instead: Instead
) -> None:
    summary = play(point().request, trace_of(*JOBS))
    points = [point(f"{i}") for i in range(40)]
    folder, reads = Folder(tmp_path, points), list[str]()
    whole = Path.read_bytes

    def read(path: Path) -> bytes:
        reads.append(path.name)
        return whole(path)

    instead(Path, read_bytes=read)
    for one in points:
        folder.keep(Ran(one, summary))
    assert len(reads) <= len(points)
    folder.finish()
    told = msgspec.json.decode(whole(tmp_path / "manifest.json"))["runs"]
    assert [run["status"] for run in told] == ["done"] * 40
