"""A kube-apiserver on an etcd, each a process of its own: started, broken, compacted and started again at will."""

import base64
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from app.following.objects import FOLLOWED
from app.solver.model.configuration import EngineName
from tests.cluster.build import folder as programs
from tests.support.mortal import mortal

_SECONDS = 240.0
"""How long a start may take on a slow machine."""


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Cluster:
    """An API server without nodes. ``address`` stays the same over restarts; ``token`` is that of an administrator;
    ``etcd_port``: where its etcd is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = secrets.token_hex(16)
        self.tokens = {self.token: ("admin", "system:masters")}
        self.etcd_port, self._peer_port, self._port = free_port(), free_port(), free_port()
        self.address = f"https://127.0.0.1:{self._port}"
        self.etcd: subprocess.Popen[bytes] | None = None
        self.server: subprocess.Popen[bytes] | None = None
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        (folder / "service.key").write_bytes(
            key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, plain)
        )

    def user(self, name: str) -> str:
        """The token of a new user without any rights; known from the next start on."""
        token = secrets.token_hex(16)
        self.tokens[token] = (name, "")
        return token

    def start(self) -> None:
        """Both, until they answer."""
        if self.etcd is None:
            peer, client = (f"http://127.0.0.1:{port}" for port in (self._peer_port, self.etcd_port))
            self.etcd = self._run(
                "etcd", "--data-dir", str(self.folder / "etcd"), "--unsafe-no-fsync", "--log-level", "error",
                "--max-txn-ops", "4096",
                "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
                "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
            )  # fmt: skip
        self.start_server()

    def start_server(self) -> None:
        """The API server alone."""
        lines = [f'{token},{user},{user},"{group}"' for token, (user, group) in self.tokens.items()]
        (self.folder / "tokens.csv").write_text("\n".join(lines) + "\n")
        key = str(self.folder / "service.key")
        self.server = self._run(
            "kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{self.etcd_port}",
            "--bind-address", "127.0.0.1", "--secure-port", str(self._port), "--cert-dir", str(self.folder / "certs"),
            "--service-account-issuer", "https://cluster.test", "--service-account-key-file", key,
            "--service-account-signing-key-file", key, "--token-auth-file", str(self.folder / "tokens.csv"),
            "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24",
            "--disable-admission-plugins", "ServiceAccount", "--etcd-compaction-interval", "0",
            "--endpoint-reconciler-type", "none",
        )  # fmt: skip
        deadline = time.monotonic() + _SECONDS
        while not self._ready():
            assert self.server.poll() is None, (self.folder / "kube-apiserver.log").read_text()[-3000:]
            assert time.monotonic() < deadline, "the API server does not answer"
            time.sleep(0.2)

    def kill_server(self) -> None:
        """End the API server at once."""
        assert self.server is not None
        self.server.kill()
        self.server.wait()
        self.server = None

    def stop(self) -> None:
        """End both."""
        for process in (self.server, self.etcd):
            if process is not None:
                process.kill()
                process.wait()
        self.server = self.etcd = None

    def start_scheduler(self, *extenders: dict[str, Any]) -> subprocess.Popen[bytes]:
        """kube-scheduler with these extenders; whoever starts it ends it."""
        file = self.folder / "scheduler.yaml"
        file.write_text(yaml.safe_dump({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.kubeconfig())}, "leaderElection": {"leaderElect": False},
            "extenders": list(extenders),
        }))  # fmt: skip
        return self._run("kube-scheduler", "--config", str(file), "--secure-port", "0")

    def compact(self) -> None:
        """Let etcd forget all history up to now."""
        made = self.call("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "tick-"}})
        revision = made["metadata"]["resourceVersion"]
        self._ask_etcd("compaction", {"revision": revision, "physical": True})

    def restore(self, items: Iterable[dict[str, Any]], without: Iterable[dict[str, Any]] = ()) -> int:
        """Have ``items`` as they are, with the UIDs and times that an API server would give itself, and ``without`` no
        more: all in one transaction of etcd, as from a backup. Its revision."""
        put = {_key(item): base64.b64encode(json.dumps(item).encode()).decode() for item in items}
        gone = {_key(item) for item in without} - put.keys()
        operations: list[dict[str, Any]] = [{"requestDeleteRange": {"key": key}} for key in sorted(gone)]
        operations += [{"requestPut": {"key": key, "value": value}} for key, value in put.items()]
        return int(self._ask_etcd("txn", {"success": operations})["header"]["revision"])

    def _ask_etcd(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.etcd_port}/v3/kv/{what}"
        request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> dict[str, Any]:
        """One request. Raises HTTPError."""
        sent = None if body is None else json.dumps(body).encode()
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": kind}
        request = urllib.request.Request(self.address + path, sent, headers, method=method)
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60, context=self._context()) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                # After a restart a kind is read anew before it is served.
                if error.code != HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def define(self, crd: dict[str, Any]) -> None:
        """Add a kind, and wait until it is served."""
        self.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        spec, deadline = crd["spec"], time.monotonic() + _SECONDS
        for version in spec["versions"]:
            path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
            while True:
                try:
                    self.call("GET", path)
                    break
                except urllib.error.HTTPError:
                    assert time.monotonic() < deadline, f"{path} is never served"
                    time.sleep(0.1)

    def apply(self, *items: dict[str, Any]) -> None:
        """Create objects whole, status and all."""
        for item in items:
            made = self.call("POST", self.path(item), item)
            if item.get("status") and item["kind"] in ("Pod", "Node"):
                self.call("PATCH", self.path(made, named=True) + "/status", {"status": item["status"]})

    def clear(self, paths: Iterable[str]) -> None:
        """Delete all objects of each path; those that the server makes itself stay, and namespaces, which only a
        controller that nobody runs here could end."""
        for path in paths:
            if path.endswith(("/namespaces", "k8s.io/v1/priorityclasses")):
                continue
            spaces = {item["metadata"].get("namespace") for item in self.call("GET", path)["items"]}
            for space in spaces:
                at = path if space is None or "/namespaces/" in path else _within(path, space)
                self.call("DELETE", f"{at}?gracePeriodSeconds=0")

    def path(self, item: dict[str, Any], *, named: bool = False) -> str:
        """Where an object is, or those of its kind."""
        version, metadata = item["apiVersion"], item["metadata"]
        plural = PLURALS.get(item["kind"]) or item["kind"].lower() + "s"
        space = f"namespaces/{metadata['namespace']}/" if metadata.get("namespace") else ""
        base = f"/{'apis' if '/' in version else 'api'}/{version}/{space}{plural}"
        return f"{base}/{metadata['name']}" if named else base

    def kubeconfig(self, token: str | None = None) -> Path:
        """A kubeconfig for somebody's token."""
        file = self.folder / f"kubeconfig-{(token or self.token)[:8]}.yaml"
        authority = base64.b64encode((self.folder / "certs" / "apiserver.crt").read_bytes()).decode()
        file.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": self.address, "certificate-authority-data": authority}}],
            "users": [{"name": "test", "user": {"token": token or self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }))  # fmt: skip
        return file

    def _ready(self) -> bool:
        try:
            request = urllib.request.Request(
                self.address + "/readyz", headers={"Authorization": f"Bearer {self.token}"}
            )
            with urllib.request.urlopen(request, timeout=5, context=self._context()) as answer:
                return answer.status == 200
        except OSError:
            return False

    @staticmethod
    @cache
    def _context() -> ssl.SSLContext:
        """Made once, and without the authorities that a system trusts: reading them takes longer than a request."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        # Not this machine's variables: a proxy would come between the API server and its etcd.
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.folder)}
        with (self.folder / f"{program}.log").open("ab") as log:
            command = [programs() / program, *arguments]
            return mortal(command, signal.SIGKILL, stdout=log, stderr=log, env=environment, cwd=self.folder)


def _key(item: dict[str, Any]) -> str:
    """Where an object is in etcd, as its interface writes keys."""
    group, _, _ = item["apiVersion"].rpartition("/")
    plural = "minions" if item["kind"] == "Node" else PLURALS.get(item["kind"]) or item["kind"].lower() + "s"
    metadata = item["metadata"]
    parts = ["/registry", group if "." in group and "k8s.io" not in group else "", plural]
    path = "/".join(part for part in (*parts, metadata.get("namespace", ""), metadata["name"]) if part)
    return base64.b64encode(path.encode()).decode()


def _within(path: str, space: str) -> str:
    base, _, plural = path.rpartition("/")
    return f"{base}/namespaces/{space}/{plural}"


PLURALS = {
    "Ingress": "ingresses", "NetworkPolicy": "networkpolicies", "PriorityClass": "priorityclasses",
    "WorkloadPriorityClass": "workloadpriorityclasses",
}  # fmt: skip

NAMESPACED = {"LocalQueue", "Workload", "PodGroup"}
"""Of the kinds that the systems define."""


@contextmanager
def cluster(folder: Path) -> Generator[Cluster]:
    """A running cluster; its folder goes with it."""
    made = Cluster(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def definition(kind: str, plural: str, group: str, *versions: str, namespaced: bool) -> dict[str, Any]:
    """A minimal CustomResourceDefinition: objects of any shape, the first version stored."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [
                {"name": version, "served": True, "storage": i == 0, "schema": schema}
                for i, version in enumerate(versions)
            ],
        },
    }


def followed_definitions(*engines: EngineName) -> list[dict[str, Any]]:
    """Of every kind that is followed of these engines and that an API server has not of itself, in all versions read;
    the oldest is stored, as in a cluster that was upgraded."""
    kinds = [kind for engine in engines for kind in FOLLOWED[engine]]
    own = {kind.name: kind for kind in kinds if "." in kind.group and not kind.group.endswith(".k8s.io")}
    return [
        definition(name, kind.plural, kind.group, *reversed(kind.versions), namespaced=name in NAMESPACED)
        for name, kind in own.items()
    ]
