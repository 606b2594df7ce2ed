"""``/v1/clusters``: what is followed, how old it is, and by whom."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from app.answering.answers import encode
from app.base.decoding import decode
from app.base.identifiers import NAME
from app.clusters.repository import Evicted
from app.clusters.schemas import (
    ClusterLease,
    ClusterReport,
    EvictionPage,
    EvictionReport,
    FollowedCluster,
    FollowedClusterList,
)
from app.clusters.service import Clusters
from app.http.body import Body
from app.http.openapi import operation
from app.http.parameters import Cursor, Limit, Moment
from app.http.responses import json_response
from app.http.routing import service

DOCUMENTED = (FollowedCluster, ClusterLease, FollowedClusterList, ClusterReport, EvictionReport, EvictionPage)
EXAMPLE = {
    "follower": "arbiter-0",
    "engine": "kueue",
    "snapshot": "production",
    "configuration": "production",
    "stage": "following",
    "kinds": [
        {"kind": "Workload", "api_version": "kueue.x-k8s.io/v1beta1", "objects": 200, "resource_version": "4711"}
    ],
    "generation": 12,
}
EVICTION = {
    "at": "2026-11-22T12:00:00Z", "workload": "ml/job-train-3f2a1", "job": "ml/train", "job_kind": "Job",
    "queue": "research", "by": "ml/job-serve-77ab0", "reason": "InCohortReclamation",
}  # fmt: skip

router = APIRouter(prefix="/v1/clusters", tags=["clusters"])


async def _service(request: Request) -> Clusters:
    return service(request, Clusters)


Service = Annotated[Clusters, Depends(_service)]
Name = Annotated[
    str,
    Path(
        pattern=NAME,
        description="Letters, digits, `.`, `_` and `-`",
        examples=["production"],
    ),
]


@router.get(
    "",
    operation_id="list_clusters",
    summary="What is followed",
    **operation(needs="read", responses={200: FollowedClusterList}, errors=(503,)),
)
def list_clusters(clusters: Service) -> Response:
    """Every cluster that a follower has reported about within an hour."""
    return json_response(FollowedClusterList(items=clusters.every()))


@router.get(
    "/{name}",
    operation_id="get_cluster",
    summary="What is followed of one cluster, and how old it is",
    **operation(needs="read", responses={200: FollowedCluster}, errors=(404, 503)),
)
def get_cluster(name: Name, clusters: Service) -> Response:
    """Each follower's last report: kinds, counts, lag, how often it had to list again, what it could not carry over."""
    return json_response(clusters.get(name))


@router.put(
    "/{name}",
    operation_id="report_cluster",
    summary="What a follower has to say",
    **operation(
        needs="decide",
        followers=True,
        request=ClusterReport,
        responses={200: ClusterLease},
        errors=(503,),
        example=EXAMPLE,
    ),
)
def report_cluster(name: Name, body: Body, clusters: Service) -> Response:
    """Sent every few seconds. The answer says whether this follower is the one that writes the configuration."""
    return json_response(clusters.report(name, decode(body, ClusterReport)))


@router.delete(
    "/{name}",
    operation_id="delete_cluster",
    summary="Forget a cluster",
    **operation(needs="decide", responses={204: None}, errors=(404, 503)),
)
def delete_cluster(name: Name, clusters: Service) -> Response:
    """Its snapshot and configuration stay. A follower that still runs brings it back."""
    clusters.forget(name)
    return Response(status_code=204)


def _evicted(
    workload: Annotated[str | None, Query(description="The id of a workload, or the name of one of its tasks.")] = None,
    job: Annotated[str | None, Query(description="`namespace/name` of the object that owns it.")] = None,
    queue: Annotated[str | None, Query(description="The queue that it ran in.")] = None,
    by: Annotated[str | None, Query(description="The id of the ask that it was for.")] = None,
    since: Annotated[Moment | None, Query(description="Then or later; RFC 3339 with offset.")] = None,
    until: Annotated[Moment | None, Query(description="Before; RFC 3339 with offset.")] = None,
) -> Evicted:
    return Evicted(workload=workload, job=job, queue=queue, by=by, since=since, until=until)


@router.post(
    "/{name}/evictions",
    operation_id="report_evictions",
    summary="Evictions that a follower saw",
    **operation(
        needs="decide", followers=True, request=EvictionReport, responses={204: None}, errors=(503,),
        example={"engine": "kueue", "evictions": [EVICTION]},
    ),
)  # fmt: skip
def report_evictions(name: Name, body: Body, clusters: Service) -> Response:
    """Sent by `arbiter follow`. What is known already is not kept again."""
    clusters.evict(name, decode(body, EvictionReport))
    return Response(status_code=204)


@router.get(
    "/{name}/evictions",
    operation_id="list_evictions",
    summary="Why was it evicted? Newest first",
    **operation(needs="read", responses={200: EvictionPage}, errors=(503,)),
)
def list_evictions(
    name: Name,
    clusters: Service,
    of: Annotated[Evicted, Depends(_evicted)],
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """Every eviction that a follower saw: of whom, for whom, when, by which rule, and whether Arbiter would have done
    the same. Kept as long as what shadow compares (`ARBITER_SHADOW_RETENTION_*`)."""
    return json_response(encode(clusters.evictions(name, of, cursor, limit)))
