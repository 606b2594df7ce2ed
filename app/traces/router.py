"""``/v1/traces``: what happened on a cluster, stored once, played as often as wanted."""

from typing import Annotated, Any, get_args

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from starlette.responses import StreamingResponse

from app.answering.answers import encode
from app.base.identifiers import NAME
from app.http.body import Files
from app.http.openapi import NDJSON, Content, lines, operation
from app.http.parameters import Conditions, Cursor, Limit, decode_cursor, encode_cursor
from app.http.responses import json_response
from app.http.routing import service
from app.simulations.schemas import Change, Job
from app.traces.ingest import COLUMNS
from app.traces.mapping import DEFAULTS, Format, Mapping
from app.traces.schemas import TraceFormat, TraceFormats, TracePage, TraceSummary
from app.traces.service import Traces, etag
from app.workers.dispatcher import Offload

TRACE: list[dict[str, Any]] = [
    {
        "ask": {
            "id": "train-1",
            "queue": "team-a",
            "priority": 10,
            "tasks": [{"name": "main", "requests": {"cpu": 6}}],
        },
        "submitted_at": 0,
        "duration": 3600,
    },
    {
        "ask": {
            "id": "serve-1",
            "queue": "team-b",
            "priority": 50,
            "tasks": [{"name": "main", "requests": {"cpu": 8}}],
        },
        "submitted_at": 600,
        "duration": "30m",
        "checkpoint": {"every": "10m"},
    },
]
"""Two jobs, for the queues of the example configuration."""


DOCUMENTED = (Job, Change, Mapping, TraceSummary, TracePage, TraceFormats)

router = APIRouter(prefix="/v1", tags=["traces"])


async def _service(request: Request) -> Traces:
    return service(request, Traces)


Service = Annotated[Traces, Depends(_service)]
Name = Annotated[
    str,
    Path(
        pattern=NAME,
        description="Letters, digits, `.`, `_` and `-`",
        examples=["january"],
    ),
]
FormatOf = Annotated[
    Format, Query(alias="format", description="`swf`: Standard Workload Format 2.2; `ndjson`: a job or a change a line")
]
_LINES: Content = lines(Job, *TRACE)


@router.get(
    "/traces",
    operation_id="list_traces",
    summary="What is stored",
    **operation(needs="read", responses={200: TracePage}, errors=(503,)),
)
def list_traces(traces: Service, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Stored traces by name, without their lines."""
    after = str(decode_cursor(cursor, str)[0]) if cursor else None
    found = traces.page(after, limit + 1)
    more = encode_cursor(found[limit - 1].name) if len(found) > limit else None
    return json_response(encode(TracePage(items=found[:limit], next_cursor=more)))


@router.get(
    "/trace-formats",
    operation_id="list_trace_formats",
    summary="The formats that traces are read from",
    **operation(needs="read", responses={200: TraceFormats}),
)
async def list_trace_formats() -> Response:
    """The columns that a mapping can name, and the mapping of each format."""
    found = [
        TraceFormat(name=name, columns=list(COLUMNS.get(name, ())), mapping=DEFAULTS.get(name))
        for name in get_args(Format)
    ]
    return json_response(encode(TraceFormats(items=found)))


@router.put(
    "/traces/{name}",
    operation_id="put_trace",
    summary="Store a trace",
    **operation(
        needs="decide",
        request=_LINES,
        responses={200: TraceSummary, 201: TraceSummary},
        errors=(408, 412, 413, 415, 429, 503, 504),
        etag=True,
    ),
)
async def put_trace(
    name: Name,
    request: Request,
    files: Files,
    traces: Service,
    conditions: Conditions,
    form: FormatOf = "ndjson",
) -> Response:
    """The body is the trace, or `multipart/form-data`: `trace` and `mapping`; for Alibaba's format `pods`, `nodes` and
    `mapping`. A mapping is JSON or YAML and says which columns become queue, priority and resources. Files may be
    gzip. What is wrong is named by line, and then nothing is stored."""
    stored = await service(request, Offload).run("large", traces.put, name, form, files, conditions)
    headers = {"ETag": stored.etag, "Location": f"/v1/traces/{name}"}
    return json_response(stored.summary, 200 if stored.replaced else 201, headers)


@router.get(
    "/traces/{name}",
    operation_id="get_trace",
    summary="The lines of a trace",
    **operation(needs="read", responses={200: _LINES, 304: None}, errors=(404, 503), etag=True),
)
def get_trace(name: Name, traces: Service, conditions: Conditions) -> Response:
    """Changes and jobs, one a line, in the order in which they were sent."""
    trace, summary = traces.get(name)
    headers = {"ETag": etag(summary)}
    if conditions.not_modified(etag(summary)):
        return Response(status_code=304, headers=headers)
    return StreamingResponse(traces.lines(trace), media_type=NDJSON, headers=headers)


@router.get(
    "/traces/{name}/summary",
    operation_id="get_trace_summary",
    summary="What a trace has",
    **operation(needs="read", responses={200: TraceSummary}, errors=(404, 503), etag=True),
)
def get_trace_summary(name: Name, traces: Service) -> Response:
    """Jobs, queues and their work, the configuration that the mapping makes of it, and which lines were left out or
    taken otherwise than they stand."""
    summary = traces.summary(name)
    return json_response(encode(summary), headers={"ETag": etag(summary)})


@router.delete(
    "/traces/{name}",
    operation_id="delete_trace",
    summary="Forget a trace",
    **operation(needs="decide", responses={204: None}, errors=(404, 412, 503)),
)
def delete_trace(name: Name, traces: Service, conditions: Conditions) -> Response:
    """Simulations of it keep what they need."""
    traces.delete(name, conditions)
    return Response(status_code=204)
