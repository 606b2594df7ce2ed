"""``GET /v1/rules``."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.http.openapi import operation
from app.http.responses import json_response
from app.rules.schemas import Catalogue
from app.rules.service import catalogue
from app.solver.model.configuration import EngineName

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
