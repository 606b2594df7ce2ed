"""``POST /v1/comparisons``."""

from fastapi import APIRouter, Request, Response

from app.answering.comparison import Comparison, ComparisonRequest
from app.answering.operations import Operation
from app.decisions.asking import ask
from app.decisions.examples import DECISION
from app.http.body import Body
from app.http.openapi import operation
from app.http.responses import json_response

DOCUMENTED = (ComparisonRequest, Comparison)

EXAMPLE = {
    **DECISION,
    "variants": [{"name": "classical"}, {"name": "fair", "settings": {"kueue": {"fair_sharing": True}}}],
}

router = APIRouter(prefix="/v1", tags=["comparisons"])


@router.post(
    "/comparisons",
    operation_id="compare",
    summary="The same asks under several rule books",
    **operation(
        needs="decide",
        request=ComparisonRequest,
        responses={200: Comparison},
        errors=(404, 409, 429, 503, 504),
        example=EXAMPLE,
    ),
)
async def compare(request: Request, body: Body) -> Response:
    """One answer for each variant of engine, settings or configuration, and where they differ."""
    return json_response(await ask(request, Operation.COMPARISON, body))
