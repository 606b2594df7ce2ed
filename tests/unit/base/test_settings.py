import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.base.settings import Settings, misspelt, own_address, traces_wanted
from app.cli import run
from tests.support.instead import Machine

SHORT = ("HOST", "PORT", "DATA_DIR", "DATABASE_URL")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without settings."""
    for name in SHORT:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"ARBITER_{name}", raising=False)


def test_defaults() -> None:
    settings = Settings()
    assert (settings.host, settings.port, settings.database_url) == ("127.0.0.1", 8080, None)
    assert settings.max_body_bytes == 64 * 2**20
    assert settings.data_dir.is_absolute()


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "HOST": "::1",
        "PORT": "9",
        "DATA_DIR": "~/data",
        "DATABASE_URL": "postgresql://x",
        "ARBITER_MAX_BODY_BYTES": "2048",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert (settings.host, settings.port, settings.database_url) == ("::1", 9, "postgresql://x")
    assert settings.data_dir == Path.home() / "data"
    assert settings.max_body_bytes == 2048


def test_the_long_name_wins_where_the_short_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST", "name-of-this-machine")
    monkeypatch.setenv("ARBITER_HOST", "127.0.0.2")
    assert Settings().host == "127.0.0.2"


def test_an_empty_database_url_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "")
    assert Settings().database_url is None


def test_a_relative_folder_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", "here")
    assert Settings().data_dir == tmp_path / "here"


def test_the_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, machine: Machine, tmp_path: Path) -> None:
    machine.is_used_by(1000)
    machine.runs("linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Settings().data_dir == tmp_path / "arbiter"
    machine.is_used_by(0)
    assert Settings().data_dir == Path("/var/lib/arbiter")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "-1"),
        ("PORT", "65536"),
        ("PORT", "http"),
        ("ARBITER_LOG_LEVEL", "loud"),
        ("ARBITER_MAX_BODY_BYTES", "0"),
    ],
)
def test_what_makes_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError):
        Settings()


def test_a_misspelt_variable_is_refused_with_the_nearest_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARBITER_DECISION_LOGS", "sync")
    assert run(["serve"]) == 3
    assert (
        "ARBITER_DECISION_LOGS: there is no such setting; the nearest is ARBITER_DECISION_LOG"
        in capsys.readouterr().err
    )
    monkeypatch.delenv("ARBITER_DECISION_LOGS")
    monkeypatch.setenv("ARBITER_TOKEN", "t")
    assert misspelt() == []


def test_commands_look_for_the_service_at_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    assert own_address() == "http://127.0.0.1:8080"
    monkeypatch.setenv("PORT", "9099")
    assert own_address() == "http://127.0.0.1:9099"
    monkeypatch.setenv("ARBITER_PORT", "9100")
    assert own_address() == "http://127.0.0.1:9100"


@pytest.mark.parametrize(
    ("given", "port"),
    [("0", 8080), ("", 8080), ("http", 8080), ("-1", 8080), ("1", 1), ("65535", 65535)],
)
def test_what_is_no_port_is_the_usual_one(monkeypatch: pytest.MonkeyPatch, given: str, port: int) -> None:
    monkeypatch.setenv("ARBITER_PORT", given)
    assert own_address() == f"http://127.0.0.1:{port}"


def test_names_of_settings_are_read_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("arbiter_url", "Arbiter_Log_Level", "ARBITERS", "MY_ARBITER_X"):
        monkeypatch.setenv(name, "error")
    assert misspelt() == []
    monkeypatch.setenv("arbiter_log_leven", "error")
    monkeypatch.setenv("ARBITER_A", "error")
    first, second = misspelt()
    assert first.startswith("ARBITER_A: there is no such setting; the nearest is ARBITER_")
    assert second == "arbiter_log_leven: there is no such setting; the nearest is ARBITER_LOG_LEVEL"


@pytest.mark.parametrize(
    ("host", "exposed"),
    [("127.0.0.1", False), ("127.9.9.9", False), ("::1", False), ("localhost", False), ("0.0.0.0", True),
     ("::", True), ("10.0.0.1", True), ("arbiter.example", True), ("", True)],
)  # fmt: skip
def test_whom_an_address_is_open_to(host: str, exposed: bool) -> None:
    assert Settings(host=host).is_exposed is exposed


@pytest.mark.parametrize(("poll", "stale"), [(0.5, 5.0), (1.25, 5.0), (1.5, 6.0), (60, 240.0)])
def test_names_are_stale_after_four_looks_missed_but_not_at_once(poll: float, stale: float) -> None:
    assert Settings(configuration_poll_seconds=poll).heads_stale_seconds == stale


def test_a_provider_is_stated_whole() -> None:
    issuer = "https://id.example"
    with pytest.raises(ValidationError, match="ARBITER_OIDC_ISSUER needs ARBITER_OIDC_AUDIENCE"):
        Settings(oidc_issuer=issuer, authentication="required")
    with pytest.raises(ValidationError, match="ARBITER_OIDC_ISSUER needs ARBITER_AUTHENTICATION=required"):
        Settings(oidc_issuer=issuer, oidc_audience="a")
    assert Settings(oidc_issuer=issuer, oidc_audience="a", authentication="required").oidc_issuer == issuer
    assert Settings(oidc_audience="a").oidc_audience == "a"


def test_settings_stay_as_they_are_and_may_be_given_by_name() -> None:
    settings = Settings(port=9, nobody=1)  # pyright: ignore[reportCallIssue]
    assert settings.port == 9
    with pytest.raises(ValidationError):
        settings.port = 10  # pyright: ignore[reportAttributeAccessIssue]


def test_the_folder_of_a_user_follows_the_customs_of_the_system(
    monkeypatch: pytest.MonkeyPatch, machine: Machine, tmp_path: Path
) -> None:
    machine.is_used_by(1000)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    machine.runs("linux")
    assert Settings().data_dir == tmp_path / ".local" / "share" / "arbiter"
    monkeypatch.setenv("XDG_DATA_HOME", "")
    assert Settings().data_dir == tmp_path / ".local" / "share" / "arbiter"
    machine.runs("darwin")
    assert Settings().data_dir == tmp_path / "Library" / "Application Support" / "arbiter"
    monkeypatch.delattr("os.geteuid")
    assert Settings().data_dir == tmp_path / "Library" / "Application Support" / "arbiter"


def test_proxies_are_those_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ARBITER_TRUSTED_PROXIES", "FORWARDED_ALLOW_IPS"):
        monkeypatch.delenv(name, raising=False)
    assert "127.0.0.1" not in Settings().proxies
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "10.0.0.1, 10.1.0.0/16")
    assert "10.1.2.3" in Settings().proxies, "as it was named before it had a setting"
    monkeypatch.setenv("ARBITER_TRUSTED_PROXIES", "10.0.0.1")
    assert "10.0.0.1" in Settings().proxies
    assert "10.1.2.3" not in Settings().proxies
    monkeypatch.setenv("ARBITER_TRUSTED_PROXIES", "proxy.example")
    with pytest.raises(ValidationError, match=r"'proxy\.example' is neither an address nor a network"):
        Settings()


ENDPOINT = {"EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


@pytest.mark.parametrize(
    ("given", "wanted", "why_not"),
    [
        ({}, False, None), (ENDPOINT, True, None), ({"TRACES_EXPORTER": " OTLP "}, True, None),
        ({"EXPORTER_OTLP_TRACES_ENDPOINT": "http://c"}, True, None),
        ({"TRACES_EXPORTER": "none"} | ENDPOINT, False, None),
        ({"SDK_DISABLED": "True"} | ENDPOINT, False, None), ({"SDK_DISABLED": "false"} | ENDPOINT, True, None),
        ({"EXPORTER_OTLP_ENDPOINT": "  "}, False, None),
        ({"TRACES_EXPORTER": "zipkin"}, False, "OTEL_TRACES_EXPORTER=zipkin: only otlp is there"),
        ({"EXPORTER_OTLP_PROTOCOL": "grpc"}, False, None),
        (ENDPOINT | {"EXPORTER_OTLP_PROTOCOL": "grpc"}, False,
         "OTEL_EXPORTER_OTLP_PROTOCOL=grpc: only http/protobuf is there"),
        (ENDPOINT | {"EXPORTER_OTLP_PROTOCOL": "grpc", "EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, True, None),
    ],
)  # fmt: skip
def test_whether_traces_are_wanted(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], wanted: bool, why_not: str | None
) -> None:
    """As the specification of OpenTelemetry's variables has it: empty is unset, the one for traces goes first."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(f"OTEL_{name}", value)
    assert traces_wanted() == (wanted, why_not)
