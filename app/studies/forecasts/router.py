"""``/v1/forecasts``: when will it start."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Request, Response

from app.answering.answers import encode
from app.http.body import Body
from app.http.openapi import operation
from app.http.pages import Cursor, Limit
from app.http.responses import json_response
from app.http.services import service
from app.studies.forecasts.examples import FORECAST
from app.studies.forecasts.schemas import Forecast, ForecastPage, ForecastRequest
from app.studies.forecasts.service import Forecasts
from app.workers.offload import Offload

DOCUMENTED = (ForecastRequest, Forecast, ForecastPage)
_READ = (404, 422, 503)

router = APIRouter(prefix="/v1/forecasts", tags=["simulations"])


async def _service(request: Request) -> Forecasts:
    return service(request, Forecasts)


Service = Annotated[Forecasts, Depends(_service)]
Id = Annotated[UUID, Path(description="`id` of a forecast")]


@router.post(
    "",
    operation_id="forecast",
    summary="When will it start?",
    **operation(
        needs="decide",
        request=ForecastRequest,
        responses={202: Forecast},
        errors=(404, 409, 429, 503, 504),
        example=FORECAST,
    ),
)
async def forecast(request: Request, body: Body, forecasts: Service) -> Response:
    """Accepted at once, made by a worker: what waits and what runs is played on, round by round, until every ask has
    started; then again under each variant. `Location` is where to look."""
    made = await service(request, Offload).run("large", forecasts.start, body)
    return json_response(encode(made), 202, {"Location": f"/v1/forecasts/{made.id}"})


@router.get(
    "",
    operation_id="list_forecasts",
    summary="Forecasts, newest first",
    **operation(needs="read", responses={200: ForecastPage}, errors=(503,)),
)
def list_forecasts(forecasts: Service, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Without asks."""
    return json_response(encode(forecasts.page(cursor, limit)))


@router.get(
    "/{id}",
    operation_id="get_forecast",
    summary="Status and, once done, the first start of each ask",
    **operation(needs="read", responses={200: Forecast}, errors=_READ),
)
def get_forecast(id: Id, forecasts: Service) -> Response:  # noqa: A002
    """When each ask first starts, what it waits for until then, and how each variant moves that."""
    return json_response(encode(forecasts.get(id)))


@router.delete(
    "/{id}",
    operation_id="delete_forecast",
    summary="Stop it, or forget it",
    **operation(needs="decide", responses={204: None}, errors=_READ),
)
def delete_forecast(id: Id, forecasts: Service) -> Response:  # noqa: A002
    """One that waits or runs is `cancelled` and stops within 2 s; one that has ended is forgotten."""
    forecasts.stop(id)
    return Response(status_code=204)
