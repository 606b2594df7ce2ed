"""Whose rules hold is a setting of every engine: the one that is meant by its name too, and none that there is not."""

from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.model.configuration import Configuration

RELEASES = [
    ("kueue", "ff69552e"),
    ("yunikorn", "be3bb487"),
    ("kai", "0.13"),
    ("ytsaurus", "2026"),
    ("kube-scheduler", "1.37"),
]


def configuration(engine: str, **settings: Any) -> Configuration:
    name = "root" if engine == "yunikorn" else "a"
    return msgspec.convert(
        {"engine": engine, "settings": {engine.replace("-", "_"): settings}, "queues": [{"name": name}]}, Configuration
    )


@pytest.mark.parametrize(("engine", "release"), RELEASES)
def test_the_release_is_known_by_its_name_and_told(engine: str, release: str) -> None:
    plain, named = (solve.configure(configuration(engine, **given)) for given in ({}, {"release": release}))
    for configured in (plain, named):
        assert solve.effective_settings(configured, None)["settings"]["release"] == release
    assert plain.used.digest == named.used.digest


@pytest.mark.parametrize("engine", [engine for engine, _ in RELEASES])
def test_no_other_release_is_taken(engine: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=rf"\$\.settings\.{engine.replace('-', '_')}\.release"):
        configuration(engine, release="0.1")
