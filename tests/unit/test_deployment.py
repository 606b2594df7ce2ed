"""The files that deploy: they parse, and name what is really there."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def services() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


def test_compose_is_the_service_and_postgres_18(services: dict[str, Any]) -> None:
    assert set(services) == {"arbiter", "postgres"}
    assert services["postgres"]["image"] == "postgres:18"
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
    assert "USER arbiter" in lines


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


def test_ci_runs_check_test_and_clients() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert re.findall(r"^make (\w+)$", script, re.MULTILINE) == ["check", "test", "clients"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_the_command_of_the_project_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["arbiter"].partition(":")
    assert callable(getattr(__import__(module, fromlist=[function]), function))
