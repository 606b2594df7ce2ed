"""What is followed for each engine: the one table behind what is asked for and behind the rights that this needs."""

from dataclasses import dataclass

from app.solver.model.configuration import EngineName

KUEUE = "kueue.x-k8s.io"
VERBS = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object. ``versions``: those that are read, the best first; ``needed``: whether there is nothing to
    follow without it; ``namespaced``: whether its objects lie in namespaces."""

    name: str
    group: str
    plural: str
    versions: tuple[str, ...]
    namespaced: bool = True
    needed: bool = True

    def path(self, version: str) -> str:
        """Where all objects of the kind are, in every namespace."""
        base = f"/apis/{self.group}" if self.group else "/api"
        return f"{base}/{version}/{self.plural}"

    def api_version(self, version: str) -> str:
        """As objects of the kind say it."""
        return f"{self.group}/{version}" if self.group else version


def _kueue(name: str, plural: str, *, namespaced: bool = False, needed: bool = True) -> Kind:
    return Kind(name, KUEUE, plural, ("v1beta2", "v1beta1"), namespaced, needed)


FOLLOWED: dict[EngineName, tuple[Kind, ...]] = {
    "kueue": (
        _kueue("ClusterQueue", "clusterqueues"),
        _kueue("Cohort", "cohorts", needed=False),
        _kueue("LocalQueue", "localqueues", namespaced=True),
        _kueue("ResourceFlavor", "resourceflavors"),
        _kueue("Workload", "workloads", namespaced=True),
        _kueue("WorkloadPriorityClass", "workloadpriorityclasses", needed=False),
    ),
}
