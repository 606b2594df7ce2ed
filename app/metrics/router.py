"""``GET /metrics``."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from app.http.openapi import operation
from app.http.services import service
from app.metrics import Metrics

router = APIRouter(tags=["operations"])


@router.get(
    "/metrics",
    operation_id="get_metrics",
    summary="Prometheus metrics",
    response_class=PlainTextResponse,
    **operation(needs="read", responses={200: {"text/plain": {"schema": {"type": "string"}}}}),
)
def metrics(request: Request) -> Response:
    """Counters and latency histograms in Prometheus' text format."""
    return Response(service(request, Metrics).text(), media_type=CONTENT_TYPE_LATEST)
