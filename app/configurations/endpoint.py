"""What the endpoints of configurations, their queues, revisions and labels share."""

from typing import Annotated

import msgspec
from fastapi import Depends, Path, Query, Request
from starlette.responses import Response

from app.configurations.administration import Administration
from app.configurations.labels.service import LABEL
from app.configurations.repository import Revision, Summary
from app.configurations.schemas import ConfigurationSummary, ConfigurationWritten
from app.configurations.service import NAME, Configurations, etag
from app.configurations.writing import Intent
from app.http.comment import Comment
from app.http.preconditions import Conditions, Preconditions, etag_of
from app.http.responses import json_response
from app.http.services import service
from app.solver.model.base import Wire
from app.solver.model.configuration import EngineName


def _administration(request: Request) -> Administration:
    return service(request, Administration)


def _stored(request: Request) -> Configurations:
    return service(request, Configurations)


Admin = Annotated[Administration, Depends(_administration)]
Service = Annotated[Configurations, Depends(_stored)]
Name = Annotated[str, Path(pattern=NAME, description="Letters, digits, `.`, `_` and `-`", examples=["production"])]
Number = Annotated[int, Path(ge=1, le=10**9, description="Number of a revision", examples=[1])]
LabelName = Annotated[
    str, Path(pattern=LABEL, description="A letter, then letters, digits, `.`, `_` and `-`", examples=["stable"])
]
DryRun = Annotated[bool, Query(description="Only say what would happen, with all findings")]
Engine = Annotated[EngineName | None, Query(description="Check for this engine, not the document's")]


def read_intent(conditions: Conditions, comment: Comment, dry_run: DryRun = False) -> Intent:
    """Conditions, comment and dry run of a write."""
    return Intent(conditions, comment, dry_run)


Intended = Annotated[Intent, Depends(read_intent)]


def summary(one: Summary | Revision) -> dict[str, object]:
    """One revision as answers show it; what there is nothing to say about is left out."""
    said = {field: getattr(one, field) for field in ConfigurationSummary.__struct_fields__}
    return {field: value for field, value in said.items() if value is not None}


def summaries(found: list[Summary]) -> list[ConfigurationSummary]:
    """Revisions as lists show them."""
    return [ConfigurationSummary(**one._asdict()) for one in found]


def written(done: ConfigurationWritten, *, created: bool, location: str) -> Response:
    """The answer to a write, with the entity tag of the configuration as it is now."""
    headers = {} if done.dry_run else {"ETag": etag(done) or "", "Location": location}
    return json_response(done, 201 if created and not done.dry_run else 200, headers)


def shown(body: object, tag: str, conditions: Preconditions) -> Response:
    """The answer to a read, unless the caller has it."""
    if conditions.not_modified(tag):
        return Response(status_code=304, headers={"ETag": tag})
    return json_response(body, headers={"ETag": tag})


def revision_shown(found: Revision, conditions: Preconditions) -> Response:
    """A revision with its document."""
    return shown({**summary(found), "configuration": msgspec.Raw(found.document)}, etag(found) or "", conditions)


def tagged(body: Wire, conditions: Preconditions) -> Response:
    """The answer to a read of what has no version of its own."""
    encoded = msgspec.json.encode(body)
    return shown(encoded, etag_of(encoded), conditions)
