"""The files that deploy: they parse, and name what is really there."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.base.settings import Settings

ROOT = Path(__file__).parents[2]
DIGEST = r"sha256:[0-9a-f]{64}"


@pytest.fixture
def services() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


def test_compose_is_the_service_and_postgres_18(services: dict[str, Any]) -> None:
    assert set(services) == {"arbiter", "postgres"}
    assert re.fullmatch(rf"postgres:18\.\d+@{DIGEST}", services["postgres"]["image"])
    assert services["arbiter"]["build"] == "."


def test_compose_gives_the_service_the_database_it_starts(services: dict[str, Any]) -> None:
    stated = services["postgres"]["environment"]
    url = services["arbiter"]["environment"]["DATABASE_URL"]
    user, password, database = (stated[f"POSTGRES_{name}"] for name in ("USER", "PASSWORD", "DB"))
    assert url == f"postgresql://{user}:{password}@postgres:5432/{database}"
    assert services["arbiter"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert user in services["postgres"]["healthcheck"]["test"][1]


def test_compose_publishes_on_this_machine_only(services: dict[str, Any]) -> None:
    assert services["arbiter"]["ports"] == ["127.0.0.1:8080:8080"]
    assert "ports" not in services["postgres"]


def test_compose_keeps_the_data(services: dict[str, Any]) -> None:
    # From version 18 on the image keeps its data below /var/lib/postgresql, not in .../data.
    assert services["postgres"]["volumes"] == ["postgres:/var/lib/postgresql"]


def test_what_others_can_reach_asks_for_tokens() -> None:
    (line,) = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if "HOST=" in line]
    given = dict(re.findall(r"([A-Z_]+)=(\S+)", line))
    settings = Settings(host=given["HOST"], authentication=given["ARBITER_AUTHENTICATION"])
    assert settings.is_exposed
    assert settings.authentication == "required"


def test_dockerfile_copies_what_exists_and_is_not_root() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    for line in lines:
        if line.startswith("COPY ") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), source


def stages() -> list[list[str]]:
    """The instructions of each stage of the Dockerfile, a line each; comments left out."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
    found: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("FROM "):
            found.append([])
        if line and not line.startswith("#"):
            found[-1].append(line)
    return found


def test_images_begin_with_a_digest() -> None:
    base, *others = (stage[0] for stage in stages())
    assert re.fullmatch(rf"FROM python:[\d.]+-slim-\w+@{DIGEST} AS base", base)
    assert {line.split()[1] for line in others} == {"base"}


def test_the_image_is_nobody_by_number_the_one_of_the_chart() -> None:
    *_, last = stages()
    (user,) = (line.split()[1] for line in last if line.startswith("USER "))
    pod = (ROOT / "deploy" / "helm" / "arbiter" / "templates" / "_helpers.tpl").read_text()
    uid, gid = re.findall(r"runAs(?:User|Group): (\d+)", pod)
    assert user == f"{uid}:{gid}"
    assert int(uid) >= 10000
    (made,) = (line for line in last if "useradd" in line)
    assert f"--uid {uid}" in made
    assert last.index(f"USER {user}") > last.index(made)


def test_the_last_stage_brings_no_compiler_and_asks_the_network_for_nothing() -> None:
    *_, last = stages()
    runs = [line for line in last if line.startswith("RUN ")]
    assert len(runs) == 1
    for word in ("apt", "pip", "uv ", "gcc", "curl", "wget", "http"):
        assert word not in runs[0].replace("/usr/sbin", "")
    assert all("--from=build" in line for line in last if line.startswith(("COPY", "ADD")))


def test_the_image_has_what_deploying_needs() -> None:
    for line in (line for stage in stages() for line in stage if "uv sync" in line):
        assert re.findall(r"--extra (\w+)", line) == ["kubernetes", "otel", "plot", "yson"]
        assert "--locked" in line


def test_the_image_compiles_nothing_and_its_wheel_is_built_by_what_is_locked() -> None:
    first, second = (line for stage in stages() for line in stage if "uv sync" in line)
    assert "--no-install-project --no-build" in first
    assert "--no-build" not in second
    uv = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]
    lock = {one["name"]: one for one in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    wanted = {"hatchling", *(one["name"] for one in lock["hatchling"]["dependencies"])}
    assert sorted(uv["build-constraint-dependencies"]) == sorted(f"{name}=={lock[name]['version']}" for name in wanted)


def test_hadolint_has_nothing_to_say() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [linter, "--failure-threshold", "style", ROOT / "Dockerfile"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_is_valid() -> None:
    program = Path(sys.executable).with_name("check-jsonschema")
    command = [program, "--builtin-schema", "vendor.compose-spec", ROOT / "docker-compose.yml"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_does_without_the_embedded_database() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "embedded" in project["optional-dependencies"]
    assert not [
        line
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if "uv sync" in line and ("embedded" in line or "all-extras" in line)
    ]
    assert "installed,--no-dev --extra embedded)" in (ROOT / "Makefile").read_text()


def test_one_version_of_uv_everywhere() -> None:
    versions = re.findall(
        r"(?:uv==|UV_VERSION := )([0-9.]+)", (ROOT / "Dockerfile").read_text() + (ROOT / "Makefile").read_text()
    )
    assert len(versions) == 2
    assert len(set(versions)) == 1


def test_every_target_of_make_is_in_its_help() -> None:
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    targets = set(re.findall(r"^  make (\w+)", shown.stdout, re.MULTILINE))
    assert {"help", "serve", "test", "check", "bench", "openapi", "clients", "migrate"} <= targets


def make_says(*options: str) -> str:
    done = subprocess.run(
        ["make", "--no-print-directory", *options], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_uv_trusts_whom_the_system_trusts() -> None:
    assert make_says("--eval", "shown: ; @echo $$UV_SYSTEM_CERTS", "shown") == "true\n"


def test_ci_runs_check_test_and_clients_as_a_newcomer_would(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "tools").write_text("")
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "make").write_text('#!/bin/sh\necho "make $*"\nenv\n')
    (tmp_path / "make").chmod(0o755)
    path = f"{tmp_path}:{os.defpath}"
    kept = {"PATH": path, "HOME": "/a home", "SSL_CERT_FILE": "/c.pem", "LANG": "C.UTF-8"}
    outside = {**kept, "PYTHONUNBUFFERED": "1", "DATABASE_URL": "postgresql://x", "PYTHONPATH": "/p"}
    done = subprocess.run([tmp_path / ".ci" / "run"], env=outside, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("make")] == [
        "make check",
        "make test",
        "make test-rest",
        "make clients",
    ]
    given = dict(line.split("=", 1) for line in lines if "=" in line)
    assert {name: value for name, value in given.items() if name not in ("PWD", "OLDPWD", "_")} == {
        **kept,
        "CI": "true",
    }


@pytest.mark.parametrize("root", [True, False])
def test_ci_fetches_what_a_bare_machine_lacks(root: bool, tmp_path: Path) -> None:
    for name, code in {"id": f"echo {0 if root else 1000}", "apt-get": 'echo "apt-get $*" >&2', "node": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{code}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-euc", f". {ROOT}/.ci/tools"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("mvn is missing: install maven" in done.stdout) == (not root)
    asked = done.stderr.splitlines()
    assert len([line for line in asked if "update" in line]) == root
    assert any(line.endswith("install --no-install-recommends -y maven") for line in asked) == root
    assert "nodejs" not in done.stdout


def test_the_command_of_the_project_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["arbiter"].partition(":")
    assert callable(getattr(__import__(module, fromlist=[function]), function))
