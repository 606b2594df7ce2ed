"""What kubectl is told about the plugin."""

import pytest

from app import cli
from tests.support.instead import Machine


@pytest.mark.parametrize(
    ("words", "said"),
    [(["pl"], ["plan", ":4"]), (["wh"], ["why", ":4"]), (["plan", "job"], [":0"]), (["nothing-"], [":4"])],
)
def test_commands_are_completed(
    words: list[str], said: list[str], machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.calls("kubectl_complete-arbiter", *words)
    cli.complete()
    assert capsys.readouterr().out.split() == said
