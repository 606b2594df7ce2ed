"""``GET /v1/rules``: the catalogue of rules, from what the engines state."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.http.openapi import operation
from app.http.responses import json_response
from app.solver.engine import ENGINES, all_facts, engine_of
from app.solver.model.base import Wire
from app.solver.model.configuration import EngineName
from app.solver.model.problems import Rule


class CataloguedRule(Rule, frozen=True, kw_only=True):
    """A rule with the engine whose rule it is; the same id may mean something else in another engine."""

    engine: EngineName
    """Whose rule it is."""


class Catalogue(Wire, frozen=True, kw_only=True):
    """Every rule, by engine and id."""

    rules: list[CataloguedRule]
    """By engine and id."""


def catalogue(engine: EngineName | None = None) -> Catalogue:
    """The rules of ``engine``, else of all, by engine and id."""
    return Catalogue(
        rules=[
            CataloguedRule(engine=name, rule=rule.rule, sentence=rule.sentence, source=rule.source)
            for name in ENGINES
            if engine in (None, name)
            for rule in sorted(engine_of(name).rules, key=lambda rule: rule.rule)
        ]
    )


def page() -> str:
    """The catalogue as docs/rules.md has it."""
    parts = [
        "# Rules\n\nWhat the ids in explanations mean; `GET /v1/rules` serves the same.\n"
        "Written by `make openapi` from the engines' catalogues.\n"
    ]
    for facts in all_facts():
        rows = [f"| `{rule.rule}` | {rule.sentence} | {rule.source} |" for rule in catalogue(facts.name).rules]
        parts.append("\n".join([f"\n## {facts.title}\n", "| rule | says | source |", "| --- | --- | --- |", *rows, ""]))
    return "".join(parts)


DOCUMENTED = (Catalogue,)

router = APIRouter(prefix="/v1")


@router.get(
    "/rules",
    operation_id="list_rules",
    tags=["decisions"],
    summary="What the rules in explanations mean",
    **operation(needs="read", responses={200: Catalogue}),
)
async def rules(
    engine: Annotated[EngineName | None, Query(description="only those of this engine")] = None,
) -> Response:
    """Every rule id that explanations name: one sentence, and where the real system says so."""
    return json_response(catalogue(engine))
