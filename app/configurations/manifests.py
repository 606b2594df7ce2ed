"""``POST /v1/configurations:import`` and ``GET /v1/configurations/{name}:export``: manifests of the real systems."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.answering.operations import Inquiry, Operation
from app.base.decoding import decode
from app.base.errors import BadInput, BadRequest
from app.configurations.repository import Revision
from app.configurations.router import ON_CURRENT, ON_REVISION, Name, Number, Service
from app.configurations.service import etag
from app.formats import ExportedManifest, ImportedManifest, export
from app.formats.exported import EXPORTS, YAML, ExportFormat, Format
from app.formats.ytsaurus.documents import MEDIA_TYPE as YSON
from app.http.body import MANIFESTS, Manifest
from app.http.openapi import Conditions, Preconditions, operation, reference
from app.http.responses import json_response
from app.http.routing import service
from app.solver.engines import FIRST
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Problem, listed
from app.workers.dispatcher import Dispatcher, Offload

DOCUMENTED = (ImportedManifest, ExportedManifest)

EXAMPLE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-a}
spec:
  cohortName: all
  resourceGroups:
    - coveredResources: [cpu]
      flavors: [{name: default, resources: [{name: cpu, nominalQuota: 8}]}]
  preemption: {withinClusterQueue: LowerPriority}
"""
_FLAVORS = [{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "default"}}]
_MANIFEST: dict[str, dict[str, Any]] = {
    MANIFESTS[0]: {"schema": {"type": "string"}, "example": EXAMPLE},
    MANIFESTS[1]: {"schema": {"type": "object"}, "example": {"apiVersion": "v1", "kind": "List", "items": _FLAVORS}},
}
_EXPORTED: dict[str, dict[str, Any]] = {
    "application/json": {"schema": reference(ExportedManifest)},
    YAML: {"schema": {"type": "string"}},
    YSON: {"schema": {"type": "string"}},
}
_EXPORT = operation(needs="read", responses={200: _EXPORTED, 304: None}, errors=(404, 429, 503, 504), etag=True)

router = APIRouter(prefix="/v1/configurations", tags=["configurations"])


As = Annotated[
    ExportFormat | None, Query(alias="format", description="Whose words; without it those of the document's engine")
]


@router.post(
    ":import",
    operation_id="import_configuration",
    summary="Read a manifest of a real system",
    **operation(
        needs="decide", request=_MANIFEST, responses={200: ImportedManifest}, errors=(408, 413, 415, 429, 503, 504)
    ),
)
async def import_manifest(
    request: Request,
    body: Manifest,
    format: Annotated[  # noqa: A002
        Format, Query(description="`kubernetes`: objects of whichever system they belong to", examples=[FIRST])
    ],
    lenient: Annotated[bool, Query(description="Answer although something in it would be decided wrongly")] = False,
) -> Response:
    """Configuration, running workloads and asks of a manifest, in Arbiter's words; nothing is stored.

    YAML or JSON, one document or several, as administrators write them or `kubectl get -o json` prints them. What can't
    be carried over is a finding; where one is an error, the answer is 422 unless `lenient=true`.
    """
    if not body.strip():
        raise BadRequest("there is no manifest")
    dispatcher = service(request, Dispatcher)
    asked = Inquiry(Operation.IMPORT, datetime.now(UTC), format=format, lenient=lenient)
    reply = await service(request, Offload).run(dispatcher.class_of(asked.operation, body), dispatcher.run, asked, body)
    return json_response(reply.body)


@router.get(
    "/{name}:export",
    operation_id="export_configuration",
    summary="A configuration in one system's words",
    dependencies=ON_CURRENT,
    **_EXPORT,
)
async def export_current(
    request: Request, name: Name, stored: Service, conditions: Conditions, format: As = None  # noqa: A002
) -> Response:  # fmt: skip
    """The current revision as YAML, or YSON for YTsaurus; with `Accept: application/json` also what the system has no
    words for. The header `Arbiter-Findings` says how much that is; comments in YAML say it too."""
    return await _in_time(request, lambda: _exported(request, stored.get(name), format, conditions))


@router.get(
    "/{name}/revisions/{number}:export",
    operation_id="export_configuration_revision",
    summary="A revision in one system's words",
    dependencies=ON_REVISION,
    **_EXPORT,
)
async def export_revision(
    request: Request,
    name: Name,
    number: Number,
    stored: Service,
    conditions: Conditions,
    format: As = None,  # noqa: A002
) -> Response:
    """One revision as YAML, or YSON for YTsaurus; with `Accept: application/json` also what the system has no words
    for. The header `Arbiter-Findings` says how much that is; comments in YAML say it too."""
    return await _in_time(request, lambda: _exported(request, stored.get(name, number), format, conditions))


async def _in_time(request: Request, work: Callable[[], Response]) -> Response:
    dispatcher = service(request, Dispatcher)
    return await service(request, Offload).run("slow", lambda: dispatcher.here(work))


def _exported(request: Request, revision: Revision, wanted: ExportFormat | None, conditions: Preconditions) -> Response:
    configuration = decode(bytes(revision.document), Configuration)
    chosen = wanted or configuration.engine
    if chosen is None:
        raise BadInput([Problem(pointer="/engine", detail="the configuration names no engine: say which format")])
    if chosen not in EXPORTS:
        detail = f"{chosen}'s configuration is not written yet: say another format"
        raise BadInput([Problem(pointer="/engine", detail=detail)])
    as_json = "application/json" in request.headers.get("accept", "")
    tag = f'{(etag(revision) or "").rstrip(chr(34))}-{chosen}{"-json" if as_json else ""}"'
    headers = {"ETag": tag, "Vary": "Accept"}
    if conditions.not_modified(tag):
        return Response(status_code=304, headers=headers)
    exported = export(configuration, chosen)
    if as_json:
        return json_response(
            ExportedManifest(format=chosen, text=exported.text, findings=listed(exported.findings)), headers=headers
        )
    headers["Arbiter-Findings"] = str(len(exported.findings))
    return Response(exported.text, media_type=exported.media_type, headers=headers)
