"""The MCP server, as hosts meet it: over stdio and streamable HTTP, in another process."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from adapters.conformance.house import House
from adapters.conformance.scenarios import INTERRUPTED
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from provider import Provider
from typer.testing import CliRunner

from counterfoil import ALL_ARGUMENTS, Executor, tool
from counterfoil.adapters import mcp
from counterfoil.cli.app import app

HERE = Path(__file__).parent
PAYS = {"order": "A-1", "amount": 10}
START_S = 60.0
LATER_S = 3600


def application(folder: Path, provider: Provider) -> dict[str, str]:
    """The ledger of a served application, and the environment of its process."""
    ledger = f"sqlite:///{folder / 'served.db'}"
    Executor(ledger).close()
    path = os.pathsep.join([str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "COUNTERFOIL_LEDGER": ledger, "PROVIDER_URL": provider.url}


def serve(*options: str) -> list[str]:
    return ["-m", "counterfoil.cli", "mcp", "serve", "--app", "served:executor", *options]


def test_stdio(tmp_path: Path, provider: Provider) -> None:
    """The server is killed while the provider works: the host's call fails. The host starts it anew and calls again: it
    is found, not made. What the application and its child processes print does not disturb the protocol, and errors
    come with structured content."""
    provider.arm("ack_lost", mode="hold")
    declared = House("", provider).payment()

    def server(later_s: int) -> Any:
        environment = os.environ | application(tmp_path, provider) | {"LATER_S": str(later_s)}
        return stdio_client(StdioServerParameters(command=sys.executable, args=serve(), env=environment))

    async def host() -> list[Any]:
        async with Client(server(0)) as client:
            paying, checking = (await client.list_tools()).tools
            assert (paying.name, checking.name) == ("create_payment", "check_effect")
            assert paying.annotations == mcp.hints(declared)
            assert checking.annotations is not None
            assert checking.annotations.read_only_hint is True
            calling = asyncio.create_task(client.call_tool("create_payment", PAYS))
            await asyncio.to_thread(provider.await_parked)
            (process,) = (one for one in psutil.Process().children() if "served:executor" in one.cmdline())
            process.kill()
            with pytest.raises(MCPError):
                await calling
        provider.release()
        async with Client(server(LATER_S)) as client:
            calls = (PAYS, PAYS, {"order": "", "amount": 1})
            return [await client.call_tool("create_payment", one) for one in calls]

    verified, replayed, refused = asyncio.run(host())
    assert verified.content[0].text == INTERRUPTED
    assert [one.structured_content["code"] for one in (verified, replayed)] == ["verified", "replayed"]
    assert (refused.is_error, refused.structured_content["code"]) == (True, "invalid_arguments")
    assert refused.structured_content["details"] == [
        {"field": "order", "problem": "must not be empty: it says which one is meant"}
    ]
    assert provider.count() == 1


def test_an_interrupted_server_ends(tmp_path: Path, provider: Provider) -> None:
    """Ctrl-C while it waits for its client: it ends with 130, although the client has not hung up."""
    with subprocess.Popen(
        [sys.executable, *serve()],
        env=os.environ | application(tmp_path, provider),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert '"id":1' in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(START_S) == 130


@contextmanager
def served_over_http(
    folder: Path, provider: Provider, port: int, later_s: int = 0
) -> Iterator[subprocess.Popen[bytes]]:
    """A served application at a port; ends with the block, killed."""
    environment = os.environ | application(folder, provider) | {"LATER_S": str(later_s)}
    process = subprocess.Popen(
        [sys.executable, *serve("--http", f"127.0.0.1:{port}")], env=environment, stdin=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait(START_S)


def test_streamable_http(tmp_path: Path, provider: Provider) -> None:
    """Two hosts at once ask for the same payment: one is made, both hear that it is done. The server is killed while
    the provider works on another: the host's call fails. It connects to the next server, which finds the one and
    replays the other."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"

    async def host(order: str) -> Any:
        async with Client(url) as client:
            return await client.call_tool("create_payment", {**PAYS, "order": order})

    async def first(server: subprocess.Popen[bytes]) -> list[Any]:
        provider.arm("slow", seconds=0.2)
        results = list(await asyncio.gather(host("A-1"), host("A-1")))
        provider.arm("ack_lost", mode="hold")
        calling = asyncio.create_task(host("A-2"))
        await asyncio.to_thread(provider.await_parked)
        server.kill()
        await asyncio.wait([calling])
        assert isinstance(calling.exception(), Exception)
        return results

    async def second() -> list[Any]:
        return [await host("A-2"), await host("A-1")]

    with served_over_http(tmp_path, provider, port) as server:
        results = asyncio.run(first(server))
        assert sorted(one.structured_content["code"] for one in results) == ["ok", "replayed"]
    provider.release()
    with served_over_http(tmp_path, provider, port, LATER_S):
        assert [one.structured_content["code"] for one in asyncio.run(second())] == ["verified", "replayed"]
    assert provider.count() == 2


def test_the_task_of_a_call(tmp_path: Path, provider: Provider) -> None:
    """The `_meta` of the call names task and turn before the server does; else it is the server's, or its
    name. What is no task and no turn is passed over."""
    house = House(f"sqlite:///{tmp_path / 'ledger.db'}", provider)

    said: Any = {mcp.TASK_MEMBER: "trip-1", mcp.TURN_MEMBER: 4}
    wrong: Any = {mcp.TASK_MEMBER: 7, mcp.TURN_MEMBER: "four"}

    async def host() -> list[tuple[str, int | None]]:
        async with house.async_executor() as executor:
            for order, task, meta in (
                ("A", "fixed", said),
                ("B", "fixed", None),
                ("C", None, wrong),
            ):
                async with Client(mcp.server(executor, task=task)) as client:
                    await client.call_tool("create_payment", {"order": order, "amount": 1}, meta=meta)
            rows = sorted(executor.audit.effects(), key=lambda row: str(row.arguments))
            begun = [executor.audit.history(row.id)[0].detail for row in rows]
            return [(row.task, one.get("turn")) for row, one in zip(rows, begun, strict=True)]

    assert asyncio.run(host()) == [("trip-1", 4), ("fixed", None), ("counterfoil", None)]


def test_the_hints_follow_the_declaration() -> None:
    """Reading is safe; what changes the world may do harm; the same arguments again change nothing more, as far as the
    key reaches."""

    @tool(read_only=True)
    def price(order: str) -> int:
        """Tell a price."""
        return 1

    @tool(key=ALL_ARGUMENTS)
    def note(text: str) -> None:
        """Write a note."""

    read, loose, fixed = mcp.hints(price), mcp.hints(note), mcp.hints(note, task="t")
    assert (read.read_only_hint, read.destructive_hint, read.idempotent_hint) == (True, False, True)
    assert (loose.read_only_hint, loose.destructive_hint, loose.idempotent_hint) == (False, True, False)
    assert fixed.idempotent_hint is True


def test_a_host_that_gives_up_and_asks_again(tmp_path: Path, provider: Provider) -> None:
    """A host's time-out cancels the call while the answer is out; its second request finds the payment."""
    provider.arm("ack_lost", mode="hold")
    house = House(f"sqlite:///{tmp_path / 'ledger.db'}", provider, real_time=True)

    async def host() -> Any:
        async with house.async_executor() as executor, Client(mcp.server(executor)) as client:
            with pytest.raises(MCPError):
                await client.call_tool("create_payment", PAYS, read_timeout_seconds=0.5)
            return await client.call_tool("create_payment", PAYS)

    assert asyncio.run(host()).structured_content["code"] == "verified"
    assert provider.count() == 1


def test_a_missing_extra_is_said_in_one_line() -> None:
    """Without the extra `mcp`: code 1, and what to install."""
    code = "import sys; sys.modules['mcp'] = None\nfrom counterfoil.cli import main\nmain()"
    program = [sys.executable, "-c", code, "mcp", "serve", "--app", "served:executor"]
    ran = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "counterfoil: the MCP server needs mcp: pip install 'counterfoil[mcp]'\n"


@pytest.mark.parametrize("address", ["8000", "localhost:", "localhost:eighty", "localhost:70000"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    """Before anything is opened; the line says what one looks like."""
    ran = CliRunner().invoke(app, ["mcp", "serve", "--app", "served:executor", "--http", address])
    assert ran.exit_code == 1
    assert "--http takes HOST:PORT" in ran.stderr
