"""Every page of the console, and what browsers are told where nothing is."""

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.console.ask import router as ask_pages
from app.console.configurations import configurations_pages, editing_pages, importing_pages
from app.console.decisions import clusters_pages, decision_pages, log_pages
from app.console.exposures import exposures_pages
from app.console.finding import finding_pages
from app.console.overview import changes_pages, overview_pages
from app.console.planning import planning_pages
from app.console.queues import queues_pages
from app.console.quotas import quotas_pages
from app.console.sign_in import provider_pages, sign_in_pages
from app.console.simulations import pictures_pages, simulations_pages
from app.console.visit import Visit, failure
from app.http.responses import http_exception
from app.http.routing import Operations, is_for_people

router = APIRouter()
for part in (
    sign_in_pages,
    provider_pages,
    overview_pages,
    changes_pages,
    queues_pages,
    decision_pages,
    log_pages,
    finding_pages,
    exposures_pages,
    ask_pages,
    planning_pages,
    configurations_pages,
    editing_pages,
    simulations_pages,
    pictures_pages,
    quotas_pages,
    importing_pages,
    clusters_pages,
):
    router.routes += part.routes


def install(app: FastAPI) -> None:
    """Answer browsers too where no operation is found."""
    app.add_exception_handler(HTTPException, _answer)


async def _answer(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    operations: Operations = request.app.state.operations
    if not is_for_people(request.scope, operations.found(request.scope)):
        return await http_exception(request, error)
    detail = f"No page is at {request.url.path[:200]}: the link is old, or mistyped."
    document: dict[str, Any] = {"title": HTTPStatus(error.status_code).phrase, "detail": detail, "errors": []}
    return failure(Visit(request), error.status_code, document)
