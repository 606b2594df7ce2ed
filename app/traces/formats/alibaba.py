"""Alibaba's cluster-trace-gpu-v2023: one list of pods, one of nodes, both CSV with a line of names.

Source: https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2023. Times are seconds from the trace's beginning;
``gpu_milli`` is the part of each of ``num_gpu`` GPUs that a pod asks for, in thousandths; ``gpu_spec`` the models that
it accepts, ``|`` between them. A pod runs from ``scheduled_time`` to ``deletion_time``; one that was never scheduled
would have run for an unknown time: it is taken from its creation.
"""

import csv
from collections.abc import Iterator
from decimal import Decimal

from app.solver.model.state import Node
from app.traces.formats.record import Complaints, LineError, Notes, Record, decimal_of, micros_of, numbered

POD_COLUMNS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase", "creation_time",
    "deletion_time", "scheduled_time",
)  # fmt: skip
COLUMNS = (*POD_COLUMNS, "cpus", "memory_bytes", "gpus")
"""The pods' columns, and the same in whole CPUs, bytes and GPUs."""
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
MODEL_LABEL = "gpu-model"


def pods(body: bytes, zero_run_time: str | int | float, complaints: Complaints, notes: Notes) -> Iterator[Record]:
    """The pods of the list as they come."""
    for number, columns in _rows(body, POD_COLUMNS, complaints):
        try:
            found = _pod(number, columns, zero_run_time)
        except LineError as error:
            complaints.add(number, str(error))
            continue
        if isinstance(found, str):
            notes.add(number, found)
        else:
            yield found


def nodes(body: bytes, complaints: Complaints) -> list[Node]:
    """The nodes of the list, in its order; the model of their GPUs is the label ``gpu-model``."""
    found: dict[str, Node] = {}
    for number, columns in _rows(body, NODE_COLUMNS, complaints):
        try:
            node = _node(columns)
        except LineError as error:
            complaints.add(number, f"nodes: {error}")
            continue
        if node.name in found:
            complaints.add(number, f"nodes: {node.name[:64]!r} is there twice")
        found.setdefault(node.name, node)
    return list(found.values())


def _rows(body: bytes, wanted: tuple[str, ...], complaints: Complaints) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by column name, in whatever order the first line has them; more columns are let be."""
    names: list[str] | None = None
    for number, line in numbered(body):
        try:
            row: list[str] = next(csv.reader([line.decode()]), list[str]())
        except (UnicodeDecodeError, csv.Error):
            complaints.add(number, "not UTF-8, or not a line of CSV")
            continue
        if names is None:
            names = row
            if missing := [name for name in wanted if name not in names]:
                complaints.add(number, f"the names of the columns lack {', '.join(missing)}")
                return
        elif row:
            if len(row) != len(names):
                complaints.add(number, f"{len(row)} columns, {len(names)} are needed")
                continue
            yield number, dict(zip(names, row, strict=True))


def _pod(number: int, columns: dict[str, str], zero_run_time: str | int | float) -> Record | str:
    """Raises LineError."""
    if not columns["name"]:
        raise LineError("name: it has none")
    created = micros_of(columns["creation_time"], "creation_time")
    if not columns["deletion_time"]:
        return "it has no end: deletion_time is empty"
    deleted = micros_of(columns["deletion_time"], "deletion_time")
    begun = micros_of(columns["scheduled_time"], "scheduled_time") if columns["scheduled_time"] else created
    if deleted < begun or begun < created:
        raise LineError("its times go backwards: creation_time, scheduled_time, deletion_time")
    duration = deleted - begun
    if duration == 0:
        if zero_run_time == "refuse":
            raise LineError("it ran for 0 s; zero_run_time of the mapping says what becomes of such pods")
        if isinstance(zero_run_time, str):
            return "it ran for 0 s"
        duration = round(zero_run_time * 1_000_000)
    gpus = decimal_of(columns["num_gpu"], "num_gpu") * decimal_of(columns["gpu_milli"], "gpu_milli") / 1000
    told = columns | {
        "cpus": _plain(decimal_of(columns["cpu_milli"], "cpu_milli") / 1000),
        "memory_bytes": _plain(decimal_of(columns["memory_mib"], "memory_mib") * 2**20),
        "gpus": _plain(gpus),
    }
    return Record(number, columns["name"], created, duration, told)


def _node(columns: dict[str, str]) -> Node:
    """Raises LineError."""
    if not columns["sn"]:
        raise LineError("sn: it has no name")
    gpus = decimal_of(columns["gpu"], "gpu")
    capacity: dict[str, int | float | str] = {
        "cpu": _plain(decimal_of(columns["cpu_milli"], "cpu_milli") / 1000),
        "memory": _plain(decimal_of(columns["memory_mib"], "memory_mib") * 2**20),
    }
    if gpus:
        capacity["gpu"] = _plain(gpus)
    labels = {MODEL_LABEL: columns["model"]} if columns["model"] else {}
    return Node(name=columns["sn"], capacity=capacity, labels=labels)


def _plain(number: Decimal) -> str:
    """Without an exponent, and without zeros at the end of a fraction."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
