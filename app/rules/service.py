"""The catalogue, from what the engines state."""

from app.rules.schemas import Catalogue, CataloguedRule
from app.solver.model.configuration import EngineName
from app.solver.registry import ENGINES, engine_of

_TITLES: dict[EngineName, str] = {
    "kueue": "Kueue",
    "yunikorn": "YuniKorn",
    "kai": "KAI Scheduler",
    "ytsaurus": "YTsaurus",
}


def catalogue(engine: EngineName | None = None) -> Catalogue:
    """The rules of ``engine``, else of all, by engine and id."""
    return Catalogue(
        rules=[
            CataloguedRule(engine=name, rule=rule.rule, sentence=rule.sentence, source=rule.source)
            for name in _TITLES
            if engine in (None, name)
            for rule in sorted(engine_of(name).rules, key=lambda rule: rule.rule)
        ]
    )


def page() -> str:
    """The catalogue as docs/rules.md has it."""
    assert set(_TITLES) == set(ENGINES)
    parts = [
        "# Rules\n\nWhat the ids in explanations mean; `GET /v1/rules` serves the same.\n"
        "Written by `make openapi` from the engines' catalogues.\n"
    ]
    for name, title in _TITLES.items():
        rows = [f"| `{rule.rule}` | {rule.sentence} | {rule.source} |" for rule in catalogue(name).rules]
        parts.append("\n".join([f"\n## {title}\n", "| rule | says | source |", "| --- | --- | --- |", *rows, ""]))
    return "".join(parts)
