"""The questions of a scheduler, one or several rule books or work not yet submitted, and the log of the answers."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

from anyio import to_thread
from fastapi import APIRouter, Depends, Path, Query, Request, Response

from app.answering.answers import encode
from app.answering.comparison import Comparison, ComparisonRequest
from app.answering.operations import Operation
from app.answering.plan_bodies import PlanAnswer, PlanRequest
from app.decisions.repository import Filters
from app.decisions.schemas import (
    ASK,
    DECISION,
    SITUATION,
    DecisionAnswer,
    DecisionCounts,
    DecisionPage,
    DecisionRecord,
    EffectiveSettings,
    Preemptibility,
    Purpose,
    Replay,
    Shares,
    WorkloadHistory,
    by_engine,
)
from app.decisions.service import Decider, ExplainLevel
from app.http.body import Body, read_body, worked_on
from app.http.openapi import Cursor, Limit, Moment, Part, operation
from app.http.responses import json_response
from app.http.routing import provided, service
from app.solver.engine import ENGINES, all_facts, engine_of, example
from app.solver.model.base import Wire
from app.solver.model.configuration import EngineName
from app.solver.model.decision import Outcome
from app.solver.model.problems import Rule
from app.solver.model.request import DecisionRequest, EffectiveSettingsRequest, PreemptibilityRequest, SharesRequest
from app.workers.dispatcher import Offload

DOCUMENTED = (
    DecisionRequest,
    DecisionAnswer,
    SharesRequest,
    Shares,
    PreemptibilityRequest,
    Preemptibility,
    EffectiveSettingsRequest,
    EffectiveSettings,
    DecisionPage,
    DecisionCounts,
    DecisionRecord,
    Replay,
    WorkloadHistory,
)
_ASKED = (404, 409, 429, 503, 504)

router = APIRouter(prefix="/v1")


Deciding = Annotated[Decider, provided(Decider)]
Id = Annotated[UUID, Path(description="`id` of an answer")]


@router.post(
    "/decisions",
    operation_id="decide",
    tags=["decisions"],
    summary="What must stop for these asks to run?",
    **operation(
        needs="decide", request=DecisionRequest, responses={200: DecisionAnswer}, errors=_ASKED, examples=by_engine()
    ),
)
async def decide(  # no dependencies: resolving them costs as much as a small decision
    request: Request,
    purpose: Annotated[
        Purpose, Query(description="What it is asked for: the log tells what-ifs from a scheduler's questions.")
    ] = "decision",
) -> Response:
    """Decide each ask against the same state (`independent`), or one scheduling cycle over all asks (`cycle`)."""
    return json_response(await service(request, Decider).answer(await read_body(request), purpose))


@router.post(
    "/shares",
    operation_id="shares",
    tags=["decisions"],
    summary="What every queue is entitled to and uses",
    **operation(needs="decide", request=SharesRequest, responses={200: Shares}, errors=_ASKED, example=SITUATION),
)
async def shares(request: Request, body: Body) -> Response:
    """Fair shares and usage of every queue, as the engine counts them."""
    return json_response(await service(request, Decider).answer_question(Operation.SHARES, body))


@router.post(
    "/preemptibility",
    operation_id="preemptibility",
    tags=["decisions"],
    summary="What protects each running workload",
    **operation(
        needs="decide",
        request=PreemptibilityRequest,
        responses={200: Preemptibility},
        errors=_ASKED,
        example={**SITUATION, "ask": ASK},
    ),
)
async def preemptibility(request: Request, body: Body) -> Response:
    """Whether each running workload and task could be stopped, and what protects it; nothing is decided."""
    return json_response(await service(request, Decider).answer_question(Operation.PREEMPTIBILITY, body))


@router.post(
    "/effective-settings",
    operation_id="effective_settings",
    tags=["decisions"],
    summary="What each queue inherits",
    **operation(
        needs="decide",
        request=EffectiveSettingsRequest,
        responses={200: EffectiveSettings},
        errors=_ASKED,
        example={"configuration": SITUATION["configuration"]},
    ),
)
async def effective_settings(request: Request, body: Body) -> Response:
    """What each queue and workload inherits or overrides in the end; durations in seconds."""
    return json_response(await service(request, Decider).answer_question(Operation.EFFECTIVE_SETTINGS, body))


_ANY = "`*` stands for any text."


def _about(
    ask: Annotated[
        str | None,
        Query(
            description=f"Id of an ask in the request, or `namespace/name` of the pod that a guard's was for. {_ANY}"
        ),
    ] = None,
    workload: Annotated[str | None, Query(description=f"Id of a workload that the plan evicts. {_ANY}")] = None,
    actor: Annotated[
        str | None, Query(description=f"Who asked: `token:<name>`, `oidc:<subject>`, `anonymous`. {_ANY}")
    ] = None,
    queue: Annotated[str | None, Query(description=f"Queue of an ask, or of what the plan evicts. {_ANY}")] = None,
    circle: Annotated[
        bool | None, Query(description="Whether it belongs to a circle: A evicted B, B evicted A within an hour.")
    ] = None,
    pod: Annotated[
        str | None,
        Query(
            description="`namespace/name` of a pod in a question of kube-scheduler's: without room, or to be evicted."
        ),
    ] = None,
    purpose: Annotated[Purpose | None, Query(description="What it was asked for. Absent: anything.")] = None,
) -> Filters:
    return Filters(ask=ask, pod=pod, evicted=workload, actor=actor, queue=queue, circle=circle, purpose=purpose)


def _filters(
    about: Annotated[Filters, Depends(_about)],
    engine: Annotated[EngineName | None, Query(description="That decided.")] = None,
    outcome: Annotated[Outcome | None, Query(description="Of any ask in the request.")] = None,
    configuration: Annotated[
        str | None, Query(pattern="^[^@]+(@[0-9]{1,9})?$", description=f"`name` or `name@revision`. {_ANY}")
    ] = None,
    since: Annotated[Moment | None, Query(description="RFC 3339 with offset; included.")] = None,
    until: Annotated[Moment | None, Query(description="RFC 3339 with offset; not included.")] = None,
) -> Filters:
    name, _, revision = (configuration or "").partition("@")
    return replace(
        about,
        engine=engine,
        outcome=outcome,
        configuration=name or None,
        revision=int(revision) if revision else None,
        since=since,
        until=until,
    )


@router.get(
    "/decisions",
    operation_id="list_decisions",
    tags=["decision log"],
    summary="The decision log",
    **operation(needs="read", responses={200: DecisionPage}, errors=(503,)),
)
def list_decisions(
    decider: Deciding, filters: Annotated[Filters, Depends(_filters)], cursor: Cursor = None, limit: Limit = 50
) -> Response:
    """Answered requests, newest first, without request and answer."""
    return json_response(encode(decider.listing(filters, cursor, limit)))


@router.get(
    "/decisions:counts",
    operation_id="count_decisions",
    tags=["decision log"],
    summary="How often what was decided",
    **operation(needs="read", responses={200: DecisionCounts}, errors=(503,)),
)
def count_decisions(decider: Deciding, filters: Annotated[Filters, Depends(_filters)]) -> Response:
    """Counted by the database, however many there are: outcomes over time, and whose asks evicted whose work. Without
    `since` the hour before `until`, without `until` up to now."""
    return json_response(encode(decider.counts(filters)))


async def _in_turn(request: Request, id: Id, decider: Deciding) -> AsyncGenerator[None]:  # noqa: A002
    """Of large answers few are read at once, of one caller after the other. Raises DeadlinePassed, Unavailable."""
    async with worked_on(request, await to_thread.run_sync(decider.size_of, id)):
        yield


@router.get(
    "/decisions/{id}",
    operation_id="get_decision",
    tags=["decision log"],
    summary="One recorded decision",
    dependencies=[Depends(_in_turn, scope="function")],
    **operation(needs="read", responses={200: DecisionRecord}, errors=(404, 503, 504)),
)
def get_decision(id: Id, decider: Deciding) -> Response:  # noqa: A002
    """The recorded answer, and what it was given for."""
    return json_response(encode(decider.record(id)))


@router.get(
    "/decisions/{id}/request",
    operation_id="get_decision_request",
    tags=["decision log"],
    summary="The request of a recorded decision",
    **operation(needs="read", responses={200: DecisionRequest}, errors=(404, 409, 429, 503, 504)),
)
async def get_decision_request(
    id: Id,  # noqa: A002
    request: Request,
    decider: Deciding,
    resolved: Annotated[
        bool,
        Query(description="Write in what it leaves to the service: configuration, state, `engine`, `mode` and `now`."),
    ] = False,
) -> Response:
    """The body of the request, byte for byte as it was received; or `resolved`, as it can be answered anywhere."""
    act = decider.resolved if resolved else decider.request
    return json_response(await service(request, Offload).run("large", act, id))


@router.get(
    "/workloads/{id:path}/history",
    operation_id="get_workload_history",
    tags=["decision log"],
    summary="Who has stopped a workload, and how often",
    **operation(needs="read", responses={200: WorkloadHistory}, errors=(503,)),
)
def get_workload_history(
    decider: Deciding,
    id: Annotated[  # noqa: A002
        str, Path(min_length=1, description="Id of a workload, percent-encoded", examples=["team-a/train-7"])
    ],
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """Decisions in the log that stop the workload or are about its asks, newest first: decided, not necessarily carried
    out."""
    return json_response(encode(decider.history(id, cursor, limit)))


@router.post(
    "/decisions/{id}/replay",
    operation_id="replay_decision",
    tags=["decision log"],
    summary="Decide it again",
    **operation(needs="decide", responses={200: Replay}, errors=(404, 409, 429, 503, 504)),
)
async def replay_decision(id: Id, request: Request, decider: Deciding) -> Response:  # noqa: A002
    """The same bytes, revision and `now` through today's service: `identical` says whether the answer is the same."""
    return json_response(encode(await service(request, Offload).run("large", decider.replay, id)))


@router.get(
    "/decisions/{id}/explanation",
    operation_id="explain_decision",
    tags=["decision log"],
    summary="Why it was decided so",
    **operation(needs="read", responses={200: Replay}, errors=(404, 409, 429, 503, 504)),
)
async def explain_decision(
    id: Id,  # noqa: A002
    request: Request,
    decider: Deciding,
    level: Annotated[ExplainLevel, Query(description="Candidates in groups, or each of them")] = "full",
) -> Response:
    """The recorded request, decided again on the same revision and `now` and explained, whatever it asked for itself.

    Nothing is logged. `identical` says whether the answer is still the recorded one, explanations aside.
    """
    return json_response(encode(await service(request, Offload).run("large", decider.explain, id, level)))


COMPARISON_EXAMPLE = {**DECISION, "variants": [{"name": "classical"}, example().variant]}

comparisons = APIRouter(prefix="/v1", tags=["comparisons"])
COMPARISONS = Part(comparisons, (ComparisonRequest, Comparison))


@comparisons.post(
    "/comparisons",
    operation_id="compare",
    summary="The same asks under several rule books",
    **operation(
        needs="decide",
        request=ComparisonRequest,
        responses={200: Comparison},
        errors=(404, 409, 429, 503, 504),
        example=COMPARISON_EXAMPLE,
    ),
)
async def compare(request: Request, body: Body) -> Response:
    """One answer for each variant of engine, settings or configuration, and where they differ."""
    return json_response(await service(request, Decider).answer_question(Operation.COMPARISON, body))


MANIFEST = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: embeddings
  labels: {kueue.x-k8s.io/queue-name: serving}
spec:
  parallelism: 2
  template:
    spec:
      containers:
        - name: main
          resources: {requests: {cpu: 3500m}}
"""
PLAN_EXAMPLE: dict[str, Any] = {**SITUATION, "manifest": MANIFEST}

plans = APIRouter(prefix="/v1", tags=["plans"])
PLANS = Part(plans, (PlanRequest, PlanAnswer))


@plans.post(
    "/plans",
    operation_id="plan",
    summary="Would this work run, if it were submitted?",
    **operation(
        needs="decide",
        request=PlanRequest,
        responses={200: PlanAnswer},
        errors=(404, 409, 429, 503, 504),
        example=PLAN_EXAMPLE,
    ),
)
async def plan(request: Request, body: Body) -> Response:
    """What the system would make of a manifest: whether it would run now and where, who would stop for it, what would
    let it in, and what each queue uses before and after. Nothing is stored, submitted or logged."""
    return json_response(await service(request, Decider).answer_question(Operation.PLAN, body))


class CataloguedRule(Rule, frozen=True, kw_only=True):
    """A rule with the engine whose rule it is; the same id may mean something else in another engine."""

    engine: EngineName
    """Whose rule it is."""


class Catalogue(Wire, frozen=True, kw_only=True):
    """Every rule, by engine and id."""

    rules: list[CataloguedRule]
    """By engine and id."""


def catalogue(engine: EngineName | None = None) -> Catalogue:
    """The rules of ``engine``, else of all, by engine and id."""
    return Catalogue(
        rules=[
            CataloguedRule(engine=name, rule=rule.rule, sentence=rule.sentence, source=rule.source)
            for name in ENGINES
            if engine in (None, name)
            for rule in sorted(engine_of(name).rules, key=lambda rule: rule.rule)
        ]
    )


def page() -> str:
    """The catalogue as docs/rules.md has it."""
    parts = [
        "# Rules\n\nWhat the ids in explanations mean; `GET /v1/rules` serves the same.\n"
        "Written by `make openapi` from the engines' catalogues.\n"
    ]
    for facts in all_facts():
        rows = [f"| `{rule.rule}` | {rule.sentence} | {rule.source} |" for rule in catalogue(facts.name).rules]
        parts.append("\n".join([f"\n## {facts.title}\n", "| rule | says | source |", "| --- | --- | --- |", *rows, ""]))
    return "".join(parts)


catalogues = APIRouter(prefix="/v1")
RULES = Part(catalogues, (Catalogue,))


@catalogues.get(
    "/rules",
    operation_id="list_rules",
    tags=["decisions"],
    summary="What the rules in explanations mean",
    **operation(needs="read", responses={200: Catalogue}),
)
async def rules(
    engine: Annotated[EngineName | None, Query(description="only those of this engine")] = None,
) -> Response:
    """Every rule id that explanations name: one sentence, and where the real system says so."""
    return json_response(catalogue(engine))
