"""What kube-scheduler is answered, and what is counted of every question, answered or not."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import Counter

from app.base.errors import BadInput, BadRequest, DeadlinePassed, NotFound, TooManyRequests, Unavailable
from app.decisions import guard
from app.decisions.service import Decider
from app.http.protocol import ENDED
from app.metrics import Metrics
from app.solver.model.problems import InvalidInput
from app.workers.dispatcher import Offload
from tests.support.instead import Instead


class Wired:
    """Stands for what the app is wired with; ``error``: what asking raises."""

    def __init__(self, error: Exception | None = None, *, in_log: bool = False) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.counter = Counter("asked", "Questions.", ["outcome"], registry=None)
        self._error, self._in_log = error, in_log

    def __call__(self, request: Any, kind: type[Any]) -> Any:
        decider = SimpleNamespace(guard="guard", acknowledged=self._acknowledged)
        found = {Decider: decider, Offload: self, Metrics: SimpleNamespace(extender=self.counter)}
        return found[cast("Any", kind)]

    async def run(self, *asked: Any) -> str:
        self.asked.append(asked)
        if self._error is not None and not self._in_log:
            raise self._error
        return "decided"

    async def _acknowledged(self, decided: str) -> bytes:
        assert decided == "decided"
        if self._error is not None:
            raise self._error
        return b'{"NodeNameToMetaVictims":{}}'

    @property
    def counted(self) -> dict[str, float]:
        (family,) = self.counter.collect()
        return {one.labels["outcome"]: one.value for one in family.samples if one.name == "asked_total"}


def ask(wired: Wired, snapshot: str | None = None, *, gone: bool = False, scope: Any = None) -> Any:
    async def disconnected() -> bool:
        return gone

    request = cast("Any", SimpleNamespace(is_disconnected=disconnected, scope=scope or {}))
    return asyncio.run(guard.guard_preemption("prod", request, b"body", snapshot))


def test_the_snapshot_is_that_of_the_same_name_unless_another_is_named(instead: Instead) -> None:
    wired = Wired()
    instead(guard, service=wired)
    answer = ask(wired)
    assert (answer.status_code, answer.body) == (200, b'{"NodeNameToMetaVictims":{}}')
    ask(wired, "other")
    assert wired.asked == [("snapshot", "guard", "prod", name, b"body") for name in ("prod", "other")]
    assert wired.counted == {"answered": 2}
    ask(wired, gone=True)
    assert wired.counted == {"answered": 2, "late": 1}
    ask(wired, scope={ENDED: True})
    assert wired.counted == {"answered": 2, "late": 2}, "who says no more has hung up, if not all at once"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NotFound("no"), "not_found"), (DeadlinePassed(1), "late"), (Unavailable("away"), "unavailable"),
        (TooManyRequests("full"), "unavailable"), (BadRequest("what"), "refused"), (BadInput([]), "refused"),
        (InvalidInput([]), "invalid"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("in_log", [False, True])
def test_what_is_not_answered_is_counted_once_by_why(
    error: Exception, outcome: str, in_log: bool, instead: Instead
) -> None:
    wired = Wired(error, in_log=in_log)
    instead(guard, service=wired)
    with pytest.raises(type(error)):
        ask(wired)
    assert wired.counted == {outcome: 1}
