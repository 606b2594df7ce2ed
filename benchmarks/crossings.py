"""Through how many files one warm decision runs: ``python -m benchmarks.crossings``, in this process, no database.

A profile hook sees every call of a Python function, from the head of ``POST /v1/decisions`` (an
example of each engine) to the end of its answer. A crossing is a call from one file of ``app`` into another,
whatever library lies between. Reported, and not asserted: how far somebody has to walk who reads along.
"""

import asyncio
import inspect
import json
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from fastapi import FastAPI

from app.base import logs
from app.base.settings import Settings
from app.service.main import create_app
from app.workers import dispatcher

ROOT = Path(__file__).parents[1]
APP = str(ROOT / "app")
EXAMPLES = ("kueue-classic", "yunikorn-guarantee", "kai-reclaim", "ytsaurus-starvation")
_WARM = 5
QUIET = Settings(database_url=None, workers=0, log_level="error")


_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Walk:
    """Files of ``app`` that are entered, and the calls from one to another. ``with`` it counts."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.crossings: Counter[tuple[str, str]] = Counter()
        self.calls = 0
        self._entered: set[FrameType] = set()

    def __enter__(self) -> "Walk":
        sys.setprofile(self._seen)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _seen(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(APP):
            return
        if frame.f_code.co_flags & _RESUMED:
            if frame in self._entered:  # it goes on: nobody has called it again
                return
            self._entered.add(frame)
        here = frame.f_code.co_filename
        self.calls += 1
        self.files[here] += 1
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(APP):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != here:
            self.crossings[_short(caller.f_code.co_filename), _short(here)] += 1


def _short(name: str) -> str:
    return str(Path(name).relative_to(APP))


async def _asked(app: FastAPI, body: bytes) -> int:
    """The status of the answer to a decision."""
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/v1/decisions", "raw_path": b"/v1/decisions", "query_string": b"", "root_path": "",
        "headers": headers, "client": ("127.0.0.1", 1), "server": ("localhost", 80), "state": {},
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"]


async def measured(body: bytes) -> Walk:
    """The walk of one decision when everything is warm."""
    app = create_app(QUIET)
    async with app.router.lifespan_context(app):
        for _ in range(_WARM):
            assert await _asked(app, body) == 200
            await asyncio.sleep(0.05)  # what is done once the answer is on its way
        with Walk() as walk:
            await _asked(app, body)
    return walk


def main() -> None:
    """A line for each engine; with ``-v`` also every crossing."""
    logs.configure(QUIET)
    dispatcher._AT_ONCE = 60.0  # pyright: ignore[reportPrivateUsage]  # watched, it takes longer than it may elsewhere
    for name in EXAMPLES:
        body = json.dumps(json.loads((ROOT / "examples" / f"{name}.json").read_bytes())).encode()
        walk = asyncio.run(measured(body))
        engine = sum(count for (_, to), count in walk.crossings.items() if to.startswith("solver"))
        print(
            f"{name}: {len(walk.files)} files, {sum(walk.crossings.values())} calls between files "
            f"({engine} of them into the solver), {walk.calls} calls"
        )
        if "-v" in sys.argv:
            for (one, other), count in walk.crossings.most_common():
                print(f"  {count:4} {one} -> {other}")


if __name__ == "__main__":
    main()
