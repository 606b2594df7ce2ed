"""``/v1/backtests``: the decision log again, under other configurations."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Request, Response
from starlette.responses import StreamingResponse

from app.answering.answers import encode
from app.http.body import Body
from app.http.openapi import NDJSON, lines, operation
from app.http.pages import Cursor, Limit
from app.http.responses import json_response
from app.http.services import service
from app.jobs.parameters import First, Most, Which
from app.studies.backtests.examples import BACKTEST
from app.studies.backtests.schemas import Backtest, BacktestPage, BacktestRequest, DecisionDiffers
from app.studies.backtests.service import Backtests
from app.workers.offload import Offload

DOCUMENTED = (BacktestRequest, Backtest, BacktestPage, DecisionDiffers)
_READ = (404, 422, 503)

router = APIRouter(prefix="/v1/backtests", tags=["simulations"])


async def _service(request: Request) -> Backtests:
    return service(request, Backtests)


Service = Annotated[Backtests, Depends(_service)]
Id = Annotated[UUID, Path(description="`id` of a backtest")]


@router.post(
    "",
    operation_id="backtest",
    summary="Decide the log again, under other configurations",
    **operation(
        needs="decide",
        request=BacktestRequest,
        responses={202: Backtest},
        errors=(404, 429, 503, 504),
        example=BACKTEST,
    ),
)
async def backtest(request: Request, body: Body, backtests: Service) -> Response:
    """Accepted at once, made by a worker: every logged request of the range is decided again under each variant, on the
    state and for the time that it was decided on. `Location` is where to look."""
    made = await service(request, Offload).run("large", backtests.start, body)
    return json_response(encode(made), 202, {"Location": f"/v1/backtests/{made.id}"})


@router.get(
    "",
    operation_id="list_backtests",
    summary="Backtests, newest first",
    **operation(needs="read", responses={200: BacktestPage}, errors=(503,)),
)
def list_backtests(backtests: Service, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Without counts."""
    return json_response(encode(backtests.page(cursor, limit)))


@router.get(
    "/{id}",
    operation_id="get_backtest",
    summary="Status, progress and, once done, counts by variant",
    **operation(needs="read", responses={200: Backtest}, errors=_READ),
)
def get_backtest(id: Id, backtests: Service) -> Response:  # noqa: A002
    """How many decisions each variant makes as they were logged, how many otherwise, and what they come to."""
    return json_response(encode(backtests.get(id)))


@router.delete(
    "/{id}",
    operation_id="delete_backtest",
    summary="Stop it, or forget it",
    **operation(needs="decide", responses={204: None}, errors=_READ),
)
def delete_backtest(id: Id, backtests: Service) -> Response:  # noqa: A002
    """One that waits or runs is `cancelled` and stops within 2 s; one that has ended is forgotten with its results."""
    backtests.stop(id)
    return Response(status_code=204)


@router.get(
    "/{id}/differences",
    operation_id="list_backtest_differences",
    summary="Every decision that differs",
    **operation(needs="read", responses={200: lines(DecisionDiffers)}, errors=_READ),
)
def differences(
    id: Id,  # noqa: A002
    backtests: Service,
    variant: Which = None,
    first: First = 0,
    limit: Most = None,
) -> Response:
    """One line a decision that the variant makes otherwise or refuses, oldest first, as far as it has come."""
    return StreamingResponse(backtests.differences(id, variant, first, limit), media_type=NDJSON)
