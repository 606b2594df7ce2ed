from pathlib import Path

import pytest
from pydantic import ValidationError

from app.cli import run
from app.settings import Settings, misspelt, own_address

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


def test_the_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Settings().data_dir == tmp_path / "arbiter"
    monkeypatch.setattr("os.geteuid", lambda: 0)
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
