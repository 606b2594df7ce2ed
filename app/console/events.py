"""What has happened, as server-sent events: one look at a topic serves every open page, and nobody looks for nobody."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from app.console.api import Api
from app.console.listeners import EVERY_SECONDS, TOPICS, Listeners
from app.console.visit import PageRoute, Visiting
from app.http.openapi import page
from app.http.policy import HEADERS
from app.http.services import service

_LONGEST_SECONDS = 600.0
_MEDIA = "text/event-stream"

router = APIRouter(route_class=PageRoute)


@router.get("/events", **page(needs="read"))
async def events(visit: Visiting, topics: Annotated[str, Query(max_length=64)] = "decisions") -> Response:
    """An event of a topic's name whenever something has happened there, for ten minutes; browsers then come again."""
    if visit.request.method == "HEAD":
        return Response(headers=HEADERS, media_type=_MEDIA)
    wanted = [topic for topic in dict.fromkeys(topics.split(",")) if topic in TOPICS]
    listeners = service(visit.request, Listeners)
    listeners.join()
    try:
        known = {topic: await listeners.mark(topic, visit.api) for topic in wanted}
    except BaseException:
        listeners.leave()
        raise
    return StreamingResponse(_told(visit.api, listeners, known), headers=HEADERS, media_type=_MEDIA)


async def _told(api: Api, listeners: Listeners, known: dict[str, str]) -> AsyncGenerator[bytes]:
    """What differs from ``known``, the marks of the topics when the page began to listen."""
    try:
        yield b"retry: 5000\n\n"
        end = asyncio.get_running_loop().time() + _LONGEST_SECONDS
        while asyncio.get_running_loop().time() < end:
            await asyncio.sleep(EVERY_SECONDS)
            for topic, before in known.items():
                known[topic] = await listeners.mark(topic, api)
                if known[topic] != before:
                    yield b"event: %b\ndata: new\n\n" % topic.encode()
            yield b": here\n\n"
    finally:
        listeners.leave()
