"""One account may pass through a folder, and nobody else who could not before: real folders, their access lists."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.db import embedded
from app.db.embedded import EmbeddedError, EmbeddedPostgres, Entries, NoAccessLists, allowed, let_pass, passing
from tests.support.instead import Instead, Machine

ACCOUNT = 65534
OWNER, USER, GROUP, NAMED_GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
NONE = 0xFFFFFFFF
RIGHTS = st.integers(0, 7)


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    try:
        let_pass(folder, ACCOUNT)
    except NoAccessLists as error:
        pytest.skip(f"the file system of the tests' folder has no access lists: {error}")
    folder.rmdir()
    folder.mkdir(mode=0o700)
    return folder


@st.composite
def lists(draw: st.DrawFn) -> Entries:
    found = {(tag, NONE): draw(RIGHTS) for tag in (OWNER, GROUP, OTHER)}
    found |= {(USER, who): rights for who, rights in draw(st.dictionaries(st.integers(1, 5), RIGHTS)).items()}
    found |= {(NAMED_GROUP, who): rights for who, rights in draw(st.dictionaries(st.integers(1, 5), RIGHTS)).items()}
    if len(found) > 3:
        found[MASK, NONE] = draw(RIGHTS)
    return found


def effective(entries: Entries) -> Entries:
    """What each entry grants; the mask grants nothing by itself."""
    mask = entries.get((MASK, NONE), 7)
    bounded = (USER, GROUP, NAMED_GROUP)
    return {key: rights & mask if key[0] in bounded else rights for key, rights in entries.items() if key[0] != MASK}


@given(lists(), st.integers(1, 5))
def test_only_the_account_gains_and_only_passage(entries: Entries, account: int) -> None:
    before, after = effective(entries), effective(passing(entries, account))
    assert after == before | {(USER, account): before.get((USER, account), 0) | 1}
    assert allowed(passing(entries, account), account) == after[USER, account]


def test_what_others_may_pass_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    assert not let_pass(tmp_path, ACCOUNT)
    assert tmp_path.stat().st_mode & 0o777 == 0o711


def test_it_is_done_once(closed: Path) -> None:
    assert let_pass(closed, ACCOUNT)
    assert not let_pass(closed, ACCOUNT)
    assert closed.stat().st_mode & 0o007 == 0
    assert let_pass(closed, ACCOUNT - 1), "another account is another entry"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes of other accounts")
def test_the_kernel_lets_that_account_pass_and_no_other(closed: Path) -> None:
    reader = closed / "within"
    reader.mkdir(mode=0o755)
    for above in closed.parents:  # a temporary folder of root's; removed after the test
        if above.stat().st_uid == os.geteuid() and Path(tempfile.gettempdir()) in above.parents:
            let_pass(above, ACCOUNT)
            let_pass(above, ACCOUNT - 1)

    def tried(account: int, folder: Path) -> bool:
        done = subprocess.run(
            ["ls", folder], user=account, group=account, extra_groups=[], check=False, capture_output=True
        )
        return done.returncode == 0

    assert not tried(ACCOUNT, reader)
    let_pass(closed, ACCOUNT)
    assert tried(ACCOUNT, reader)
    assert not tried(ACCOUNT, closed), "passing is not listing"
    assert not tried(ACCOUNT - 1, reader)


def test_a_file_system_without_access_lists_is_refused_with_the_choices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine, instead: Instead
) -> None:
    def refuse(*_: object) -> bytes:
        raise OSError(95, "Operation not supported")

    instead(embedded.os, getxattr=refuse)
    machine.is_used_by(0)
    instead(embedded.pwd, getpwnam=lambda _: embedded.pwd.getpwuid(os.getuid()))
    tmp_path.chmod(0o700)
    with pytest.raises(EmbeddedError, match=r"can't pass through .* Operation not supported.* set DATABASE_URL"):
        EmbeddedPostgres(tmp_path / "data").start()
    assert tmp_path.stat().st_mode & 0o777 == 0o700
