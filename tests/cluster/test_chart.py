"""The Helm chart: linted, rendered with every value, and what it refuses."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from app.base.settings import Settings
from app.following.objects import FOLLOWED, manifests
from app.solver.model.configuration import EngineName
from openapi import chart as made
from tests.cluster.build import missing_helm
from tests.cluster.chart import CHANGED, CHART, FULL, KUBERNETES, ROOT, Helm, changed, paths

Item = dict[str, Any]
SMALL = {"database": {"existingSecret": "postgres"}}
REFUSED = {
    "a value that is none": (SMALL | {"replicas": 3}, "replicas"),
    "no replicas": (SMALL | {"replicaCount": 0}, "replicaCount"),
    "a misspelt setting": (SMALL | {"settings": {"ARBITER_REQEST_TIMEOUT": 3}}, "ARBITER_REQEST_TIMEOUT"),
    "a setting that the chart decides": (SMALL | {"settings": {"ARBITER_PORT": 3}}, "ARBITER_PORT"),
    "no database": ({}, "database.existingSecret"),
    "two databases": ({"database": {"url": "postgresql://a@b/c", "existingSecret": "d"}}, "give one of them"),
    "another kind of database": ({"database": {"url": "mysql://a@b/c"}}, "url"),
    "an engine that is not followed": (
        SMALL | {"follow": {"existingSecret": "t", "clusters": [{"cluster": "c", "engine": "ytsaurus"}]}}, "engine"),
    "following without a token": (SMALL | {"follow": {"clusters": [{"cluster": "c", "engine": "kai"}]}}, "follow.ex"),
    "scraping without a token": (SMALL | {"serviceMonitor": {"enabled": True}}, "serviceMonitor.existingSecret"),
    "an ingress without a host": (SMALL | {"ingress": {"enabled": True}}, "ingress.host"),
    "less time than stopping takes": (SMALL | {"terminationGracePeriodSeconds": 10}, "terminationGracePeriodSeconds"),
}  # fmt: skip


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    if (why := missing_helm()) is not None:
        pytest.skip(why)
    return Helm(tmp_path_factory.mktemp("helm"))


def pods(objects: list[Item]) -> Iterator[Item]:
    """What the pods of all kinds of objects are made of."""
    for one in objects:
        if one["kind"] in ("Deployment", "Job"):
            yield one["spec"]["template"]["spec"]
        elif one["kind"] == "Pod":
            yield one["spec"]


def test_it_passes_helms_lint(helm: Helm) -> None:
    for values in (SMALL, FULL):
        assert "0 chart(s) failed" in helm.run("lint", ".", "--strict", "--kube-version", KUBERNETES, values=values)


def test_every_value_does_something(helm: Helm) -> None:
    situations = {path: changed(FULL, path, value) for path, value in CHANGED.items()}
    del situations["database.url"]["database"]["existingSecret"]
    before, again, *after = helm.each([FULL, FULL, *situations.values()])
    assert before == again
    assert len(before) > 10_000
    assert [path for path, shown in zip(situations, after, strict=True) if shown == before] == []


def test_every_value_is_tried_and_documented_with_its_default() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert sorted(CHANGED) == sorted(paths(values))
    stated = dict(re.findall(r"^\| `([\w.]+)` \| `(.*?)` \|", (CHART / "README.md").read_text(), re.MULTILINE))
    assert list(stated) == paths(values)
    for path, default in stated.items():
        value = values
        for name in path.split("."):
            value = value[name]
        assert yaml.safe_load(default) == value, path


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_wrong_is_refused_by_name(what: str, helm: Helm) -> None:
    values, named = REFUSED[what]
    with pytest.raises(ValueError, match=re.escape(named)):
        helm.rendered(values)


@pytest.mark.parametrize("shadow", [False, True])
def test_a_follower_has_the_rights_that_the_code_asks_for(helm: Helm, shadow: bool) -> None:
    for engine in get_args(EngineName):
        if engine not in FOLLOWED:
            continue
        cluster = {"cluster": "c", "engine": engine, "shadow": shadow}
        values = SMALL | {"follow": {"existingSecret": "t", "clusters": [cluster]}}
        found = [one for one in helm.objects(values) if one["apiVersion"].startswith("rbac")]
        made = manifests(engine, "prod", "arbiter", shadow=shadow)
        wanted = [one for one in made if one["apiVersion"].startswith("rbac")]
        for one in (*found, *wanted):
            one["metadata"] = one["metadata"].get("namespace")
            one.get("roleRef", {}).pop("name", None)
        key = json.dumps
        assert sorted(found, key=lambda one: key(one, sort_keys=True)) == sorted(
            wanted, key=lambda one: key(one, sort_keys=True)
        )


def test_a_service_that_follows_nothing_has_no_rights_and_no_token(helm: Helm) -> None:
    found = helm.objects(SMALL)
    assert not [one for one in found if one["apiVersion"].startswith("rbac")]
    assert not any(pod["automountServiceAccountToken"] or volume(pod) for pod in pods(found))


def volume(pod: dict[str, Any]) -> bool:
    """Whether a token of the account can be mounted."""
    return any("projected" in one for one in pod["volumes"])


def test_only_followers_of_the_cluster_that_they_run_in_get_its_token(helm: Helm) -> None:
    for given, holders in ((FULL, None), ({"kubeconfigSecret": "west"}, set[str]()), ({}, {"follow-one"})):
        clusters = [{"cluster": "one", "engine": "kueue", **given}]
        values = FULL if holders is None else {**SMALL, "follow": {"existingSecret": "t", "clusters": clusters}}
        for pod in pods(helm.objects(values)):
            assert pod["automountServiceAccountToken"] is False
            mounting = {
                container["name"] for container in pod["containers"]
                if any(one["mountPath"].startswith("/var/run/secrets") for one in container.get("volumeMounts", ()))
            }  # fmt: skip
            assert all(name.startswith("follow-") for name in mounting)
            assert volume(pod) is bool(mounting)
            assert holders is None or mounting in (holders, set())


def test_nothing_can_write_or_rise_and_no_variable_of_kubernetes_is_taken_for_a_setting(helm: Helm) -> None:
    for pod in pods(helm.objects(FULL)):
        assert pod["enableServiceLinks"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] >= 10000
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True, "runAsNonRoot": True,
            }  # fmt: skip
            assert container["resources"]["limits"]["memory"]


def test_what_the_chart_has_of_the_code_is_what_the_code_says() -> None:
    assert made.stale() == []
    names = json.loads((CHART / "values.schema.json").read_text())["definitions"]["setting"]["enum"]
    assert {f"ARBITER_{name.upper()}" for name in Settings.model_fields} - set(names) == {
        f"ARBITER_{name.upper()}" for name in made.OWN
    }


def test_the_chart_has_the_version_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (version, version)


def test_the_packaged_chart_is_whole(helm: Helm, tmp_path: Path) -> None:
    helm.start("package", ".", "--destination", str(tmp_path)).communicate(timeout=60)
    (file,) = tmp_path.glob("arbiter-*.tgz")
    packed = helm.run(
        "template", "arbiter", str(file), "--namespace", "prod", "--kube-version", KUBERNETES, values=FULL
    )
    assert packed == helm.rendered(FULL)


@pytest.mark.parametrize("page", ["deploy/helm/arbiter/README.md", "docs/deploy.md"])
def test_the_command_that_installs_is_right(page: str, helm: Helm) -> None:
    text = (ROOT / page).read_text().replace("\\\n", " ")
    (command,) = re.findall(r"^ *helm install (.*)$", text, re.MULTILINE)
    name, chart, *options = shlex.split(command)
    assert ROOT / chart == CHART
    shown = helm.run("template", name, ".", "--kube-version", KUBERNETES, *options)
    assert "image: registry.example/arbiter:" in shown
    assert "name: arbiter-database" in shown


@pytest.mark.parametrize("page", ["deploy/helm/arbiter/README.md", "docs/kubernetes.md"])
def test_the_examples_of_following_are_right(page: str, helm: Helm) -> None:
    (example,) = re.findall(r"^    follow:\n(?:     .*\n)+", (ROOT / page).read_text(), re.MULTILINE)
    (service,) = (one for one in helm.objects(SMALL | yaml.safe_load(example))
                  if one["metadata"]["name"] == "arbiter" and one["kind"] == "Deployment")  # fmt: skip
    followers = service["spec"]["template"]["spec"]["containers"][1:]
    assert [one["command"][2] for one in followers][:1] == ["kueue"]
    assert ("--shadow" in followers[0]["command"]) == ("shadow: true" in example)
