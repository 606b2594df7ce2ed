"""Every page of the console."""

from fastapi import APIRouter

from app.console import (
    ask,
    configurations,
    decision,
    editing,
    events,
    log,
    overview,
    provider,
    queues,
    sign_in,
    simulations,
)  # fmt: skip

router = APIRouter()
for part in (sign_in, provider, overview, events, queues, decision, log, ask, configurations, editing, simulations):
    router.include_router(part.router)
