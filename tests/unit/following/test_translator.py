"""Translating what changed gives what translating everything does."""

from collections import Counter
from typing import Any

import pytest

from app.following import grouped, translator
from app.following.translating import translate
from app.following.translator import Translator
from app.formats.documents.reader import MOST_ALIKE
from app.solver.model.configuration import EngineName
from tests.changing import World

ENGINES: tuple[EngineName, ...] = ("kueue", "kai", "yunikorn")
PARTS = ("configuration", "nodes", "workloads", "asks", "local_queues", "classes")


@pytest.mark.parametrize("engine", ENGINES)
def test_any_sequence_of_changes_is_translated_as_if_all_were_read(engine: EngineName, monkeypatch: Any) -> None:
    world, following = World(engine, 20261122), Translator(engine)
    read: Counter[bool] = Counter()
    compared = 0

    def counted(engine: EngineName, view: Any, *more: Any) -> Any:
        some = len(view.items["Workload"]) < 20 if engine == "kueue" else len(more) == 3
        read[some] += 1
        return translate(engine, view, *more)

    monkeypatch.setattr(translator, "_OLD_SECONDS", -1.0)  # cut findings are whole again with the next translation
    for module in (translator, grouped):
        monkeypatch.setattr(module, "translate", counted)
    for step in range(400):
        world.change()
        if step % 50 == 49:
            world.reconfigure()
        if step % 3:
            continue
        view = world.seen()
        found, wanted = following.translate(view), translate(engine, view)
        for part in PARTS:
            assert getattr(found, part) == getattr(wanted, part), (step, part)
        if max(len(wanted.findings), len(found.findings)) < MOST_ALIKE:
            compared += 1
            assert told(found) == told(wanted), step
    assert compared > 20
    assert read[True] > 100, "what did not change was read again"


def told(found: Any) -> list[str]:
    """What was found; whichever pod a dynamic queue is told of for."""
    shown = [(one.rule, one.detail, "" if one.rule == "dynamic-queue" else one.pointer) for one in found.findings]
    return sorted(map(str, shown))
