"""MCP: a host that hands the calls of its model to a server, through the SDK's client, in one process."""

from __future__ import annotations

import asyncio
from typing import Any

from adapters.conformance.driver import Ended
from adapters.conformance.house import House, Pay
from adapters.conformance.model import Call, Model, Told
from mcp import Client
from mcp.server.mcpserver import MCPServer

from counterfoil.adapters import mcp


class Mcp:
    """A client and the server."""

    name = "mcp"
    flags_errors = True
    cancellable = True

    async def converse(
        self, house: House, model: Model, *, task: str, pending: tuple[Call, ...] | None = None
    ) -> Ended:
        async with house.async_executor() as executor, Client(mcp.server(executor, task=task)) as client:
            return await _host(client, model, pending)

    async def stock(self, pay: Pay, model: Model, *, pending: tuple[Call, ...] | None = None) -> None:
        server = MCPServer("stock", log_level="CRITICAL")

        @server.tool()
        async def create_payment(order: str, amount: int, note: str = "") -> dict[str, str]:
            """Pay one order. Use it when the customer has confirmed the amount."""
            return await asyncio.to_thread(pay, order, amount, note)

        async with Client(server) as client:
            await _host(client, model, pending)


async def _host(client: Client, model: Model, pending: tuple[Call, ...] | None) -> Ended:
    """A host as simple as can be. What a server says in `stop` is for the host to obey."""
    told: list[Told] = []
    while calls := pending or model.reply(told):
        pending = None
        results = await asyncio.gather(*(client.call_tool(one.name, one.arguments) for one in calls))
        for one in results:
            if isinstance(one.structured_content, dict) and (stop := one.structured_content.get("stop")):
                return Ended(stop)
        told = [Told(_text(one), one.is_error) for one in results]
    return Ended()


def _text(result: Any) -> str:
    (content,) = result.content
    return str(content.text)
