"""Inputs: the recorded large ones where ../shared/vectors/speed exists, and generated ones of any size."""

import gc
import gzip
import itertools
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SPEED = Path(__file__).resolve().parents[2] / "shared" / "vectors" / "speed"
_JSON_RUNS = 5
_LATER = "-0.17"


@dataclass(frozen=True, slots=True)
class Input:
    """``body``: of POST /v1/decisions. ``expect``: the recorded answer, where there is one."""

    name: str
    request: dict[str, Any]
    body: bytes
    expect: Any = None

    @property
    def engine(self) -> str:
        return self.name.split("-")[0]

    def never_seen(self) -> Iterator[bytes]:
        """Bodies that ask the same with configurations that no service has compiled yet: each has a flavor more that
        nobody uses."""
        configuration = self.request["configuration"]
        rest = _dumped({key: value for key, value in self.request.items() if key != "configuration"})
        for i in itertools.count():
            unused = {"name": f"unused-{i}"}
            flavors = [*configuration.get("flavors", ()), unused]
            yield b'{"configuration":%b,%b' % (_dumped({**configuration, "flavors": flavors}), rest[1:])

    def j(self, runs: int = _JSON_RUNS) -> float:
        """Seconds of ``json.loads`` of the body: the best of ``runs``, now.

        Without the collector, which would visit what is being decoded, and all else that this process holds.
        """
        gc.collect()
        gc.disable()
        best = float("inf")
        for _ in range(runs):
            begun = time.perf_counter()
            json.loads(self.body)
            best = min(best, time.perf_counter() - begun)
        gc.enable()
        return best


def _dumped(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def recorded(name: str) -> Input | None:
    """The recorded input, or None where the recordings are not at hand; with ``0.17`` in its name under that release,
    whose answer is not recorded."""
    file = SPEED / f"{name.replace(_LATER, '')}.json.gz"
    if not file.exists():
        return None
    vector = json.loads(gzip.decompress(file.read_bytes()))
    if _LATER in name:
        request = vector["request"]
        request["configuration"]["settings"]["kai"]["release"] = "0.17"
        return of(name, request)
    return of(name, vector["request"], vector.get("expect") or vector.get("expect_any"))


def of(name: str, request: dict[str, Any], expect: Any = None) -> Input:
    """An input of a request."""
    return Input(name, request, _dumped(request), expect)


def kueue(workloads: int, queues: int, seed: int = 7) -> Input:
    """One cohort, over its quota: an ask of a queue that lends must reclaim. Sizes as the recorded ones have."""
    draw = random.Random(seed)
    running = [
        {
            "id": f"w{i}",
            "uid": f"{draw.getrandbits(64):016x}",
            "queue": f"q{draw.randrange(1, queues)}",
            "priority": draw.randrange(10),
            "created_at": _instant(draw, 10),
            "started_at": _instant(draw, 12),
            "tasks": [{"name": "main", "requests": {"cpu": f"{draw.randrange(500, 1500)}m"}, "flavors": {"cpu": "f0"}}],
        }
        for i in range(workloads)
    ]
    quota = f"{workloads * 1000 // queues}m"
    preemption = {"reclaim_within_cohort": "Any", "within_cluster_queue": "LowerPriority"}
    return of(
        f"kueue-generated-n{workloads}-q{queues}",
        {
            "engine": "kueue",
            "now": "2026-01-02T00:00:00Z",
            "configuration": {
                "flavors": [{"name": "f0"}],
                "queues": [{"name": "cohort"}]
                + [
                    {
                        "name": f"q{i}",
                        "parent": "cohort",
                        "kueue": {"preemption": preemption},
                        "resource_groups": [
                            {"resources": ["cpu"], "flavors": [{"name": "f0", "quota": {"cpu": {"guaranteed": quota}}}]}
                        ],
                    }
                    for i in range(queues)
                ],
            },
            "state": {"workloads": running},
            "asks": [
                {
                    "id": "ask",
                    "uid": "ask",
                    "queue": "q0",
                    "priority": 5,
                    "created_at": "2026-01-01T23:00:00Z",
                    "tasks": [{"name": "main", "requests": {"cpu": "20"}, "flavors": {"cpu": "f0"}}],
                }
            ],
        },
    )


def _instant(draw: random.Random, hour: int) -> str:
    return f"2026-01-01T{hour:02d}:{draw.randrange(60):02d}:{draw.randrange(60):02d}Z"
