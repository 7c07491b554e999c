"""An MCP server that offers an executor's tools, over stdio or streamable HTTP.

Owns the way from `tools/call` to `executor.call`. A failure is a result with `is_error`, structured content included,
never an error of the protocol, which a model does not see. Whether the run ends is for the host: `stop` in the
structured content says so.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from io import TextIOWrapper
from typing import Any, BinaryIO, Final, TextIO, cast

import anyio
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from counterfoil.adapters.calls import AnyExecutor, Call, Place, observed_async
from counterfoil.runner.settings import TURN_MAX
from counterfoil.tool import AnyTool

NAME: Final = "counterfoil"
TASK_MEMBER: Final = "counterfoil/task"
"""Where a host names the task in the `_meta` of a call."""
TURN_MEMBER: Final = "counterfoil/turn"
LINE_MAX_BYTES: Final = 64 * 2**20
_OBSERVED: Final = {
    "type": "object",
    "properties": {
        "ok": {"type": "boolean"},
        "verdict": {"enum": ["no_effect", "effect_unknown", "effect_applied"]},
        "code": {"type": "string"},
        "retry": {"enum": ["never", "change_arguments", "after", "check"]},
        "stop": {"type": ["string", "null"]},
        "effect_id": {"type": ["string", "null"]},
    },
    "required": ["ok", "verdict", "code", "retry", "stop", "effect_id"],
}


def server(executor: AnyExecutor, *, name: str = NAME, task: str | None = None) -> Server[Any]:
    """The server; `mcp.Client(server)` talks to it in one process.

    A call's task is what its `_meta` says as `counterfoil/task`, else `task`, else the id of the client's session, else
    the name of the server, so that tools keyed by all their arguments never begin anew because a client has reconnected
    without a session. The turn is `counterfoil/turn` of its `_meta`. The request is `effect.context`.
    """

    async def list_tools(
        _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        known = executor.tools
        return types.ListToolsResult(tools=[_described(one, known, task) for one in executor.schemas()])

    async def call_tool(ctx: ServerRequestContext[Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        named, turn = _said(ctx)
        place = Place(task=named or task or _session(ctx) or name, turn=turn, context=ctx)
        call_id = None if ctx.request_id is None else str(ctx.request_id)
        seen = await observed_async(executor, Call(params.name, params.arguments or {}, call_id), place)
        structured = {word: content for word, content in seen.as_dict().items() if word != "text"}
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=seen.text)],
            structured_content=structured,
            is_error=not seen.ok,
        )

    return Server(name, version=version("counterfoil"), on_list_tools=list_tools, on_call_tool=call_tool)


def hints(tool: AnyTool, *, task: str | None = None) -> types.ToolAnnotations:
    """What hosts are told of a tool, from its declaration.

    Whatever changes the world may do harm: `destructive_hint`. The same arguments again change nothing more:
    `idempotent_hint`, but for a tool keyed by all its arguments within a task that the server does not fix.

    Example:
        >>> from counterfoil import tool
        >>> @tool(key=("order",))
        ... def charge(order: str) -> None:
        ...     "Charge the card once for one order."
        >>> told = hints(charge)
        >>> told.read_only_hint, told.destructive_hint, told.idempotent_hint
        (False, True, True)
    """
    if tool.read_only:
        return types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)
    return types.ToolAnnotations(
        read_only_hint=False,
        destructive_hint=True,
        idempotent_hint=bool(tool.key_names) or task is not None,
        open_world_hint=not tool.same_transaction,
    )


@dataclass(frozen=True, slots=True)
class Wire:
    """The two ends on which a server and its client talk."""

    reading: BinaryIO
    writing: TextIO


@contextmanager
def own_wire() -> Iterator[Wire]:
    """The process's stdin and stdout, for the protocol alone: whatever else reads meanwhile finds nothing, and whatever
    else prints goes to stderr, child processes included. Enter it before anything that might print."""
    reading, writing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    with os.fdopen(reading, "rb", buffering=0) as stdin, os.fdopen(writing, "w", encoding="utf-8") as stdout:
        try:
            yield Wire(stdin, stdout)
        finally:
            os.dup2(stdin.fileno(), 0)
            os.dup2(stdout.fileno(), 1)


async def serve_stdio(served: Server[Any], wire: Wire) -> None:
    """Serve one client until it hangs up."""
    async with _lines(wire.reading) as lines, stdio_server(lines, anyio.wrap_file(wire.writing)) as (reading, writing):
        await served.run(reading, writing, served.create_initialization_options())


async def serve_http(served: Server[Any], host: str, port: int) -> None:
    """Serve clients of streamable HTTP at `http://HOST:PORT/mcp` until it is interrupted. It asks for no credential:
    listen on the loopback address, or behind something that does."""
    app = served.streamable_http_app(host=host)
    await uvicorn.Server(uvicorn.Config(app, host=host, port=port, log_level="warning")).serve()


# ---------------------------------------------------------------- details


@asynccontextmanager
async def _lines(reading: BinaryIO) -> AsyncIterator[anyio.AsyncFile[str]]:
    """The lines of the client. From a pipe or socket they are read in the loop, where a cancellation ends the waiting:
    a thread that waits for a line could not be ended."""
    kind = os.fstat(reading.fileno()).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        yield anyio.wrap_file(TextIOWrapper(os.fdopen(os.dup(reading.fileno()), "rb"), encoding="utf-8"))
        return
    reader = asyncio.StreamReader(limit=LINE_MAX_BYTES)
    pipe = os.fdopen(os.dup(reading.fileno()), "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        yield cast("anyio.AsyncFile[str]", reader)  # of which only the lines are asked
    finally:
        transport.close()


def _described(schema: Mapping[str, Any], known: Mapping[str, AnyTool], task: str | None) -> types.Tool:
    tool = known.get(schema["name"])
    reads = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)
    return types.Tool(
        name=schema["name"],
        description=schema["description"],
        input_schema=schema["parameters"],
        output_schema=_OBSERVED,
        annotations=reads if tool is None else hints(tool, task=task),
    )


def _said(ctx: ServerRequestContext[Any]) -> tuple[str | None, int | None]:
    """Task and turn as the host names them; what is none is passed over, because it is no mistake of this program."""
    said: Mapping[str, Any] = ctx.meta or {}
    task, turn = said.get(TASK_MEMBER), said.get(TURN_MEMBER)
    is_turn = isinstance(turn, int) and abs(turn) < TURN_MAX
    return (task if isinstance(task, str) and task else None), (turn if is_turn else None)


def _session(ctx: ServerRequestContext[Any]) -> str | None:
    """The id of the client's session, where its transport has one."""
    headers = getattr(ctx.request, "headers", None)
    return headers.get("mcp-session-id") if headers is not None else None
