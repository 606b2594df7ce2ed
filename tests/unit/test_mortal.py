"""A run that is killed leaves nothing behind."""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STARTER = """
import shutil, signal, sys
from tests.support.mortal import mortal
child = mortal([shutil.which("sleep"), "3600"], signal.SIGKILL, stdin=sys.stdin)
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_what_tests_start_dies_with_whoever_started_it() -> None:
    reading, writing = os.pipe()  # closed at the other end once neither of the two processes holds it
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writing
    )
    os.close(writing)
    with starter, open(reading, "rb") as gone:
        assert starter.stdout is not None
        child = int(starter.stdout.readline())
        try:
            assert select.select([gone], [], [], 0.1)[0] == []
            starter.kill()
            assert select.select([gone], [], [], 60)[0] == [gone]
            assert gone.read() == b""
        finally:
            starter.kill()
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
