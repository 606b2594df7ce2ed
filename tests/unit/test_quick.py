"""What `make test-rest` leaves out is what `make test` has tried as far as anybody would."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.quick import goes_deeper


@pytest.mark.parametrize(
    ("text", "deeper"),
    [
        ("from tests.support.profiles import examples", True),
        ("from tests.support.profiles import Met, share", True),
        ("import tests.support.profiles", True),
        ("from tests.support import profiles", True),
        ("from tests.vectors.files import HERE, AT_HAND", True),
        ("def f():\n    from tests.vectors.files import recorded", True),
        ("from tests.support.yunikorn_laws import RESOURCES", True),  # which has examples
        ("from tests.made_one import one", True),
        ("from tests.vectors.files import HERE, files, lines", False),
        ("from tests.support.profiles import met", False),  # nobody has it without its class
        ("from examples import share", False),
        ("", False),
    ],
)
def test_a_module_that_other_profiles_try_more_of_is_told(
    text: str, deeper: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make(tmp_path, monkeypatch, "tests.made_one", "from tests.support.profiles import examples\none = 1")
    _make(tmp_path, monkeypatch, "tests.made", f"{text}\nimport tests.made")
    if "yunikorn" in text:
        __import__("tests.support.yunikorn_laws")
    assert goes_deeper("tests.made") == deeper


def _make(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    made = ModuleType(name)
    made.__file__ = str(folder / name)
    (folder / name).write_text(text)
    monkeypatch.setitem(sys.modules, name, made)
