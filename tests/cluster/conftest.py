"""One API server and one service for all tests of a worker that follow a cluster; skipped where there is no Go."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from tests.cluster.build import missing
from tests.cluster.server import Cluster, cluster, definition
from tests.live import serving


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[Cluster]:
    """An API server with the definitions of the systems that are followed, and nothing else."""
    if (why := missing()) is not None:
        pytest.skip(why)
    with cluster(Path(tempfile.mkdtemp(prefix="arbiter-cluster-"))) as found:
        group = "kueue.x-k8s.io"
        for kind, namespaced in (("ClusterQueue", False), ("Cohort", False), ("LocalQueue", True), ("Workload", True),
                                 ("ResourceFlavor", False)):  # fmt: skip
            found.define(definition(kind, kind.lower() + "s", group, "v1beta1", "v1beta2", namespaced=namespaced))
        found.define(
            definition(
                "WorkloadPriorityClass", "workloadpriorityclasses", group, "v1beta1", "v1beta2", namespaced=False
            )
        )
        yield found


@pytest.fixture(scope="session")
def arbiter(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A running service."""
    folder = tmp_path_factory.mktemp("followed")
    with (
        serving(new_database(), folder, ARBITER_LOG_LEVEL="warning", WORKERS="1") as (address, _),
        httpx2.Client(base_url=address, timeout=60) as client,
    ):
        yield client
