"""Every page of the console."""

from fastapi import APIRouter

from app.console.ask import router as ask
from app.console.clusters import router as clusters
from app.console.configurations import router as configurations
from app.console.decision import router as decision
from app.console.editing import router as editing
from app.console.events import router as events
from app.console.importing import router as importing
from app.console.log import router as log
from app.console.overview import router as overview
from app.console.pictures import router as pictures
from app.console.provider import router as provider
from app.console.queues import router as queues
from app.console.quotas import router as quotas
from app.console.sign_in import router as sign_in
from app.console.simulations import router as simulations

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
    router.include_router(part)
