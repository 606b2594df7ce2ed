"""Whose rules hold is a setting of every engine: the one that is meant by its name too, and none that there is not."""

from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from app.solver import solve
from app.solver.engine import Facts, all_facts
from app.solver.model.configuration import Configuration, Settings

RELEASES = [(facts, release) for facts in all_facts() for release in facts.releases]


def configuration(facts: Facts, **settings: Any) -> Configuration:
    document: Any = {"engine": facts.name, "settings": {facts.block: settings}}
    return msgspec.convert(document | {"queues": [{"name": facts.root.name if facts.root else "a"}]}, Configuration)


@pytest.mark.parametrize(("facts", "release"), RELEASES)
def test_the_release_is_known_by_its_name_and_told(facts: Facts, release: str) -> None:
    named = solve.configure(configuration(facts, release=release))
    assert solve.effective_settings(named, None)["settings"]["release"] == release


@pytest.mark.parametrize("facts", all_facts())
def test_without_a_name_it_is_the_oldest_so_that_what_is_stored_keeps_its_meaning(facts: Facts) -> None:
    plain, named = (configuration(facts, **given) for given in ({}, {"release": next(iter(facts.releases))}))
    assert solve.configure(plain).used.digest == solve.configure(named).used.digest


@pytest.mark.parametrize("facts", all_facts())
def test_no_other_release_is_taken(facts: Facts) -> None:
    """The facts name exactly what the wire takes."""
    shape = get_type_hints(get_args(get_type_hints(Settings)[facts.block])[0])["release"]
    assert get_args(shape) == tuple(facts.releases)
    with pytest.raises(msgspec.ValidationError, match=rf"\$\.settings\.{facts.block}\.release"):
        configuration(facts, release="0.1")
