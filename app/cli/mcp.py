"""``arbiter mcp``: the questions of the console as tools of the Model Context Protocol, over stdio or HTTP."""

import logging
import socket
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import anyio.from_thread
import anyio.to_thread
from cyclopts import Parameter
from cyclopts.validators import Number

from app.base import installed_version
from app.cli.configuration import OURS, Remote
from app.cli.output import BAD_INPUT, NOTHING, announce, complain
from app.cli.remote import ApiError, Service, Unreachable
from app.cli.tools import TOOLS, Asking, Tool
from app.solver.model.problems import InvalidInput

if TYPE_CHECKING:
    from mcp import types
    from mcp.server import Server, ServerRequestContext

_LOOPBACK = "127.0.0.1"
_AT_ONCE = 8
"""Questions that are asked of the service at the same time; others wait."""
_INSTRUCTIONS = (
    "Arbiter answers for schedulers: to run this, what must stop, and why? It decides as Kueue, YuniKorn, KAI, "
    "YTsaurus or kube-scheduler would, on followed clusters and kept snapshots. Answers are short; the last line links "
    "to the page that has the rest."
)


def mcp(
    *,
    remote: Remote = OURS,
    port: Annotated[
        int | None,
        Parameter(
            help="Serve streamable HTTP at this port of the loopback address, path /mcp, instead of stdio; 0 takes a "
            "free one. Whoever reaches the port asks with the token.",
            validator=Number(gte=0, lte=65535),
        ),
    ] = None,
    pages: Annotated[str | None, Parameter(help="Where people open the console, for links. Default: --url.")] = None,
    allow_writes: Annotated[
        bool, Parameter(negative=(), help="Offer also the tools that change configurations and snapshots.")
    ] = False,
) -> int:
    """Serve the questions to agents, by the Model Context Protocol: find, why, what_if, who_is_next, plan, compare.

    They are asked of the service at --url, with its token: scopes `read` and `decide` are enough; changing a
    configuration needs `admin`.
    """
    if find_spec("mcp") is None:
        complain("this needs the extra: uv tool install 'arbiter-preemption[mcp]'")
        return BAD_INPUT
    service = remote.service
    address = service.address
    if not address.startswith(("http://", "https://")):
        complain(f"{address}: not an http address")
        return BAD_INPUT
    logging.basicConfig(level=logging.WARNING)  # to standard error: standard output is the protocol's
    server = _server(service, (pages or address).rstrip("/"), writes=allow_writes)
    if port is None:
        anyio.run(_stdio, server)
        return NOTHING
    try:
        listening = socket.create_server((_LOOPBACK, port))
    except OSError as error:
        complain(f"{_LOOPBACK}:{port}: {error.strerror or error}")
        return BAD_INPUT
    with listening:
        announce(f"streamable HTTP at http://{_LOOPBACK}:{listening.getsockname()[1]}/mcp")
        anyio.run(_http, server, listening)
    return NOTHING


def _server(service: Service, pages: str, *, writes: bool) -> "Server[Any]":
    from mcp import types
    from mcp.server import Server

    offered = {tool.name: tool for tool in TOOLS if writes or not tool.writes}
    listed = types.ListToolsResult(tools=[_listed(tool) for tool in offered.values()])
    places = anyio.CapacityLimiter(_AT_ONCE)

    async def tools(_: "ServerRequestContext", __: "types.PaginatedRequestParams | None") -> types.ListToolsResult:
        return listed

    async def call(context: "ServerRequestContext", asked: "types.CallToolRequestParams") -> types.CallToolResult:
        tool = offered.get(asked.name)
        if tool is None:
            known = any(asked.name == offer.name for offer in TOOLS)
            detail = "it writes: start with --allow-writes" if known else f"there are {', '.join(offered)}"
            return _text(f"no tool {asked.name!r}: {detail}", failed=True)

        def go_on(done: float, total: float) -> None:
            anyio.from_thread.check_cancelled()
            anyio.from_thread.run(context.session.report_progress, done, total or None)

        asking = Asking(service, pages, go_on)
        answer = partial(_answered, tool, asking, asked.arguments or {})
        text, failed = await anyio.to_thread.run_sync(answer, limiter=places)
        return _text(text, failed=failed)

    return Server(
        "arbiter",
        title="Arbiter",
        version=installed_version(),
        website_url=pages,
        instructions=_INSTRUCTIONS,
        on_list_tools=tools,
        on_call_tool=call,
    )


def _text(text: str, *, failed: bool) -> "types.CallToolResult":
    from mcp import types

    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)


def _listed(tool: Tool) -> "types.Tool":
    from mcp import types

    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.writes, destructive_hint=tool.writes, open_world_hint=False
        ),
    )


def _answered(tool: Tool, asking: Asking, arguments: dict[str, Any]) -> tuple[str, bool]:
    """The text of the answer, and whether it says why there is none."""
    try:
        return tool.call(asking, arguments), False
    except InvalidInput as invalid:
        return "\n".join(f"{problem.pointer or '(arguments)'}: {problem.detail}" for problem in invalid.problems), True
    except Unreachable as away:
        return str(away), True
    except ApiError as refused:
        body = refused.reply.json()
        lines = [f"{refused.reply.status} {body.get('detail') or body.get('title') or 'refused'}"]
        lines += [
            f"{problem.get('pointer') or '(request)'}: {problem.get('detail')}" for problem in body.get("errors", ())
        ]
        return "\n".join(lines), True


async def _stdio(server: "Server[Any]") -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def _http(server: "Server[Any]", listening: socket.socket) -> None:
    """Stateless: nothing is kept for a client that is gone. With a loopback ``host`` the package refuses foreign Host
    and Origin headers: a page in a browser can't reach it by a name that leads here."""
    import uvicorn

    app = server.streamable_http_app(host=_LOOPBACK, stateless_http=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on")).serve(sockets=[listening])
