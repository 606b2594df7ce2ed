"""The chart installed by Helm on a real API server. There are no nodes: the test runs what pods would run, with the
commands and variables that they would have, and says of the migration's job what its controller would."""

import base64
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import httpx2
import pytest
import yaml

from tests.cluster import kueue
from tests.cluster.build import missing_helm
from tests.cluster.chart import FULL, KUBERNETES, Helm
from tests.cluster.following import eventually
from tests.cluster.server import Cluster, definition, free_port

SPACE = "arbiter-installed"
Item = dict[str, Any]
PROGRAM = str(Path(sys.executable).with_name("arbiter"))


@pytest.fixture(scope="module")
def cluster(server: Cluster) -> Cluster:
    """With a namespace that lets in nothing but restricted pods, and the kinds of a Prometheus operator."""
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    server.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE, "labels": restricted}},
    )  # fmt: skip
    for kind in ("ServiceMonitor", "PrometheusRule"):
        server.define(definition(kind, kind.lower() + "s", "monitoring.coreos.com", "v1", namespaced=True))
    return server


@pytest.fixture
def helm(cluster: Cluster, kubernetes: Cluster, tmp_path: Path) -> Helm:
    if (why := missing_helm()) is not None:
        pytest.skip(why)
    return Helm(tmp_path, cluster.kubeconfig())


def secret(cluster: Cluster, name: str, **values: str) -> None:
    metadata = {"name": name, "namespace": SPACE}
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values})


def listed(cluster: Cluster, path: str) -> list[Item]:
    return cluster.call("GET", path.format(space=SPACE))["items"]


def environment(cluster: Cluster, container: Item, port: int) -> dict[str, str]:
    """The container's variables, secrets looked up; another port than all others have."""
    found = {"PATH": os.environ["PATH"]}
    for one in container["env"]:
        if "valueFrom" in one:
            reference = one["valueFrom"]["secretKeyRef"]
            data = cluster.call("GET", f"/api/v1/namespaces/{SPACE}/secrets/{reference['name']}")["data"]
            found[one["name"]] = base64.b64decode(data[reference["key"]]).decode()
        else:
            found[one["name"]] = one["value"]
    if "ARBITER_PORT" in found:
        found |= {"ARBITER_PORT": str(port), "ARBITER_HOST": "127.0.0.1"}
    return found


def command(container: Item, port: int) -> list[str]:
    assert container["command"][0] == "arbiter"
    words = [word.replace(":8080", f":{port}") for word in container["command"][1:]]
    return [PROGRAM, *(re.sub(r"^--metrics-port=\d+$", "--metrics-port=0", word) for word in words)]


@contextmanager
def running(cluster: Cluster, container: Item, port: int, **more: str) -> Generator[None]:
    """A container's process."""
    process = subprocess.Popen(
        command(container, port), env=environment(cluster, container, port) | more,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
        assert process.poll() is None, container["name"]
    finally:
        process.terminate()
        process.wait(60)


def released(cluster: Cluster, helm: Helm, verb: str, values: Item) -> str:
    """``helm install`` or ``helm upgrade``; its job is done as soon as it is there. What Helm printed."""
    process = helm.start(verb, "arbiter", ".", "--namespace", SPACE, "--timeout", "10m", values=values)
    jobs = f"/apis/batch/v1/namespaces/{SPACE}/jobs"

    def begun() -> Item | None:
        if process.poll() is not None:
            raise AssertionError(process.communicate()[1])
        return next(iter(cluster.call("GET", jobs)["items"]), None)

    job = eventually(begun)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert (verb == "install") == (not listed(cluster, "/apis/apps/v1/namespaces/{space}/deployments"))
    done = subprocess.run(command(container, 0), env=environment(cluster, container, 0), check=True, text=True,
                          capture_output=True)  # fmt: skip
    assert "to " in done.stdout if verb == "install" else "already at" in done.stdout
    finish(cluster, f"{jobs}/{job['metadata']['name']}")
    printed, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return printed


def finish(cluster: Cluster, job: str) -> None:
    """What a job's controller says when its pod has succeeded."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": at, "lastProbeTime": at}
                  for kind in ("SuccessCriteriaMet", "Complete")]  # fmt: skip
    status = {"startTime": at, "completionTime": at, "succeeded": 1, "conditions": conditions}
    cluster.call("PATCH", f"{job}/status", {"status": status})


def deployed(cluster: Cluster, name: str) -> Item:
    """What a pod of that deployment is made of."""
    return cluster.call("GET", f"/apis/apps/v1/namespaces/{SPACE}/deployments/{name}")["spec"]["template"]


def let_in(cluster: Cluster, name: str, template: Item) -> None:
    """The API server takes the pod as it is: nothing unknown in it, nothing that ``restricted`` forbids."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], "name": name, "namespace": SPACE}}
    cluster.call("POST", f"/api/v1/namespaces/{SPACE}/pods?fieldValidation=Strict&dryRun=All",
                 {**pod, "spec": template["spec"]})  # fmt: skip


def probed(container: Item, port: int) -> bool:
    """Whether it is alive and ready as the kubelet would find."""
    try:
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            with urlopen(f"http://127.0.0.1:{port}{container[kind]['httpGet']['path']}", timeout=10):
                pass
    except OSError:
        return False
    return True


def account_token(cluster: Cluster, account: str) -> str:
    path = f"/api/v1/namespaces/{SPACE}/serviceaccounts/{account}/token"
    made = cluster.call("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    return str(made["status"]["token"])


def test_installed_it_serves_and_upgraded_it_follows_the_cluster_it_runs_in(
    cluster: Cluster, helm: Helm, new_database: Callable[[], str]
) -> None:
    url, port = new_database().replace("+psycopg", ""), free_port()
    notes = released(cluster, helm, "install", {"database": {"url": url}})
    assert "arbiter token create admin --scope admin" in notes
    assert "follow-production" in advised(helm, notes)
    assert [one["metadata"]["name"] for one in listed(cluster, "/api/v1/namespaces/{space}/secrets")
            if one["type"] == "Opaque"] == ["arbiter"]  # fmt: skip
    service = deployed(cluster, "arbiter")["spec"]["containers"][0]
    (worker,) = deployed(cluster, "arbiter-worker")["spec"]["containers"]
    with running(cluster, service, port), running(cluster, worker, port):
        eventually(lambda: probed(service, port))
        secret(cluster, "follower", token=token(cluster, service, "follow"))
        secret(cluster, "reader", token=token(cluster, service, "read"))
        follows = {"existingSecret": "follower", "clusters": [{"cluster": "production", "engine": "kueue"}]}
        released(cluster, helm, "upgrade", {"database": {"url": url}, "follow": follows})
        follower = deployed(cluster, "arbiter")["spec"]["containers"][1]
        cluster.apply(kueue.flavor(), kueue.cluster_queue("q", 4), kueue.local_queue("l", "q"))
        cluster.apply(kueue.workload("w", "l", 1, 1))
        own = cluster.kubeconfig(account_token(cluster, "arbiter"))
        with running(cluster, follower, port, KUBECONFIG=str(own)), asking(cluster, port) as client:
            eventually(lambda: waits(client))
    helm.run("uninstall", "arbiter", "--namespace", SPACE)
    for path in ("/apis/apps/v1/namespaces/{space}/deployments", "/api/v1/namespaces/{space}/services",
                 "/apis/policy/v1/namespaces/{space}/poddisruptionbudgets",
                 "/apis/networking.k8s.io/v1/namespaces/{space}/networkpolicies"):  # fmt: skip
        assert listed(cluster, path) == []


def advised(helm: Helm, notes: str) -> str:
    """What the command renders that the notes end with: it makes an installed service follow."""
    (command,) = re.findall(r"^  helm upgrade (.*)$", notes, re.MULTILINE)
    options = [word for word in shlex.split(command)[2:] if word != "--reuse-values"]
    return helm.run("template", "arbiter", ".", "--kube-version", KUBERNETES, *options,
                    values={"database": {"existingSecret": "postgres"}})  # fmt: skip


def token(cluster: Cluster, service: Item, scope: str) -> str:
    """As the notes say: made by a command in the service's container."""
    words = ["token", "create", scope, "--scope", scope]
    done = subprocess.run([PROGRAM, *words], env=environment(cluster, service, 0), check=True, text=True,
                          capture_output=True)  # fmt: skip
    return done.stdout.strip()


@contextmanager
def asking(cluster: Cluster, port: int) -> Generator[httpx2.Client]:
    data = cluster.call("GET", f"/api/v1/namespaces/{SPACE}/secrets/reader")["data"]
    headers = {"Authorization": f"Bearer {base64.b64decode(data['token']).decode()}"}
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
        yield client


def waits(client: httpx2.Client) -> bool:
    """Whether the cluster's pending workload is known beside the snapshot."""
    found = client.get("/v1/snapshots/production/asks")
    return found.status_code == 200 and [one["id"] for one in found.json()["items"]] == ["default/w"]


def test_the_api_server_takes_every_object_and_pod_of_the_whole_chart(cluster: Cluster, helm: Helm) -> None:
    for one in helm.objects(FULL):
        one["metadata"]["namespace"] = one["metadata"].get("namespace", "").replace("prod", SPACE) or SPACE
        if one["kind"].startswith("ClusterRole"):
            del one["metadata"]["namespace"]
        strict = f"{cluster.path(one)}?fieldValidation=Strict&dryRun=All"
        try:
            cluster.call("POST", strict, one)
        except HTTPError as error:
            pytest.fail(f"{one['kind']}: {error.read().decode()}\n{yaml.safe_dump(one)}")
        if one["kind"] in ("Deployment", "Job"):
            let_in(cluster, one["metadata"]["name"], one["spec"]["template"])
