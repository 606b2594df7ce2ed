"""``arbiter configuration history``, ``restore``, ``label`` and ``labels``."""

import json
from typing import Annotated

from cyclopts import Parameter

from app.cli.configuration import DEFAULT_URL, Comment, Token, Url, commands
from app.cli.output import BAD_INPUT, complain, say, table
from app.cli.remote import Reply, Service, commented, findings, guarded, refused, segment

ConfigurationName = Annotated[str, Parameter(help="Name of the configuration.")]


@commands.command
def history(name: ConfigurationName, /, *, url: Url = DEFAULT_URL, token: Token = None) -> int:
    """List the revisions of a configuration, newest first: when, by whom, why, and under which labels."""

    def act() -> int:
        service, path = Service(url, token), f"/v1/configurations/{segment(name)}"
        labels = service.get(f"{path}/labels")
        if not labels.ok:
            return refused(name, labels)
        under: dict[int, list[str]] = {}
        for label in labels.json()["items"]:
            under.setdefault(label["revision"], []).append(label["label"])
        rows, cursor = list[tuple[str, ...]](), ""
        while True:
            reply = service.get(f"{path}/revisions?limit=100{cursor}")
            if not reply.ok:
                return refused(name, reply)
            page = reply.json()
            for one in page["items"]:
                why = one.get("comment") or ""
                if "restored_from" in one:
                    why = f"restores {one['restored_from']}" + (f": {why}" if why else "")
                said = " ".join(under.get(one["revision"], ()))
                rows.append((str(one["revision"]), one["created_at"], one["author"], said, " ".join(why.split())))
            if not page.get("next_cursor"):
                break
            cursor = f"&cursor={segment(page['next_cursor'])}"
        table(("REVISION", "SINCE", "AUTHOR", "LABELS", "COMMENT"), rows, indent="")
        return 0

    return guarded(act, name)


@commands.command
def restore(
    reference: Annotated[str, Parameter(help="'name@revision'")],
    /,
    *,
    comment: Comment = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
) -> int:
    """Bring a revision back: it becomes the newest one again."""
    name, _, revision = reference.partition("@")

    def act() -> int:
        if not revision.isascii() or not revision.isdigit():
            complain(f"{reference}: say which revision, as in {name}@7")
            return BAD_INPUT
        service, path = Service(url, token), f"/v1/configurations/{segment(name)}"
        reply = service.post(f"{path}/revisions/{revision}:restore", _guard(service.get(path)) | commented(comment))
        if not reply.ok:
            return refused(reference, reply)
        body = reply.json()
        findings(body)
        said = f"revision {body['revision']}" if body["changed"] else f"unchanged at revision {body['revision']}"
        say(f"{name}: {said}")
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
    url: Url = DEFAULT_URL,
    token: Token = None,
) -> int:
    """Point a label at a revision, or say where it points."""

    def act() -> int:
        service = Service(url, token)
        path = f"/v1/configurations/{segment(name)}/labels/{segment(label)}"
        known = service.get(path)
        if delete:
            reply = service.delete(path, _guard(known))
        elif revision is None:
            reply = known
        else:
            wanted = json.dumps({"revision": revision}).encode()
            reply = service.put(path, wanted, _guard(known) | commented(comment))
        if not reply.ok:
            return refused(f"{name}@{label}", reply)
        say(f"{name}@{label}: " + ("taken off" if delete else f"revision {reply.json()['revision']}"))
        return 0

    return guarded(act, f"{name}@{label}")


@commands.command
def labels(name: ConfigurationName, /, *, url: Url = DEFAULT_URL, token: Token = None) -> int:
    """List the labels of a configuration."""

    def act() -> int:
        reply = Service(url, token).get(f"/v1/configurations/{segment(name)}/labels")
        if not reply.ok:
            return refused(name, reply)
        rows = [
            (one["label"], str(one["revision"]), one["updated_at"], one["author"], one.get("comment", ""))
            for one in reply.json()["items"]
        ]
        table(("LABEL", "REVISION", "SINCE", "AUTHOR", "COMMENT"), rows, indent="")
        return 0

    return guarded(act, name)


def _guard(known: Reply) -> dict[str, str]:
    """Only over what was just read; where there was nothing, only if there is still nothing."""
    return {"If-Match": known.etag} if known.ok and known.etag else {"If-None-Match": "*"}
