"""What tests of formats share with those beside them."""

from typing import Any

KNOWN = {
    "job": 1, "submit": 3, "wait": 5, "run_time": 100, "allocated_processors": 2, "cpu_time": -1, "used_memory": 64,
    "requested_processors": 4, "requested_time": 200, "requested_memory": -1, "status": 1, "user": 7, "group": 1,
    "executable": -1, "queue": 0, "partition": -1, "preceding_job": -1, "think_time": -1,
}  # fmt: skip


def line(**more: Any) -> bytes:
    return " ".join(str(value) for value in (KNOWN | more).values()).encode()


POD = {
    "sn": "-", "name": "p", "cpu_milli": 1500, "memory_mib": "0.5", "num_gpu": 2, "gpu_milli": 250, "gpu_spec": "",
    "qos": "LS", "pod_phase": "Running", "creation_time": 5, "scheduled_time": 7, "deletion_time": "9.5",
}  # fmt: skip


def rows(*of: dict[str, Any]) -> bytes:
    return "\n".join([",".join(of[0]), *(",".join(str(value) for value in row.values()) for row in of)]).encode()
