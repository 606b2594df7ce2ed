"""Resources as KAI counts them: cpu in thousandths, memory in bytes, GPUs in thousandths of a device.

Queues know exactly these three (KAI: resource_share.AllResources); tasks and nodes may have more columns, which
only nodes limit.
"""

from app.solver.compiled.resources import ResourceIndex
from app.solver.model.base import Quantity
from app.solver.model.quantity import parse

CPU, MEMORY, GPU = 0, 1, 2
QUEUE_RESOURCES = ("cpu", "memory", "gpu")
PODS = "pods"
KAI_UNLIMITED = -1
"""No limit, or an unlimited deserved quota, as KAI's arithmetic has it: its comparisons treat minus one unit so."""
BOUNDLESS = 2**62
"""Pods of a node that does not count them."""

Vector = tuple[int, ...]
"""Amounts by column: cpu, memory, gpu, others."""
Share = tuple[int, int, int]
"""Amounts of cpu, memory and gpu."""


def is_gpu(name: str) -> bool:
    """Names of whole GPUs and shares of one: gpu, nvidia.com/gpu, amd.com/gpu, ..."""
    return name == "gpu" or name.endswith("/gpu")


def unsupported_gpu(name: str) -> str | None:
    """Why a GPU resource of this name is refused: MIG instances and slices of GPU memory; None where it is not."""
    low = name.lower()
    if "/mig-" in low or low.startswith("mig-"):
        return "MIG instances are not supported: request whole GPUs, or a share of one"
    if "gpu" in low and "mem" in low:
        return "requests for GPU memory are not supported: request a share of a GPU"
    return None


class Columns:
    """Request dictionaries as vectors, each distinct one parsed once. Column order: cpu, memory, gpu, others. There is
    a column of pods where some node counts them; a pod is one, whatever its requests say."""

    __slots__ = ("_one_pod", "_seen", "resources")

    def __init__(self, resources: ResourceIndex) -> None:
        self.resources = resources
        self._one_pod: tuple[tuple[str, Quantity], ...] = ((PODS, 1),) if PODS in resources.index else ()
        self._seen: dict[tuple[tuple[str, Quantity], ...], Vector] = {}

    def __call__(self, quantities: dict[str, Quantity], *, pod: bool = False) -> Vector:
        """The vector of ``quantities``; resources that no node has are columns too. Raises QuantityError."""
        if pod and PODS in quantities:
            quantities = {name: value for name, value in quantities.items() if name != PODS}
        key = (*quantities.items(), *self._one_pod) if pod else tuple(quantities.items())
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self._parse(dict(key))
        return found

    def _parse(self, quantities: dict[str, Quantity]) -> Vector:
        steps: dict[int, int] = {}
        for name, value in quantities.items():
            r = GPU if is_gpu(name) else self.resources.add(name)
            steps[r] = steps.get(r, 0) + parse(value, self.resources.scales[r])
        return tuple(steps.get(r, 0) for r in range(len(self.resources)))
