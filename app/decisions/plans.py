"""``POST /v1/plans``."""

from typing import Any

from fastapi import APIRouter, Request, Response

from app.answering.operations import Operation
from app.answering.plan_bodies import PlanAnswer, PlanRequest
from app.decisions.asking import ask
from app.decisions.examples import SITUATION
from app.http.body import Body
from app.http.openapi import operation
from app.http.responses import json_response

DOCUMENTED = (PlanRequest, PlanAnswer)

MANIFEST = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: embeddings
  labels: {kueue.x-k8s.io/queue-name: serving}
spec:
  parallelism: 2
  template:
    spec:
      containers:
        - name: main
          resources: {requests: {cpu: 3500m}}
"""
EXAMPLE: dict[str, Any] = {**SITUATION, "manifest": MANIFEST}

router = APIRouter(prefix="/v1", tags=["plans"])


@router.post(
    "/plans",
    operation_id="plan",
    summary="Would this work run, if it were submitted?",
    **operation(
        needs="decide",
        request=PlanRequest,
        responses={200: PlanAnswer},
        errors=(404, 409, 429, 503, 504),
        example=EXAMPLE,
    ),
)
async def plan(request: Request, body: Body) -> Response:
    """What the system would make of a manifest: whether it would run now and where, who would stop for it, what would
    let it in, and what each queue uses before and after. Nothing is stored, submitted or logged."""
    return json_response(await ask(request, Operation.PLAN, body))
