"""``arbiter configuration``: the stored configurations of a running service, their history and labels."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from app.base.decoding import decode
from app.cli.output import BAD_INPUT, DIFFERENT, SUFFIXES, as_json, complain, noticed, read, say, table
from app.cli.remote import Reply, Service, commented, findings, got, guarded, items, segment
from app.formats import is_native
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding, InvalidInput, Problem


def between(service: Service, reference: str, against: int | None) -> int:
    """Show, by structure and written for people, what revision NAME@N changed since ``against``; NAME alone means its
    newest one."""
    name, _, revision = reference.partition("@")
    path = f"/v1/configurations/{segment(name)}"
    if not revision:
        revision = str(got(service, path)["revision"])
    if not revision.isascii() or not revision.isdigit():
        complain(f"{reference}: after @ comes the number of a revision")
        return BAD_INPUT
    since = "" if against is None else f"?against={against}"
    comparison = got(service, f"{path}/revisions/{revision}/diff{since}")
    for line in lines(comparison):
        say(line)
    return 0 if comparison["identical"] else DIFFERENT


def lines(comparison: Any) -> Iterator[str]:
    """A structural difference: + added, - removed, ~ changed."""
    if not comparison["identical"]:
        yield f"{comparison['name']}: revision {comparison['against']} -> {comparison['revision']}"
    for change in comparison["settings"]:
        yield f"~ {_change(change)}"
    for kind in ("flavors", "queues"):
        elements: dict[str, Any] = comparison[kind]
        for sign, part in (("+", "added"), ("-", "removed")):
            for element in elements.get(part, ()):
                yield f"{sign} {kind.removesuffix('s')} {element['name']}"
        for element in elements.get("changed", ()):
            yield f"~ {kind.removesuffix('s')} {element['name']}"
            for change in element["changes"]:
                yield f"    {_change(change)}"
    if comparison["reordered"]:
        yield "~ order"


def _change(change: dict[str, Any]) -> str:
    return f"{change['pointer']}: {_value(change, 'old')} -> {_value(change, 'new')}"


def _value(change: dict[str, Any], which: str) -> str:
    return json.dumps(change[which], ensure_ascii=False, sort_keys=True) if which in change else "(default)"


commands = App(name="configuration", help="Stored configurations of a running service.")

Token = Annotated[str | None, Parameter(env_var="ARBITER_TOKEN", help="Bearer token, where the service wants one.")]
Name = Annotated[
    str, Parameter(help="Name of the configuration; 'name@revision' or 'name@label' reads another revision.")
]
Comment = Annotated[str | None, Parameter(help="Why, for the history.")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Remote:
    """Which service. Without ``url`` that of this machine, at the port of the environment."""

    url: Annotated[str, Parameter(env_var="ARBITER_URL", help="Address of the service.")] = ""
    token: Token = None

    @property
    def service(self) -> Service:
        """Its interface."""
        return Service(self.url, self.token)


OURS = Remote()


class _Carrying(msgspec.Struct):
    """Of a document, what of its source is not in it."""

    findings: list[Finding] = []


@commands.command
def apply(
    file: Annotated[str, Parameter(allow_leading_hyphen=True, help="A file; '-' reads standard input.")],
    name: str | None = None,
    /,
    *,
    dry_run: Annotated[bool, Parameter(negative=(), help="Check only, and list what an operator should know.")] = False,
    comment: Comment = None,
    remote: Remote = OURS,
) -> int:
    """Store the configuration in FILE, JSON or YAML, under NAME (default: the file's name) as a new revision."""
    service = remote.service
    stored_as = name or (Path(file).stem if Path(file).suffix in SUFFIXES else Path(file).name)

    def act() -> int:
        if file == "-" and name is None:
            raise InvalidInput([Problem(pointer="", detail="standard input has no name: say one after the -")])
        body = read(file)
        if is_native(body):
            detail = "a document of a system: `arbiter import FILE --store NAME` stores what it says"
            raise InvalidInput([Problem(pointer="", detail=detail)])
        document = as_json(body)
        path = f"/v1/configurations/{segment(stored_as)}"
        headers = service.get(path).guard() | commented(comment)
        stored = service.put(path + ("?dry_run=true" if dry_run else ""), document, headers).done().json()
        findings(stored)
        noticed(msgspec.json.decode(document, type=_Carrying).findings)
        say(f"{stored_as}: {'would be ' if dry_run else ''}{revision_said(stored)}")
        return 0

    return guarded(act, file)


@commands.command
def get(name: Name, /, *, remote: Remote = OURS) -> int:
    """Print a stored configuration as JSON."""

    def act() -> int:
        say(_pretty(_stored(remote.service, name)))
        return 0

    return guarded(act, name)


@commands.command(name="list")
def list_all(*, remote: Remote = OURS) -> int:
    """List the stored configurations with their newest revisions."""

    def act() -> int:
        configurations = items(remote.service, "/v1/configurations")
        rows = [(str(c["name"]), str(c["revision"]), str(c.get("created_at", ""))) for c in configurations]
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
    remote: Remote = OURS,
) -> int:
    """Show what applying FILE would change in the stored configuration NAME.

    Without FILE: what revision NAME@N changed. Exit code 1 when they differ.
    """

    def act() -> int:
        if file is None:
            return between(remote.service, name, against)
        stored, local = _pretty(_stored(remote.service, name)), _pretty(_normal(as_json(read(file))))
        lines = list(unified_diff(stored.splitlines(), local.splitlines(), name, file, lineterm=""))
        for line in lines:
            say(line)
        return DIFFERENT if lines else 0

    return guarded(act, file or name)


def revision_of(service: Service, reference: str) -> Reply:
    """What the service has under ``name``, ``name@revision`` or ``name@label``. Raises Unreachable."""
    name, _, which = reference.partition("@")
    path = f"/v1/configurations/{segment(name)}"
    if which and not which.isdigit():
        label = service.get(f"{path}/labels/{segment(which)}")
        if not label.ok:
            return label
        which = str(label.json()["revision"])
    return service.get(path + (f"/revisions/{segment(which)}" if which else ""))


def _stored(service: Service, reference: str) -> Any:
    """The configuration, without what the service says about it. Raises ApiError, Unreachable."""
    return revision_of(service, reference).done(reference).json()["configuration"]


def revision_said(stored: dict[str, Any]) -> str:
    """Which revision there is after a write."""
    return f"{'' if stored['changed'] else 'unchanged at '}revision {stored['revision']}"


def _normal(document: bytes) -> Any:
    """A local document as the service would store it: what is said without need left out. Raises InvalidInput."""
    return msgspec.to_builtins(decode(document, Configuration))


def _pretty(document: Any) -> str:
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)


ConfigurationName = Annotated[str, Parameter(help="Name of the configuration.")]


@commands.command
def history(name: ConfigurationName, /, *, remote: Remote = OURS) -> int:
    """List the revisions of a configuration, newest first: when, by whom, why, and under which labels."""

    def act() -> int:
        service, path = remote.service, f"/v1/configurations/{segment(name)}"
        under: dict[int, list[str]] = {}
        for label in got(service, f"{path}/labels")["items"]:
            under.setdefault(label["revision"], []).append(label["label"])
        rows: list[tuple[str, ...]] = []
        for revision in items(service, f"{path}/revisions"):
            why = revision.get("comment") or ""
            if "restored_from" in revision:
                why = f"restores {revision['restored_from']}" + (f": {why}" if why else "")
            said = " ".join(under.get(revision["revision"], ()))
            rows.append(
                (str(revision["revision"]), revision["created_at"], revision["author"], said, " ".join(why.split()))
            )
        table(("REVISION", "SINCE", "AUTHOR", "LABELS", "COMMENT"), rows, indent="")
        return 0

    return guarded(act, name)


@commands.command
def restore(
    reference: Annotated[str, Parameter(help="'name@revision'")],
    /,
    *,
    comment: Comment = None,
    remote: Remote = OURS,
) -> int:
    """Bring a revision back: it becomes the newest one again."""
    name, _, revision = reference.partition("@")

    def act() -> int:
        if not revision.isascii() or not revision.isdigit():
            complain(f"{reference}: say which revision, as in {name}@7")
            return BAD_INPUT
        service, path = remote.service, f"/v1/configurations/{segment(name)}"
        headers = service.get(path).guard() | commented(comment)
        restored = service.post(f"{path}/revisions/{revision}:restore", headers).done().json()
        findings(restored)
        say(f"{name}: {revision_said(restored)}")
        return 0

    return guarded(act, reference)


@commands.command
def label(
    name: ConfigurationName,
    label: Annotated[str, Parameter(help="Such as 'stable': decisions may then say name@stable.")],
    revision: Annotated[int | None, Parameter(help="The revision that it shall mean.")] = None,
    /,
    *,
    delete: Annotated[bool, Parameter(negative=(), help="Take the label off instead.")] = False,
    comment: Comment = None,
    remote: Remote = OURS,
) -> int:
    """Point a label at a revision, or say where it points."""

    def act() -> int:
        service = remote.service
        path = f"/v1/configurations/{segment(name)}/labels/{segment(label)}"
        known = service.get(path)
        if delete:
            reply = service.delete(path, known.guard())
        elif revision is None:
            reply = known
        else:
            wanted = json.dumps({"revision": revision}).encode()
            reply = service.put(path, wanted, known.guard() | commented(comment))
        reply.done()
        say(f"{name}@{label}: " + ("taken off" if delete else f"revision {reply.json()['revision']}"))
        return 0

    return guarded(act, f"{name}@{label}")


@commands.command
def labels(name: ConfigurationName, /, *, remote: Remote = OURS) -> int:
    """List the labels of a configuration."""

    def act() -> int:
        rows = [
            (
                labelled["label"],
                str(labelled["revision"]),
                labelled["updated_at"],
                labelled["author"],
                labelled.get("comment", ""),
            )
            for labelled in got(remote.service, f"/v1/configurations/{segment(name)}/labels")["items"]
        ]
        table(("LABEL", "REVISION", "SINCE", "AUTHOR", "COMMENT"), rows, indent="")
        return 0

    return guarded(act, name)
