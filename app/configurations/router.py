"""``/v1/configurations``: administration by REST, with ETag on every read and If-Match on every write."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from app.configurations.repository import Revision, Summary
from app.configurations.schemas import (
    ConfigurationPage,
    ConfigurationSummary,
    ConfigurationWritten,
    RevisionPage,
    StoredConfiguration,
)
from app.configurations.service import NAME, Configurations, etag
from app.http.body import Body
from app.http.openapi import operation
from app.http.pages import Cursor, Limit, decode_cursor, encode_cursor
from app.http.preconditions import Conditions, Preconditions, etag_of
from app.http.responses import json_response
from app.solver.model.configuration import Configuration, EngineName

DOCUMENTED = (Configuration, StoredConfiguration, ConfigurationWritten, ConfigurationPage, RevisionPage)

EXAMPLE = {
    "engine": "kueue",
    "queues": [
        {"name": "all", "kueue": {"role": "cohort"}},
        {
            "name": "team-a",
            "parent": "all",
            "quota": {"cpu": {"guaranteed": "8", "borrowing_limit": "4"}},
            "kueue": {"preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}},
        },
        {"name": "team-b", "parent": "all", "quota": {"cpu": {"guaranteed": "8"}}},
    ],
}

router = APIRouter(prefix="/v1/configurations", tags=["configurations"])


def _service(request: Request) -> Configurations:
    return request.app.state.configurations


Service = Annotated[Configurations, Depends(_service)]
Name = Annotated[str, Path(pattern=NAME, description="Letters, digits, `.`, `_` and `-`", examples=["production"])]
Number = Annotated[int, Path(ge=1, le=10**9, description="Number of a revision", examples=[1])]


@router.get(
    "",
    operation_id="list_configurations",
    **operation(responses={200: ConfigurationPage, 304: None}, errors=(400, 503), etag=True),
)
def list_configurations(
    service: Service, conditions: Conditions, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """Configurations by name, each with its current revision."""
    after = str(decode_cursor(cursor, str)[0]) if cursor else None
    found = service.page(after, limit + 1)
    more = encode_cursor(found[limit - 1].name) if len(found) > limit else None
    return _tagged(ConfigurationPage(items=_shown(found[:limit]), next_cursor=more), conditions)


@router.get(
    "/{name}",
    operation_id="get_configuration",
    **operation(responses={200: StoredConfiguration, 304: None}, errors=(400, 404, 503), etag=True),
)
def get_configuration(name: Name, service: Service, conditions: Conditions) -> Response:
    """The current revision, with its document."""
    return _revision(service.get(name), conditions)


@router.put(
    "/{name}",
    operation_id="put_configuration",
    **operation(
        request=Configuration, responses={200: ConfigurationWritten, 201: ConfigurationWritten},
        errors=(412, 428, 503), example=EXAMPLE, etag=True,
    ),
)  # fmt: skip
def put_configuration(
    name: Name,
    body: Body,
    service: Service,
    conditions: Conditions,
    dry_run: Annotated[bool, Query(description="Only say what would happen, with all findings")] = False,
    engine: Annotated[EngineName | None, Query(description="Check for this engine, not the document's")] = None,
) -> Response:
    """Store a configuration as a new revision.

    A new name needs no condition; over an existing one say with If-Match which version you mean. Findings of severity
    error refuse the write, warnings come back with it.
    """
    written = service.put(name, body, conditions, engine, dry_run=dry_run)
    headers = {} if dry_run else {"ETag": etag(written) or "", "Location": f"/v1/configurations/{name}"}
    return json_response(written, 201 if written.created and not dry_run else 200, headers)


@router.delete(
    "/{name}",
    operation_id="delete_configuration",
    **operation(responses={204: None}, errors=(400, 404, 412, 422, 428, 503)),
)
def delete_configuration(name: Name, service: Service, conditions: Conditions) -> Response:
    """Remove a configuration. Decisions in the log keep the revisions that they used."""
    service.delete(name, conditions)
    return Response(status_code=204)


@router.get(
    "/{name}/revisions",
    operation_id="list_configuration_revisions",
    **operation(responses={200: RevisionPage, 304: None}, errors=(400, 404, 503), etag=True),
)
def list_revisions(
    name: Name, service: Service, conditions: Conditions, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """Revisions of a configuration, newest first."""
    before = int(decode_cursor(cursor, int)[0]) if cursor else None
    found = service.history(name, before, limit + 1)
    more = encode_cursor(found[limit - 1].revision) if len(found) > limit else None
    return _tagged(RevisionPage(items=_shown(found[:limit]), next_cursor=more), conditions)


@router.get(
    "/{name}/revisions/{number}",
    operation_id="get_configuration_revision",
    **operation(responses={200: StoredConfiguration, 304: None}, errors=(400, 404, 503), etag=True),
)
def get_revision(name: Name, number: Number, service: Service, conditions: Conditions) -> Response:
    """One revision, with its document; it never changes."""
    return _revision(service.get(name, number), conditions)


def _shown(found: list[Summary]) -> list[ConfigurationSummary]:
    return [
        ConfigurationSummary(name=one.name, revision=one.revision, digest=one.digest, created_at=one.created_at)
        for one in found
    ]


def _revision(found: Revision, conditions: Preconditions) -> Response:
    tag = etag(found) or ""
    if conditions.not_modified(tag):
        return Response(status_code=304, headers={"ETag": tag})
    head = {"name": found.name, "revision": found.revision, "digest": found.digest, "created_at": found.created_at}
    return json_response({**head, "configuration": msgspec.Raw(found.document)}, headers={"ETag": tag})


def _tagged(page: ConfigurationPage | RevisionPage, conditions: Preconditions) -> Response:
    body = msgspec.json.encode(page)
    tag = etag_of(body)
    if conditions.not_modified(tag):
        return Response(status_code=304, headers={"ETag": tag})
    return json_response(body, headers={"ETag": tag})
