"""What tests of changes share with those beside them."""

from app.following.objects import manifests
from app.solver.model.configuration import EngineName
from tests.cluster.server import Cluster


def account(cluster: Cluster, engine: EngineName, *, shadow: bool = False, of: str = "follower") -> str:
    """The token of an account with the rights that following needs, and no others. ``of``: who has one of its own."""
    name = f"{of}-{engine}" + ("-shadow" if shadow else "")
    cluster.apply(*manifests(engine, "default", name, shadow=shadow))
    path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
    made = cluster.call("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    return str(made["status"]["token"])
