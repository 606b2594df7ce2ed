"""``python -m benchmarks [--only NAME ...] [--quick] [--chart FILE]``: a table with ratios, stages and budgets."""

import argparse
import datetime
import os
from pathlib import Path

from benchmarks import chart, crowd, inputs, kube_cluster, kueue_racks, measure, simulations, sweeps, ytsaurus_tree
from benchmarks.budgets import BUDGETS, BUSY_CROWD_SECONDS, CROWD_SECONDS, MEMORY_MB, SMALL_MEDIAN, SMALL_TAIL, Budget
from benchmarks.inputs import Input
from benchmarks.measure import Figure
from benchmarks.service import Client, peak_memory_mb, service, wait_for_rest

SMALL = Path(__file__).parents[1] / "examples" / "kueue-classic.json"


def main() -> None:
    """Run what was asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        nargs="*",
        default=[],
        help="inputs whose name contains one of these, or `simulations`, `sweep`, `small`",
    )
    parser.add_argument("--quick", action="store_true", help="cold figures only")
    parser.add_argument("--chart", type=Path, help="write the chart here")
    options = parser.parse_args()
    names = [n for n in BUDGETS if not options.only or any(part in n for part in options.only)]
    rows = [row for name in names if (row := _one(name, quick=options.quick)) is not None]
    if "simulations" in options.only:
        simulations.print_all()
    if "sweep" in options.only:
        sweeps.print_all()
    if "small" in options.only:
        _small()
    if not options.quick and not options.only:
        simulations.print_all()
        sweeps.print_all()
        _small()
        _crowd()
        _growth()
        _throughput()
    if options.chart is not None:
        cores = os.cpu_count()
        today = datetime.datetime.now(datetime.UTC)
        title = f"One decision, in J (json.loads of the body) - {today:%Y-%m-%d}, {cores} cores"
        options.chart.write_text(chart.svg(title, rows))


def _input(name: str) -> Input | None:
    if name.startswith("ytsaurus"):
        return inputs.of(name, ytsaurus_tree.tree())
    if name.startswith("kueue-racks"):
        return inputs.of(name, kueue_racks.racks())
    if name.startswith("kube-scheduler"):
        return inputs.of(name, kube_cluster.cluster())
    return inputs.recorded(name)


def _one(name: str, *, quick: bool) -> chart.Row | None:
    item, budget = _input(name), BUDGETS[name]
    if item is None:
        print(f"{name}: not at hand (../shared/vectors/speed)")
        return None
    if budget.again is not None:
        with service() as (port, process):  # of its own: who sends the same each time has not sent forty others before
            wait_for_rest(process)
            _print("again", measure.again(Client(port), item), budget.again, budget)
    with service() as (port, process):
        wait_for_rest(process)
        client = Client(port)
        figure = measure.cold(client, item)
        values = {"cold": figure.ratio} | ({"real": budget.real} if budget.real is not None else {})
        _print("cold", figure, budget.cold, budget)
        if not quick:
            kept = measure.resident(client, item)
            values["resident"] = kept.ratio
            _print("resident", kept, budget.resident, budget)
            if budget.other is not None:
                other = measure.resident(client, item, kube_cluster.never_asked)
                _print("other", other, budget.other, budget)
                if budget.ahead is not None and (seconds := kube_cluster.released(item.request)) is not None:
                    for kind, figure in (("resident", kept), ("other", other)):
                        times = seconds / figure.seconds
                        verdict = "ok  " if times >= budget.ahead else "OVER"
                        print(f"{verdict} {kind}: {times:.3g} times as fast as released, of {budget.ahead:g} "
                              f"({seconds / figure.j:.3g} J)")  # fmt: skip
            if "n50000" in name:
                _print("delta", measure.delta(client, item), 0.05, budget)
        memory = peak_memory_mb(process)
        bound = f" (at most {MEMORY_MB[item.engine]})" if item.engine in MEMORY_MB else ""
        print(f"    peak memory, MB{bound}: {memory}")
    return chart.Row(name, values)


def _print(kind: str, figure: Figure, bound: float, budget: Budget) -> None:
    verdict = "ok  " if figure.ratio <= bound else "OVER"
    real = f"real system {budget.real:g} J" if budget.real is not None else ""
    stages = " ".join(f"{stage} {ms:.1f}" for stage, ms in figure.stages.items())
    print(
        f"{verdict} {kind:9}{figure.name:42} {figure.ratio:9.3f} J of {bound:g} "
        f"({figure.seconds * 1e3:.1f} ms, J {figure.j * 1e3:.1f} ms) {real}\n    stages: {stages}",
        flush=True,
    )


def _small() -> None:
    with service() as (port, process):
        wait_for_rest(process)
        found = measure.small(Client(port), SMALL.read_bytes())
    for what, ratio, bound in (
        ("median against /healthz", found.median / found.health, SMALL_MEDIAN),
        ("99th percentile against median", found.tail / found.median, SMALL_TAIL),
    ):
        verdict = "ok  " if ratio <= bound else "OVER"
        print(f"{verdict} small decision, {what}: {ratio:.2f} of {bound:g}")
    print(f"    /healthz {found.health * 1e3:.2f} ms, decision {found.median * 1e3:.2f} ms, {found.tail * 1e3:.2f} ms")


def _crowd() -> None:
    """Also with twice as many runnable processes as there are cores, as on a machine that others use too."""
    for processes, most in ((0, CROWD_SECONDS), (2 * (os.cpu_count() or 1), BUSY_CROWD_SECONDS)):
        with service() as (port, _), crowd.busy(processes):
            taken = crowd.crowded(port, SMALL.read_bytes())
        tail = taken[len(taken) * 99 // 100]
        verdict = "ok  " if tail <= most else "OVER"
        beside = f"{crowd.CLIENTS} slow ones" + (f" and {processes} busy processes" if processes else "")
        print(
            f"{verdict} small decision beside {beside}, 99th percentile: {tail * 1e3:.0f} ms of {most * 1e3:.0f} "
            f"(median {taken[len(taken) // 2] * 1e3:.1f} ms, longest {taken[-1] * 1e3:.0f} ms)"
        )


def _growth() -> None:
    with service() as (port, _):
        figures, exponent = measure.growth(Client(port), (1000, 5000, 20000, 50000, 200000))
    for figure in figures:
        _print("growth", figure, 99, Budget(None, 99, 99))
    last, before = figures[-1], figures[-2]
    print(
        f"cost grows as size ** {exponent:.2f}; 200,000 take {last.seconds / before.seconds:.2f} times 50,000 (below 6)"
    )


def _throughput() -> None:
    """Decisions a second. Two workers on two cores help where solving is most of the work; decisions of a fraction of a
    millisecond are bounded by the one process that speaks HTTP, and are shown for that."""
    for name in ("kai-reclaim-n1000-p10", "kueue-classic-flat-n10000-q100"):
        item = inputs.recorded(name) or inputs.kueue(10000, 100)
        rates: dict[int, float] = {}
        for workers in (1, 2, 1, 2):  # twice: another guest of the machine may want the second core for a while
            with service(workers) as (port, _):
                for connections in (1, 2, 4, 8, 16):
                    rate = measure.throughput(port, item, connections)
                    rates[workers] = max(rates.get(workers, 0.0), rate)
                    print(f"throughput {name}, {workers} workers, {connections:2} connections: {rate:8.1f} decisions/s")
        print(f"two workers over one: {rates[2] / rates[1]:.2f} times", flush=True)


if __name__ == "__main__":
    main()
