"""What has happened, as server-sent events: one look at the log serves every open page, and nobody looks for nobody."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from app.console.api import Api
from app.console.listeners import EVERY_SECONDS, Listeners
from app.console.visit import PageRoute, Visiting
from app.http.openapi import page
from app.http.policy import HEADERS
from app.http.services import service

_LONGEST_SECONDS = 600.0

router = APIRouter(route_class=PageRoute)


@router.get("/events", **page(needs="read"))
async def events(visit: Visiting, topics: Annotated[str, Query(max_length=64)] = "decisions") -> Response:
    """A line whenever the log has grown, for ten minutes; browsers then come again."""
    del topics  # there is one so far; pages say what they want, so that others can be added
    if visit.request.method == "HEAD":
        return Response(headers=HEADERS, media_type="text/event-stream")
    listeners = service(visit.request, Listeners)
    listeners.join()
    return StreamingResponse(_told(visit.api, listeners), headers=HEADERS, media_type="text/event-stream")


async def _told(api: Api, listeners: Listeners) -> AsyncGenerator[bytes]:
    try:
        known = await listeners.newest(api)
        yield b"retry: 5000\n\n"
        end = asyncio.get_running_loop().time() + _LONGEST_SECONDS
        while asyncio.get_running_loop().time() < end:
            await asyncio.sleep(EVERY_SECONDS)
            newest = await listeners.newest(api)
            yield b": here\n\n" if newest == known else b"event: decisions\ndata: new\n\n"
            known = newest
    finally:
        listeners.leave()
