"""What kubectl is told about the plugin."""

import pytest

from app import cli


@pytest.mark.parametrize(
    ("words", "said"),
    [(["pl"], ["plan", ":4"]), (["wh"], ["why", ":4"]), (["plan", "job"], [":0"]), (["nothing-"], [":4"])],
)
def test_commands_are_completed(
    words: list[str], said: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl_complete-arbiter", *words])
    cli.complete()
    assert capsys.readouterr().out.split() == said
