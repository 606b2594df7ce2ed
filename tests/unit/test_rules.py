"""The catalogue of rules: the same by HTTP and on paper."""

import re

import msgspec
import pytest

from app.decisions.router import catalogue, page
from app.solver.engine import ENGINES, engine_of


@pytest.mark.parametrize("engine", ENGINES)
def test_an_id_stands_once_in_its_engine_and_says_one_sentence(engine: str) -> None:
    rules = engine_of(engine).rules
    assert len({rule.rule for rule in rules}) == len(rules)
    for rule in rules:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", rule.rule), rule
        assert rule.sentence.endswith("."), rule
        assert rule.sentence[0].isupper(), rule
        assert rule.source, rule
        assert "|" not in rule.sentence + rule.source, rule


def test_the_catalogue_has_every_engine_in_order() -> None:
    everything = catalogue().rules
    assert [(rule.engine, rule.rule) for rule in everything] == [
        (name, rule.rule) for name in ENGINES for rule in sorted(engine_of(name).rules, key=lambda rule: rule.rule)
    ]
    assert {rule.engine for rule in catalogue("kai").rules} <= {"kai"}
    assert msgspec.to_builtins(catalogue("kai").rules) == [
        entry for entry in msgspec.to_builtins(everything) if entry["engine"] == "kai"
    ]


def test_the_page_lists_what_the_catalogue_has() -> None:
    assert re.findall(r"^\| `([^`]+)` \|", page(), re.MULTILINE) == [rule.rule for rule in catalogue().rules]


def test_the_page_has_a_table_for_each_engine() -> None:
    first = catalogue("kai").rules[0]
    titles = re.findall(r"\n\n## (.+)\n\n\| rule \| says \| source \|\n\| --- \| --- \| --- \|\n\| `", page())
    assert titles == ["Kueue", "YuniKorn", "KAI Scheduler", "YTsaurus", "kube-scheduler"]
    table = page().split("## KAI Scheduler\n")[1]
    assert table.splitlines()[3] == f"| `{first.rule}` | {first.sentence} | {first.source} |"
    assert page().startswith("# Rules\n")
