"""The command line ``arbiter``; the only package that prints. Each command is imported when it is given: some need
what takes a second to load.

Exit codes: 0 done, or nothing to evict; 1 somebody would be evicted, or documents differ; 2 an ask can't run
(wait or infeasible); 3 bad input or bad usage; 4 the service or the database can't be reached. Without a file commands
read standard input.
"""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Literal, NoReturn

from cyclopts import App, CycloptsError, Parameter

from app.base import installed_version
from app.cli.output import BAD_INPUT, ReaderGone, complain, say

_FILES, _NO_FILES = 0, 4
"""kubectl's words for: complete file names too, and: nothing but these."""

READER_GONE = 141
"""As shells say it of programs that end so: 128 and the number of SIGPIPE."""

_OF_COMMANDS = ("ARBITER_URL", "ARBITER_TOKEN", "ARBITER_CLUSTER")

_CODES = (
    "Exit codes: 0 done, or nothing to evict; 1 somebody would be evicted, or documents differ; 2 an ask can't run; "
    "3 bad input or usage, also where a manifest has an error; 4 the service or the database can't be reached."
)

application = App(
    name="arbiter",
    help_epilogue=_CODES,
    help="To run this, what must stop, and why? Answers as Kueue, YuniKorn, KAI, YTsaurus and kube-scheduler would.",
    version=lambda: f"arbiter {installed_version()}",
    version_flags=["--version"],
    exit_on_error=False,
    result_action="return_value",
)
for _command in (
    "serve:serve", "serve:worker", "offline:decide", "offline:explain", "offline:compare", "sweep:trace",
    "sweep:sweep", "plan:plan", "offline:starvation", "simulate:simulate", "follow:follow", "live:why",
    "follow:rights", "mcp:mcp",
):  # fmt: skip
    application.command(f"app.cli.{_command}")
application.command("app.cli.manifests:import_manifest", name="import")
application.command("app.cli.live:who_is_next", name="next")
application.command("app.cli.manifests:export")
application.command("app.cli.configuration:commands", name="configuration")
application.command("app.cli.serve:database")
application.command("app.cli.serve:token")


@application.command
def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Whose completion.")], /) -> int:
    """Print what makes SHELL complete this command's words: `source <(arbiter completion bash)`."""
    application.resolved_commands()
    say(application.generate_completion(shell=shell).rstrip("\n"))
    return 0


def _misspelt() -> list[str]:
    """What is wrong with variables that begin as this program's do. Loading the settings takes longer than some
    commands: only where there are variables that they alone know."""
    if not any(name.upper().startswith("ARBITER_") and name not in _OF_COMMANDS for name in os.environ):
        return []
    from app.base.settings import misspelt

    return misspelt()


def run(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line; its exit code."""
    if wrong := _misspelt():
        for sentence in wrong:
            complain(sentence)
        return BAD_INPUT
    words = sys.argv[1:] if arguments is None else list(arguments)
    if not words or (words[0].startswith("-") and any(flag in words for flag in application.help_flags)):
        application.resolved_commands()  # help tells what each of them does
    try:
        code = application(words)
    except CycloptsError:
        return BAD_INPUT
    return code if isinstance(code, int) else 0


def complete() -> None:
    """What `kubectl arbiter` can go on with, as kubectl asks a plugin's `kubectl_complete-arbiter`: one a line."""
    words = sys.argv[1:] or [""]
    if len(words) == 1:
        for name in sorted(application):
            if name.startswith(words[0]) and not name.startswith("-"):
                print(name)
    print(f":{_NO_FILES if len(words) == 1 else _FILES}")


def main() -> NoReturn:
    """The console script."""
    try:
        code = run()
        sys.stdout.flush()
    except (
        ReaderGone,
        BrokenPipeError,
    ):  # whoever read this has seen enough; flushing again at exit would fail once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = READER_GONE
    sys.exit(code)
