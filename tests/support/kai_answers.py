"""Answers of KAI's engine that tests compare with, part by part, and a configuration that protects who is young."""

import json
from typing import Any

from tests.support.live import ROOT

ANSWERS: dict[str, Any] = json.loads((ROOT / "tests/unit/solver/engines/kai/report/answers.json").read_text())
PROTECTED: dict[str, Any] = {
    "engine": "kai",
    "queues": [
        {"name": "top", "quota": {"cpu": {"guaranteed": 8}}},
        {"name": "a", "parent": "top", "quota": {"cpu": {"guaranteed": 4}}, "kai": {"reclaim_min_runtime": "10m"}},
        {"name": "b", "parent": "top", "quota": {"cpu": {"guaranteed": 4}}},
    ],
}
