"""``arbiter configuration``: the stored configurations of a running service."""

import json
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from app.base.decoding import decode
from app.cli.differences import between
from app.cli.output import DIFFERENT, read, say, table
from app.cli.remote import Reply, Service, commented, findings, guarded, refused, segment
from app.cli.sources import SUFFIXES, as_json
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput, Problem

commands = App(name="configuration", help="Stored configurations of a running service.")

Url = Annotated[str, Parameter(env_var="ARBITER_URL", help="Address of the service.")]
Token = Annotated[str | None, Parameter(env_var="ARBITER_TOKEN", help="Bearer token, where the service wants one.")]
Name = Annotated[
    str, Parameter(help="Name of the configuration; 'name@revision' or 'name@label' reads another revision.")
]
Comment = Annotated[str | None, Parameter(help="Why, for the history.")]
DEFAULT_URL = ""
"""The service of this machine, at the port of the environment."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Remote:
    """Which service, for commands that need one now and then."""

    url: Url = DEFAULT_URL
    token: Token = None


@commands.command
def apply(
    file: Annotated[str, Parameter(allow_leading_hyphen=True, help="A file; '-' reads standard input.")],
    name: str | None = None,
    /,
    *,
    dry_run: Annotated[bool, Parameter(negative=(), help="Check only, and list what an operator should know.")] = False,
    comment: Comment = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
) -> int:
    """Store the configuration in FILE, JSON or YAML, under NAME (default: the file's name) as a new revision."""
    service = Service(url, token)
    stored_as = name or (Path(file).stem if Path(file).suffix in SUFFIXES else Path(file).name)

    def act() -> int:
        if file == "-" and name is None:
            raise InvalidInput([Problem(pointer="", detail="standard input has no name: say one after the -")])
        document = as_json(read(file))
        path = f"/v1/configurations/{segment(stored_as)}"
        known = service.get(path)
        guard = {"If-Match": known.etag} if known.ok and known.etag else {"If-None-Match": "*"}
        reply = service.put(path + ("?dry_run=true" if dry_run else ""), document, guard | commented(comment))
        if not reply.ok:
            return refused(file, reply)
        body = reply.json()
        findings(body)
        said = "would be " if dry_run else ""
        said += f"revision {body['revision']}" if body["changed"] else f"unchanged at revision {body['revision']}"
        say(f"{stored_as}: {said}")
        return 0

    return guarded(act, file)


@commands.command
def get(name: Name, /, *, url: Url = DEFAULT_URL, token: Token = None) -> int:
    """Print a stored configuration as JSON."""

    def act() -> int:
        reply = _read(Service(url, token), name)
        if not reply.ok:
            return refused(name, reply)
        say(_pretty(_document(reply)))
        return 0

    return guarded(act, name)


@commands.command(name="list")
def list_all(*, url: Url = DEFAULT_URL, token: Token = None) -> int:
    """List the stored configurations with their newest revisions."""

    def act() -> int:
        service, rows, cursor = Service(url, token), list[tuple[str, str, str]](), ""
        while True:
            reply = service.get(f"/v1/configurations?limit=100{cursor}")
            if not reply.ok:
                return refused("configurations", reply)
            page = reply.json()
            rows += [(str(c["name"]), str(c["revision"]), str(c.get("created_at", ""))) for c in page["items"]]
            if not page.get("next_cursor"):
                break
            cursor = f"&cursor={segment(page['next_cursor'])}"
        table(("NAME", "REVISION", "SINCE"), rows, indent="")
        return 0

    return guarded(act, "configurations")


@commands.command
def diff(
    name: Name,
    file: Annotated[
        str | None, Parameter(allow_leading_hyphen=True, help="JSON or YAML; '-' reads standard input.")
    ] = None,
    /,
    *,
    against: Annotated[int | None, Parameter(help="The older revision; by default the one before.")] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
) -> int:
    """Show what applying FILE would change in the stored configuration NAME.

    Without FILE: what revision NAME@N changed. Exit code 1 when they differ.
    """

    def act() -> int:
        service = Service(url, token)
        if file is None:
            return between(service, name, against)
        reply = _read(service, name)
        if not reply.ok:
            return refused(name, reply)
        stored, local = _pretty(_document(reply)), _pretty(_normal(as_json(read(file))))
        lines = list(unified_diff(stored.splitlines(), local.splitlines(), name, file, lineterm=""))
        for line in lines:
            say(line)
        return DIFFERENT if lines else 0

    return guarded(act, file or name)


def _read(service: Service, reference: str) -> Reply:
    name, _, which = reference.partition("@")
    path = f"/v1/configurations/{segment(name)}"
    if which and not which.isdigit():
        label = service.get(f"{path}/labels/{segment(which)}")
        if not label.ok:
            return label
        which = str(label.json()["revision"])
    return service.get(path + (f"/revisions/{segment(which)}" if which else ""))


def _document(reply: Reply) -> Any:
    """The configuration in a reply, without what the service says about it."""
    return reply.json()["configuration"]


def _normal(document: bytes) -> Any:
    """A local document as the service would store it: what is said without need left out. Raises InvalidInput."""
    return msgspec.to_builtins(decode(document, Configuration))


def _pretty(document: Any) -> str:
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)
