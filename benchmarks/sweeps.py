"""``python -m benchmarks.sweeps``: 64 simulations on all cores against one, as ``arbiter sweep`` runs them.

How much of what so many cores could do at best: 1 is ideal. Each run draws a part of the NASA trace by a seed of its
own. Wall time, so on a machine that does nothing else. With Ray installed the same sweep goes through it too, on a
cluster of this machine that is there already.
"""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, perf_counter, sleep

from benchmarks.simulations import TRACES

RUNS = 64
SAMPLE = 0.25
LEAST = 0.9
"""The budget: this share of ideal."""
_BEGINS = 60.0
"""Seconds that Ray may take for that."""
MAPPING = Path(__file__).parents[1] / "examples" / "traces" / "nasa-ipsc.yaml"


def print_all() -> None:
    """Run the sweep on one core and on all, and print how they compare."""
    trace = TRACES / "nasa-ipsc.swf.gz"
    if not trace.exists():
        print("sweep: not at hand (../shared/traces)")
        return
    cores = os.cpu_count() or 1
    source = {"file": str(trace.resolve()), "mapping": str(MAPPING), "sample": SAMPLE}
    grid: dict[str, object] = {
        "configurations": {"mapped": "trace"},
        "traces": {"nasa": source},
        "seeds": list(range(RUNS)),
    }
    alone = _seconds(grid, "--workers", "1")
    _print("processes", cores, alone, _seconds(grid, "--workers", str(cores)))
    if importlib.util.find_spec("ray") is not None:
        with _cluster(cores) as address:
            _seconds({**grid, "seeds": list(range(cores))}, "--ray", address)  # its processes have begun
            _print("Ray", cores, alone, _seconds(grid, "--ray", address))


def _print(name: str, cores: int, alone: float, together: float) -> None:
    share = alone / together / cores
    verdict = "ok  " if share >= LEAST else "OVER"
    print(
        f"{verdict} sweep of {RUNS} simulations on {cores} cores by {name}: {share:.2f} of ideal, "
        f"at least {LEAST:g} ({alone:.1f} s on one core, {together:.1f} s)",
        flush=True,
    )


@contextmanager
def _cluster(cores: int) -> Generator[str]:
    """The address of a Ray cluster of this machine. Raises TimeoutError where it does not begin."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--node-ip-address=127.0.0.1"]
    options = [f"--port={port}", f"--num-cpus={cores}", "--include-dashboard=false", "--disable-usage-stats"]
    with subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as head:
        try:
            _until_it_listens(port)
            yield f"127.0.0.1:{port}"
        finally:
            head.terminate()


def _until_it_listens(port: int) -> None:
    end = monotonic() + _BEGINS
    while monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        sleep(0.2)
    raise TimeoutError("Ray does not begin")


def _seconds(grid: object, *options: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder) / "grid.json"
        document.write_text(json.dumps(grid))
        command = [sys.executable, "-P", "-m", "app.cli", "sweep", str(document), "--out", f"{folder}/out", *options]
        begun = perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return perf_counter() - begun


if __name__ == "__main__":
    print_all()
