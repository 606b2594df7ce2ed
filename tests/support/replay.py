"""Replay recorded decisions without HTTP: ``python -m tests.support.replay kueue/classic.jsonl.gz [--limit N]``.

Files are looked up below ../shared/vectors. Uses that folder's comparison, so that both say the same.
"""

import argparse
import gzip
import importlib.util
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from app.solver import solve
from app.solver.model.base import micros
from app.solver.model.request import DecisionRequest, EffectiveSettingsRequest, PreemptibilityRequest, SharesRequest
from app.solver.question import ProtectionQuestion, Question

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors"
_SHAPES: dict[str, Any] = {
    "/v1/decisions": DecisionRequest,
    "/v1/shares": SharesRequest,
    "/v1/preemptibility": PreemptibilityRequest,
    "/v1/effective-settings": EffectiveSettingsRequest,
}


def answer(path: str, body: bytes) -> Any:
    """The answer to a request body, as parsed JSON."""
    request = msgspec.json.decode(body, type=_SHAPES[path])
    configured = solve.configure(request.configuration, request.engine)
    if isinstance(request, EffectiveSettingsRequest):
        return json.loads(msgspec.json.encode(solve.effective_settings(configured, request.state)))
    loaded = solve.load(configured, request.state)
    now = micros(request.now) if request.now else 0
    if isinstance(request, DecisionRequest):
        question = Question(now, request.asks, request.mode, request.options, request.explain)
        return json.loads(msgspec.json.encode(solve.decide(loaded, question)))
    if isinstance(request, SharesRequest):
        return json.loads(msgspec.json.encode(solve.shares(loaded, request.asks, now, request.options)))
    protection = ProtectionQuestion(now, request.asks, request.ask, request.action, request.evict)
    return json.loads(msgspec.json.encode(solve.preemptibility(loaded, protection)))


def _compare() -> Any:
    spec = importlib.util.spec_from_file_location("check", VECTORS / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--only", help="id of one vector")
    parser.add_argument("--show", type=int, default=3)
    options = parser.parse_args()
    compare, wrong_everywhere = _compare(), 0
    for name in options.files:
        file = VECTORS / name
        with gzip.open(file, "rt") as lines:
            vectors = [json.loads(line) for line in lines]
        if options.only:
            vectors = [v for v in vectors if v["id"] == options.only]
        vectors = vectors[: options.limit]
        wrong: list[tuple[str, list[str]]] = []
        begun = time.perf_counter()
        for vector in vectors:
            try:
                got = answer(vector.get("path", "/v1/decisions"), json.dumps(vector["request"]).encode())
                found = compare.failures(vector, got)
            except Exception as error:
                found = [f"{type(error).__name__}: {error}"]
            if found:
                wrong.append((vector["id"], found))
        spent = time.perf_counter() - begun
        print(f"{name}: {len(vectors) - len(wrong)} of {len(vectors)} in {spent:.1f} s")  # noqa: T201
        for kind, count in Counter(found[0].split(":")[0] for _, found in wrong).most_common(4):
            print(f"    {count} x {kind}")  # noqa: T201
        for identity, found in wrong[: options.show]:
            print(f"  {identity}")  # noqa: T201
            for line in found[:4]:
                print(f"    {line}")  # noqa: T201
        wrong_everywhere += len(wrong)
    return 1 if wrong_everywhere else 0


if __name__ == "__main__":
    sys.exit(main())
