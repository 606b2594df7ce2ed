"""Threads that are the first to meet a type, all at once: nothing ends by it."""

import subprocess
import sys

from tests.support.live import ROOT, environment_of

EVERY_TYPE = """
import sys, threading
import msgspec
{start}
def below(shape):
    for one in shape.__subclasses__():
        yield one
        yield from below(one)

def meet(shape, start):
    names = shape.__struct_encode_fields__
    body = msgspec.json.encode({{name: None for name in reversed(names)}})  # the last is worked out last
    start.wait()
    try:
        msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError:
        pass

sys.setswitchinterval(1e-6)
shapes = sorted(set(below(msgspec.Struct)), key=repr)
for shape in shapes:
    start = threading.Barrier(4)
    threads = [threading.Thread(target=meet, args=(shape, start)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(len(shapes))
"""
SERVICE = """
from app.base.settings import Settings
from app.service.main import create_app
create_app(Settings())
"""
NESTED = r"""
from app.base.decoding import prepare_types
lines = []
for n in range(300):
    lines += [f"class I{n}_{i}(msgspec.Struct):\n    a: 'int | None' = None" for i in range(30)]
    lines += [f"class O{n}(msgspec.Struct):", *(f"    f{i}: 'I{n}_{i} | None' = None" for i in range(30))]
exec("\n".join(lines))
prepare_types()
"""


def ended(start: str) -> subprocess.CompletedProcess[str]:
    """How a process ends that starts so, and whose threads then meet every type."""
    command = [sys.executable, "-c", EVERY_TYPE.format(start=start)]
    environment = environment_of({"PYTHONPATH": str(ROOT)})
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)


def test_no_type_of_the_service_is_met_half_worked_out() -> None:
    done = ended(SERVICE)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 300


def test_types_that_were_prepared_are_met_by_all_at_once() -> None:
    done = ended(NESTED)
    assert done.returncode == 0, done.stderr[-2000:]
