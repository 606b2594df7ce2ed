"""Answers of KAI's engine that tests compare with, part by part."""

import json
from typing import Any

from tests.support.live import ROOT

ANSWERS: dict[str, Any] = json.loads((ROOT / "tests/unit/solver/engines/kai/report/answers.json").read_text())
