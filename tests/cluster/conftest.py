"""One API server and one service for all tests of a worker that follow a cluster; skipped where there is no Go."""

import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from app.following.objects import FOLLOWED, WITNESSES
from tests.cluster.build import missing
from tests.cluster.server import Cluster, cluster, followed_definitions
from tests.support.live import serving


@pytest.fixture
def kubernetes(server: Cluster) -> Iterator[Cluster]:
    """The API server, without any object of the kinds that are followed."""
    yield server
    server.clear(kind.path(kind.versions[-1]) for kinds in (*FOLLOWED.values(), *WITNESSES.values()) for kind in kinds)


@pytest.fixture(scope="session")
def server() -> Iterator[Cluster]:
    """An API server with the definitions of the systems that are followed, and nothing else."""
    if (why := missing()) is not None:
        pytest.skip(why)
    with cluster(Path(tempfile.mkdtemp(prefix="arbiter-cluster-"))) as found:
        for defined in followed_definitions(*FOLLOWED):
            found.define(defined)
        for space in ("yunikorn", "kueue-system", "kai-scheduler"):
            found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
        yield found


@pytest.fixture(scope="session")
def database(migrated_database: Callable[[], str]) -> str:
    """That of the service."""
    return migrated_database()


@pytest.fixture(scope="session")
def arbiter(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A running service."""
    with replica(database, tmp_path_factory.mktemp("followed")) as client:
        yield client


@pytest.fixture
def other(database: str, tmp_path: Path) -> Iterator[httpx2.Client]:
    """A second service on the same database."""
    with replica(database, tmp_path) as client:
        yield client


@contextmanager
def replica(database: str, folder: Path) -> Generator[httpx2.Client]:
    """A service."""
    with (
        serving(database, folder, ARBITER_LOG_LEVEL="warning", WORKERS="1") as (address, _),
        httpx2.Client(base_url=address, timeout=60) as client,
    ):
        yield client
