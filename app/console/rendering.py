"""Templates: everything is escaped and nothing is inline. What a document of the API leaves out counts as not there."""

from functools import cache
from pathlib import Path
from typing import Any, cast

from jinja2 import ChainableUndefined, Environment, FileSystemLoader
from starlette.responses import HTMLResponse

from app.console import words
from app.http.assets import address
from app.http.policy import HEADERS


@cache
def environment() -> Environment:
    """The templates, compiled once."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True, undefined=ChainableUndefined, trim_blocks=True, lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    cast(dict[str, Any], made.globals)["asset"] = address
    made.filters.update(
        amount=words.amount, amounts=words.amounts, moment=words.moment, pretty=words.pretty, compact=words.compact,
        told=words.told, span=words.seconds,
    )  # fmt: skip
    return made


def rendered(template: str, values: dict[str, Any], status: int = 200) -> HTMLResponse:
    """A page."""
    return HTMLResponse(environment().get_template(template).render(values), status, HEADERS)
