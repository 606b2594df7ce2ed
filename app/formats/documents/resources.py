"""Resources between systems: each calls cpu and GPUs by names of its own, and reads amounts of its own forms."""

from typing import TypeVar

from app.base.documents import Path
from app.formats.documents.exported import Lost
from app.formats.names import ExportFormat
from app.solver.model.configuration import EngineName

T = TypeVar("T")

_CPU = {"kueue": "cpu", "yunikorn": "vcore", "kai": "cpu", "ytsaurus": "cpu"}
_ONE_KIND_OF_GPU = ("kai", "ytsaurus")
"""Systems that count GPUs whoever makes them."""
_VENDOR = "nvidia.com/gpu"
_ON_KUBERNETES = ("kueue", "yunikorn")
_ONLY_YTSAURUS = frozenset({"user_slots", "network"})
_YTSAURUS = frozenset({"cpu", "gpu", "memory", "user_memory", "user_slots", "network"})


def renamed(
    amounts: dict[str, tuple[Path, T]], engine: EngineName | None, system: ExportFormat, lost: Lost
) -> dict[str, tuple[Path, T]]:
    """``amounts`` by resource, with their places, in the words of ``system``. ``engine``: whose words they are now;
    None: anybody's. What has no word, or would meet another under one name, is left out with a finding."""
    if engine == system:
        return amounts
    found: dict[str, tuple[Path, T]] = {}
    for name, (at, amount) in amounts.items():
        new = _word(name, at, system, lost)
        if new is None:
            continue
        if new in found:
            lost.add(at, f"a second amount of {new}: {name} is left out")
        else:
            found[new] = (at, amount)
    return found


def _word(name: str, at: Path, system: ExportFormat, lost: Lost) -> str | None:
    if name in ("cpu", "vcore"):
        return _CPU[system]
    if name.endswith("/gpu") and system in _ONE_KIND_OF_GPU:
        if name != _VENDOR:
            lost.add(at, f"{system} counts GPUs of every vendor: {name} is written as gpu")
        return "gpu"
    if name == "gpu" and system in _ON_KUBERNETES:
        lost.add(at, f"a GPU of Kubernetes has a vendor: written as {_VENDOR}")
        return _VENDOR
    if (system == "ytsaurus" and name not in _YTSAURUS) or (system != "ytsaurus" and name in _ONLY_YTSAURUS):
        lost.add(at, f"{system} has no resource {name}: left out")
        return None
    return name
