"""What it costs the decision log that decisions on a snapshot can be made again: bytes, the same ones every time.

``python -m benchmarks.audit_trail``: a cluster of 2,000 running jobs in 20 teams, a scheduling cycle over what waits,
50 jobs end and 50 start before the next one. Sizes are those of what the database stores: compressed
requests, answers and states, with the facts of each entry as text.
"""

import argparse
import json
import random
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from app.answering.operations import Answerer, Inquiry, Operation
from app.answering.snapshot_store import SnapshotStore
from app.answering.sources import Compiled
from app.decisions.kept import LONGEST, LoggedStates, squeezed
from app.decisions.log import Entry

_RUNNING, _TEAMS, _CHANGES = 2000, 20, 100
_BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)
_SHAPES = ((1, "4", "16Gi"), (2, "8", "64Gi"), (4, "16", "128Gi"), (8, "32", "256Gi"))


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of a stream of decisions: of their entries, and of what was kept of the snapshot beside them."""

    decisions: int
    entries: int
    whole: int
    changes: int

    def ratio(self, chain: int) -> float:
        """The log with what is kept, in the log without it, where ``chain`` decisions share a whole state."""
        return (self.entries + self.changes + self.whole * self.decisions / chain) / self.entries


class Stream:
    """Jobs that come and go, by one seed."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._number = 0
        self.now = _BEGIN

    def configuration(self) -> dict[str, Any]:
        """20 teams that share a cohort; the cluster is somewhat too small for all of them."""
        preemption = {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}
        quota = {"nvidia.com/gpu": {"guaranteed": 360}, "cpu": {"guaranteed": 2000}, "memory": {"guaranteed": "12Ti"}}
        teams = [
            {"name": f"team-{i}", "parent": "all", "quota": quota, "kueue": {"preemption": preemption}}
            for i in range(_TEAMS)
        ]
        return {"engine": "kueue", "queues": [{"name": "all", "kueue": {"role": "cohort"}}, *teams]}

    def job(self) -> dict[str, Any]:
        """One that waits."""
        self._number += 1
        gpus, cpu, memory = self._random.choice(_SHAPES)
        team = self._random.randrange(_TEAMS)
        what = self._random.choice(("train", "eval", "sweep", "notebook"))
        self.now += timedelta(milliseconds=self._random.randrange(2000))
        return {
            "id": f"team-{team}/job-{what}-{self._number}-{self._random.getrandbits(20):05x}",
            "uid": str(UUID(int=self._random.getrandbits(128), version=4)),
            "queue": f"team-{team}",
            "priority": self._random.choice((0, 0, 100, 1000)),
            "created_at": self._at(0),
            "tasks": [
                {
                    "name": "main",
                    "count": self._random.choice((1, 1, 1, 2, 4)),
                    "requests": {"nvidia.com/gpu": gpus, "cpu": cpu, "memory": memory},
                }
            ],
        }

    def running(self) -> dict[str, Any]:
        """One that has started."""
        job = self.job()
        (task,) = job["tasks"]
        task["flavors"] = dict.fromkeys(task["requests"], "default")
        return {**job, "started_at": self._at(self._random.randrange(1, 600))}

    def gone(self, ids: list[str]) -> list[str]:
        """Half as many as there are changes, any of ``ids``."""
        return self._random.sample(ids, _CHANGES // 2)

    def _at(self, seconds: float) -> str:
        return f"{self.now + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def entries(decisions: int, waiting_jobs: int) -> Iterator[Entry]:
    """The log's entries of a stream of ``decisions``."""
    of = Answerer(Compiled(None), SnapshotStore(budget=1 << 40, idle=1e9, clock=lambda: 0.0))
    stream, logged_states = Stream(), LoggedStates()
    jobs = [stream.running() for _ in range(_RUNNING)]
    waiting = [stream.job() for _ in range(waiting_jobs)]
    put = {"configuration": stream.configuration(), "state": {"workloads": jobs}}
    of.run(Inquiry(Operation.SNAPSHOT_PUT, stream.now, "prod"), json.dumps(put).encode())
    ids = [job["id"] for job in jobs]
    for number in range(decisions):
        body = json.dumps({"state": {"snapshot": "prod"}, "asks": waiting, "mode": "cycle", "explain": "summary"})
        reply = of.run(Inquiry(Operation.DECISION, stream.now, known=logged_states.known("prod")), body.encode())
        answered = reply.answered()
        facts = answered.facts
        logged_states.taken("prod", facts.state_digest, facts.configuration.digest, reply.documents)
        identity = UUID(int=number, version=4)
        yield Entry(
            identity, stream.now, body.encode(), answered, None, "token:scheduler", reply.documents,
            facts.state_digest, facts.configuration.digest,
        )  # fmt: skip
        gone, new = stream.gone(ids), [stream.running() for _ in range(_CHANGES // 2)]
        delta = {"generation": number + 1, "workloads": {"add": new, "remove": gone}}
        of.run(Inquiry(Operation.SNAPSHOT_DELTA, stream.now, "prod"), json.dumps(delta).encode())
        ids = [one for one in ids if one not in set(gone)] + [job["id"] for job in new]
        waiting = [*waiting[waiting_jobs // 4 :], *(stream.job() for _ in range(waiting_jobs // 4))]


def measured(decisions: int, waiting_jobs: int) -> Sizes:
    """The bytes of a stream of so many decisions, each on so many asks."""
    logged = whole = changes = 0
    for entry in entries(decisions, waiting_jobs):
        row = msgspec.json.decode(entry.row().columns)
        facts = {key: value for key, value in row.items() if key not in ("request", "answer")}
        facts["seconds"] = {"decode": 0.001, "compile": 0.001, "solve": 0.001, "encode": 0.001}
        logged += len(b64decode(row["request"])) + len(b64decode(row["answer"])) + len(json.dumps(facts, default=str))
        for document in entry.documents:
            size = len(squeezed(document).content) + 64
            if document.base is None:
                whole += size
            else:
                changes += size
    return Sizes(decisions, logged, whole, changes)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=50)
    parser.add_argument("--waiting", type=int, default=40)
    options = parser.parse_args()
    found = measured(options.decisions, options.waiting)
    each = found.decisions
    print(f"{each} decisions, {_CHANGES} changes between two, {_RUNNING} jobs run, {options.waiting} wait")
    print(f"  entries   {found.entries / each:9.0f} bytes a decision")
    print(f"  changes   {found.changes / each:9.0f} bytes a decision")
    print(f"  whole     {found.whole:9.0f} bytes once in {LONGEST} decisions")
    print(f"  ratio     {found.ratio(LONGEST):9.2f}")


if __name__ == "__main__":
    main()
