"""Helm on the chart; values that use all of it, and another one for each."""

import os
import shutil
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.build import helm

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "arbiter"
KUBERNETES = "1.37.2"

FULL: dict[str, Any] = {
    "database": {"existingSecret": "postgres", "key": "url"},
    "console": {"existingSecret": "console"},
    "settings": {"ARBITER_REQUEST_TIMEOUT": 30},
    "follow": {
        "existingSecret": "follower",
        "clusters": [
            {"cluster": "production", "engine": "kueue"},
            {"cluster": "other", "engine": "kai", "snapshot": "s", "configuration": "c", "kubeconfigSecret": "other"},
            {"cluster": "third", "engine": "yunikorn"},
        ],
    },
    "telemetry": {"endpoint": "http://collector:4318", "samplerArg": 0.5, "headersSecret": "collector"},
    "ingress": {"enabled": True, "host": "arbiter.example"},
    "networkPolicy": {"egress": True},
    "serviceMonitor": {"enabled": True, "existingSecret": "scraper"},
    "prometheusRule": {"enabled": True},
    "dashboard": {"enabled": True},
}
_REQUESTS = {"requests": {"cpu": "2"}}
CHANGED: dict[str, Any] = {
    "replicaCount": 3,
    "workers": 4,
    "image.repository": "registry.example/arbiter",
    "image.tag": "0.2.0",
    "image.digest": "sha256:" + 64 * "0",
    "image.pullPolicy": "Always",
    "imagePullSecrets": [{"name": "registry"}],
    "nameOverride": "decider",
    "fullnameOverride": "decider",
    "database.url": "postgresql://arbiter:secret@db/arbiter",
    "database.existingSecret": "another",
    "database.key": "uri",
    "console.enabled": False,
    "console.existingSecret": "another",
    "console.key": "key",
    "settings": {"ARBITER_LOG_FORMAT": "console"},
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "resources": _REQUESTS,
    "readiness": "everything",
    "terminationGracePeriodSeconds": 40,
    "podDisruptionBudget.enabled": False,
    "podDisruptionBudget.maxUnavailable": "50%",
    "service.type": "NodePort",
    "service.port": 8081,
    "service.sticky": True,
    "service.annotations": {"a": "b"},
    "ingress.enabled": False,
    "ingress.className": "nginx",
    "ingress.host": "other.example",
    "ingress.tlsSecret": "tls",
    "ingress.annotations": {"a": "b"},
    "networkPolicy.enabled": False,
    "networkPolicy.from": [{"podSelector": {}}],
    "networkPolicy.egress": False,
    "networkPolicy.to": [{"ports": [{"port": 5432}]}],
    "serviceAccount.create": False,
    "serviceAccount.name": "somebody",
    "serviceAccount.annotations": {"a": "b"},
    "migration.enabled": False,
    "migration.activeDeadlineSeconds": 60,
    "migration.resources": _REQUESTS,
    "worker.replicaCount": 0,
    "worker.terminationGracePeriodSeconds": 5,
    "worker.resources": _REQUESTS,
    "follow.clusters": [],
    "follow.existingSecret": "another",
    "follow.key": "ARBITER_TOKEN",
    "follow.createRoles": False,
    "follow.metricsPort": 9000,
    "follow.resources": _REQUESTS,
    "telemetry.endpoint": "https://other:4318",
    "telemetry.sampler": "traceidratio",
    "telemetry.samplerArg": 0.1,
    "telemetry.headersSecret": "another",
    "telemetry.headersKey": "headers",
    "serviceMonitor.enabled": False,
    "serviceMonitor.interval": "15s",
    "serviceMonitor.labels": {"release": "prometheus"},
    "serviceMonitor.existingSecret": "another",
    "serviceMonitor.key": "bearer",
    "prometheusRule.enabled": False,
    "prometheusRule.labels": {"release": "prometheus"},
    "dashboard.enabled": False,
    "dashboard.labels": {"grafana": "yes"},
    "podAnnotations": {"a": "b"},
    "podLabels": {"team": "scheduling"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "control-plane", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}]}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}],
    "priorityClassName": "system-cluster-critical",
}  # fmt: skip
"""By path, a value that is neither the default nor that of ``FULL``."""


class Helm:
    """Helm with homes of its own in ``folder``."""

    def __init__(self, folder: Path, kubeconfig: Path | None = None) -> None:
        self._folder = folder
        homes = {f"HELM_{name}_HOME": str(folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        self._environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), **homes}
        if kubeconfig is not None:
            self._environment["KUBECONFIG"] = str(kubeconfig)

    def start(self, command: str, *words: str, values: dict[str, Any] | None = None) -> subprocess.Popen[str]:
        """Begin a command on the chart."""
        given: list[str] = []
        if values is not None:
            file = self._folder / "values.yaml"
            file.write_text(yaml.safe_dump(values))
            given = ["--values", str(file)]
        return subprocess.Popen(
            [str(helm()), command, *words, *given],
            cwd=CHART, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, command: str, *words: str, values: dict[str, Any] | None = None) -> str:
        """What it prints. Raises ValueError with what it says is wrong."""
        process = self.start(command, *words, values=values)
        printed, said = process.communicate(timeout=300)
        if process.returncode:
            raise ValueError(said)
        return printed

    def rendered(self, values: dict[str, Any]) -> str:
        """The manifests, as one text."""
        return self.run("template", "arbiter", ".", "--namespace", "prod", "--kube-version", KUBERNETES, values=values)

    def each(self, situations: list[dict[str, Any]]) -> list[str]:
        """The manifests for each of many values, in one run: of a chart that has this one once for each, by aliases."""
        around = self._folder / "around"
        shutil.copytree(CHART, around / "charts" / "arbiter", dirs_exist_ok=True)
        names = [f"arbiter{number:04}" for number in range(len(situations))]
        version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
        about = {"apiVersion": "v2", "name": "around", "version": "0.0.0", "dependencies": [
            {"name": "arbiter", "version": version, "alias": name} for name in names]}  # fmt: skip
        (around / "Chart.yaml").write_text(yaml.safe_dump(about))
        values = dict(zip(names, situations, strict=True))
        printed = self.run("template", "x", str(around), "--kube-version", KUBERNETES, values=values)
        found = dict.fromkeys(names, "")
        for part in f"\n{printed}".split("\n---\n# Source: around/charts/")[1:]:
            name = part.partition("/")[0]
            found[name] += part.replace(name, "arbiter").rstrip() + "\n---\n"
        return [found[name] for name in names]

    def objects(self, values: dict[str, Any]) -> list[dict[str, Any]]:
        """The same as objects."""
        return [one for one in yaml.safe_load_all(self.rendered(values)) if one]


def changed(values: dict[str, Any], path: str, to: Any) -> dict[str, Any]:
    """``values`` with another one at ``path``."""
    made = deepcopy(values)
    at = made
    *parents, last = path.split(".")
    for name in parents:
        at = at.setdefault(name, {})
    at[last] = to
    return made


def paths(values: dict[str, Any]) -> list[str]:
    """The path of every value; maps that are empty or free in what they hold (labels, resources) are values."""
    free = {"resources", "labels", "annotations", "settings"}
    found: list[str] = []
    for name, value in values.items():
        if isinstance(value, dict) and value and name not in free:
            found += [f"{name}.{below}" for below in paths(value)]
        else:
            found.append(name)
    return found
