"""``POST /v1/extenders/{name}/preempt``: kube-scheduler asks which of its victims the rules let go."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.answering.snapshots import FollowedAge
from app.base.errors import ArbiterError, DeadlinePassed, NotFound, TooManyRequests, Unavailable
from app.base.identifiers import NAME
from app.configurations.router import Name
from app.decisions.service import Decider
from app.formats.extender import ExtenderPreemptionArgs, ExtenderPreemptionResult
from app.http.body import Body
from app.http.openapi import operation
from app.http.protocol import ENDED
from app.http.responses import json_response
from app.http.routing import service
from app.metrics import Metrics
from app.workers.dispatcher import Offload


class GuardAnswer(ExtenderPreemptionResult, frozen=True, omit_defaults=True):
    """What kube-scheduler reads, and beside it what is for people: it passes over fields that it does not know."""

    followed: FollowedAge | None = None
    """How old the snapshot is that says what runs, and what is wrong with that. Absent: no follower keeps it."""


DOCUMENTED = (ExtenderPreemptionArgs, GuardAnswer)

EXAMPLE: dict[str, Any] = {
    "Pod": {
        "metadata": {
            "name": "serve-1", "namespace": "web", "uid": "9a1c",
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "serve", "uid": "51d0"}],
        },
        "spec": {"priority": 100, "containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]},
    },
    "NodeNameToVictims": {
        "node-1": {"Pods": [{"metadata": {"name": "train-0", "namespace": "ml", "uid": "6f9d"}}], "NumPDBViolations": 0}
    },
    "NodeNameToMetaVictims": None,
}  # fmt: skip

router = APIRouter(prefix="/v1/extenders", tags=["extenders"])


@router.post(
    "/{name}/preempt",
    operation_id="guard_preemption",
    summary="Which of these victims do the rules let go?",
    **operation(
        needs="decide",
        request=ExtenderPreemptionArgs,
        responses={200: GuardAnswer},
        errors=(404, 409, 429, 503, 504),
        example=EXAMPLE,
        basic=True,
    ),
)
async def guard_preemption(
    name: Name,
    request: Request,
    body: Body,
    snapshot: Annotated[
        str | None,
        Query(pattern=NAME, description="The snapshot that says what runs. Absent: the one of the same name."),
    ] = None,
) -> Response:
    """For kube-scheduler, as an extender with `preemptVerb: preempt`: of the nodes that it proposes those stay whose
    victims may all go by the rules of configuration `name`. The decision is in the log, with what kube-scheduler would
    have done by itself. While nobody answers it, kube-scheduler goes on by itself for every pod at once where the
    extender is `ignorable`; where it is not, it evicts nobody, and pods wait."""
    decider, counted = service(request, Decider), service(request, Metrics).extender
    try:
        decided = await service(request, Offload).run("snapshot", decider.guard, name, snapshot or name, body)
        answer = await decider.acknowledged(decided)
    except Exception as error:
        counted.labels(_outcome(error)).inc()
        raise
    # kube-scheduler waits no longer than its `httpTimeout`, and hangs up.
    is_late = await request.is_disconnected() or ENDED in request.scope
    counted.labels("late" if is_late else "answered").inc()
    return json_response(answer)


def _outcome(error: Exception) -> str:
    """What became of a question that got no answer: an extender that is ``ignorable`` is passed over then."""
    if isinstance(error, NotFound):
        return "not_found"
    if isinstance(error, DeadlinePassed):
        return "late"
    if isinstance(error, (Unavailable, TooManyRequests)):
        return "unavailable"
    return "refused" if isinstance(error, ArbiterError) else "invalid"
