"""Manifests of a real system, pasted or chosen, as a configuration: what is found, what differs, then saved."""

import re
from typing import Annotated, get_args

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.configurations.service import NAME
from app.console.api import Json, Refused
from app.console.editing import offered
from app.console.visit import PageRoute, Visit, Visiting
from app.formats.exported import Format
from app.http.openapi import page

_FORMATS = get_args(Format)
Name = Annotated[str, Query(max_length=128)]

router = APIRouter(route_class=PageRoute)


@router.get("/import", **page(needs="admin"))
async def begin(visit: Visiting, name: Name = "") -> Response:
    """An empty form."""
    return _form(visit, {"name": name, "format": "kubernetes"}, None)


@router.post("/import", **page(needs="admin"))
async def read(visit: Visiting) -> Response:
    """Read the manifests; the configuration that they make is compared with what is stored, and may be saved."""
    fields = await visit.form()
    if re.fullmatch(NAME, fields.get("name", "")) is None:
        detail = "A name has letters, digits, dots, underscores and hyphens, and begins with a letter or digit."
        return _form(visit, fields, {"title": "Invalid input", "detail": detail, "errors": []})
    wanted = {"format": fields.get("format", "")}
    try:
        reply = await visit.api.call(
            "POST", "/v1/configurations:import", wanted, fields.get("manifest", "").encode(),
            {"Content-Type": "application/yaml"},
        )  # fmt: skip
        found: Json = reply.json()
        return await offered(visit, fields.get("name", ""), found["configuration"], found["findings"])
    except Refused as refused:
        return _form(visit, fields, refused.document)


def _form(visit: Visit, fields: dict[str, str], problem: Json | None) -> Response:
    status = 200 if problem is None else int(problem.get("status", 422))
    return visit.show("import.html", status, fields=fields, formats=_FORMATS, problem=problem)
