"""``python -m benchmarks.sweeps``: 64 simulations on all cores against one, as ``arbiter sweep`` runs them.

How much of what so many cores could do at best: 1 is ideal. Each run draws a part of the NASA trace by a seed of its
own. Wall time, so on a machine that does nothing else. With Ray installed the same sweep goes through it too.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.simulations import TRACES

RUNS = 64
SAMPLE = 0.25
LEAST = 0.9
"""The budget: this share of ideal."""
MAPPING = Path(__file__).parents[1] / "examples" / "traces" / "nasa-ipsc.yaml"


def print_all() -> None:
    """Run the sweep on one core and on all, and print how they compare."""
    trace = TRACES / "nasa-ipsc.swf.gz"
    if not trace.exists():
        print("sweep: not at hand (../shared/traces)")
        return
    cores = os.cpu_count() or 1
    source = {"file": str(trace.resolve()), "mapping": str(MAPPING), "sample": SAMPLE}
    grid = {"configurations": {"mapped": "trace"}, "traces": {"nasa": source}, "seeds": list(range(RUNS))}
    alone = _seconds(grid, "--workers", "1")
    ways = [("processes", ("--workers", str(cores)))]
    if importlib.util.find_spec("ray") is not None:
        ways.append(("Ray", ("--ray", "auto")))
    for name, options in ways:
        together = _seconds(grid, *options)
        share = alone / together / cores
        verdict = "ok  " if share >= LEAST else "OVER"
        print(
            f"{verdict} sweep of {RUNS} simulations on {cores} cores by {name}: {share:.2f} of ideal, "
            f"at least {LEAST:g} ({alone:.1f} s on one core, {together:.1f} s)",
            flush=True,
        )


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
