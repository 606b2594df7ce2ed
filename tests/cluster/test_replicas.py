"""Two replicas on one database, each with a follower of the same cluster."""

import httpx2

from tests.cluster import kueue
from tests.cluster.following import differs, eventually, following
from tests.cluster.server import Cluster

NAME = "both"


def test_each_replica_has_the_snapshot_and_one_follower_writes_the_configuration(
    kubernetes: Cluster, arbiter: httpx2.Client, other: httpx2.Client
) -> None:
    kubernetes.apply(
        kueue.flavor("default"), kueue.cluster_queue("q", 5), kueue.local_queue("lq", "q"),
        kueue.workload("runs", "lq", 1, admitted="q"), kueue.workload("waits", "lq", 9),
    )  # fmt: skip

    def followed() -> None:
        for replica in (arbiter, other):
            eventually(lambda replica=replica: not differs(kubernetes, replica, "kueue", NAME) or None)

    with (
        following(kubernetes, arbiter, "kueue", NAME, called="one"),
        following(kubernetes, other, "kueue", NAME, called="two"),
    ):
        followed()
        grown = kueue.cluster_queue("q", 7)
        kubernetes.call("PATCH", kubernetes.path(grown, named=True), {"spec": grown["spec"]})
        kubernetes.apply(kueue.workload("more", "lq", 3))
        followed()
        followers = other.get(f"/v1/clusters/{NAME}").json()["followers"]
    assert sorted(one["writer"] for one in followers) == [False, True]
    revisions = arbiter.get(f"/v1/configurations/{NAME}/revisions").json()["items"]
    assert len(revisions) == 2, "each change was written once"
