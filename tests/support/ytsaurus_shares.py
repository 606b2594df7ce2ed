"""What tests of ytsaurus shares share with those beside them."""

from typing import Any

import msgspec

from app.solver import solve
from app.solver.engines.ytsaurus.guarantees import Update
from app.solver.engines.ytsaurus.situation import Situation, situate
from app.solver.model.configuration import Configuration
from app.solver.model.request import SharesRequest

Json = dict[str, Any]


MINUTE = Update(now=60_000_000, last=0)


def situation(body: Json) -> Situation:
    asked = msgspec.convert(body, SharesRequest)
    assert isinstance(asked.configuration, Configuration)
    loaded = solve.load(solve.configure(asked.configuration, asked.engine), asked.state)
    return situate(loaded.compiled, asked.asks)
