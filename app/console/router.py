"""Every page of the console."""

from fastapi import APIRouter

from app.console import (
    ask,
    clusters,
    configurations,
    decision,
    editing,
    events,
    importing,
    log,
    overview,
    pictures,
    provider,
    queues,
    quotas,
    sign_in,
    simulations,
)

router = APIRouter()
for part in (
    sign_in,
    provider,
    overview,
    events,
    queues,
    decision,
    log,
    ask,
    configurations,
    editing,
    simulations,
    pictures,
    quotas,
    importing,
    clusters,
):
    router.include_router(part.router)
