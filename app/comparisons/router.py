"""``POST /v1/comparisons``."""

from fastapi import APIRouter, Request, Response

from app.comparisons.schemas import Comparison, ComparisonRequest
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
    state = request.app.state
    return json_response(await state.offload.run(state.front.class_of(body), state.decider.ask, "comparisons", body))
