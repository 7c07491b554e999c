"""MCP: a host that hands the calls of its model to a server, through the SDK's client, in one process.

The host keeps the calls of a round before it makes them; started again, it connects anew and makes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from adapters.conformance.driver import Ended
from adapters.conformance.drivers.kept import keep, kept
from adapters.conformance.house import House, Pay
from adapters.conformance.model import Call, Model, Told
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.tools import Tool as McpTool

from counterfoil.adapters import mcp


class Mcp:
    """A client and the server."""

    name = "mcp"
    flags_errors = True
    cancellable = True

    async def converse(self, house: House, model: Model, *, task: str, store: Path, resumes: bool = False) -> Ended:
        async with house.async_executor() as executor, Client(mcp.server(executor, task=task)) as client:
            return await _host(client, model, store, resumes)

    async def stock(self, pay: Pay, model: Model, *, store: Path, resumes: bool = False) -> None:
        server = MCPServer("stock", log_level="CRITICAL")

        @server.tool()
        async def create_payment(order: str, amount: int, note: str = "") -> dict[str, str]:
            """Pay one order. Use it when the customer has confirmed the amount."""
            return await asyncio.to_thread(pay, order, amount, note)

        async with Client(server) as client:
            await _host(client, model, store, resumes)

    def existing(self, function: Callable[..., Any]) -> Any:
        return McpTool.from_function(function)


async def _host(client: Client, model: Model, store: Path, resumes: bool) -> Ended:
    """A host as simple as can be. What a server says in `stop` is for the host to obey."""
    told: list[Told] = []
    calls = tuple(Call(**one) for one in kept(store)) if resumes else model.reply()
    while calls:
        keep(store, [asdict(one) for one in calls])
        results = await asyncio.gather(*(client.call_tool(one.name, one.arguments) for one in calls))
        told = [Told(call.id, _text(one), one.is_error) for call, one in zip(calls, results, strict=True)]
        for one in results:
            if isinstance(one.structured_content, dict) and (stop := one.structured_content.get("stop")):
                return Ended(stop, tuple(told))
        calls = model.reply(told)
    return Ended()


def _text(result: Any) -> str:
    (content,) = result.content
    return str(content.text)
