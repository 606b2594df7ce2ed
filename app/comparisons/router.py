"""``POST /v1/comparisons``."""

from fastapi import APIRouter, Request, Response

from app.decisions.service import Decider
from app.http.body import Body
from app.http.responses import json_response

router = APIRouter(prefix="/v1", tags=["comparisons"])


@router.post("/comparisons", operation_id="compare", summary="The same asks under several rule books")
def compare_variants(request: Request, body: Body) -> Response:
    """One answer for each variant of engine, settings or configuration, and where they differ."""
    decider: Decider = request.app.state.decider
    return json_response(decider.ask("comparisons", body))
