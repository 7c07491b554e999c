"""The two real servers as child processes: they start ready and leave nothing."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from counterfoil.errors import UsageError
from counterfoil_tools import servers
from counterfoil_tools.servers import Server, ServerFailed, localstripe, radicale


@pytest.mark.parametrize("make", [localstripe, radicale])
def test_a_server_answers_when_started_and_leaves_nothing(make: Callable[[], Server]) -> None:
    """It listens on the loopback only; after `stop` its processes, its folder and its port are gone."""
    server = make()
    with server:
        leader = psutil.Process(server.pid)
        family = [leader, *leader.children(recursive=True)]
        listening = {
            address.laddr for each in family for address in each.net_connections() if address.status == "LISTEN"
        }
        assert listening == {("127.0.0.1", server.port)}
        folder = server.folder
        assert folder.is_dir()
    assert server.pid is None
    assert not folder.exists()
    assert not [each for each in family if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    with pytest.raises(ConnectionRefusedError):
        server.ask("GET", "/")
    server.stop()


def test_the_calendar_is_there() -> None:
    """The CalDAV server starts with one empty calendar, open without a password."""
    with radicale() as server:
        assert server.ask("PROPFIND", servers.CALENDAR_PATH, {"Depth": "0"}) == 207


def test_the_payment_server_touches_no_shared_file() -> None:
    """A payment server keeps its store out of the fixed place where another user's would be."""
    with localstripe() as server:
        before = _shared_store()
        headers = {"Authorization": "Bearer sk_test_1", "Content-Type": "application/x-www-form-urlencoded"}
        connection = http.client.HTTPConnection(server.host, server.port, timeout=10)
        connection.request("POST", "/v1/payment_intents", body="amount=1&currency=eur", headers=headers)
        assert connection.getresponse().status == 200
        connection.close()
    assert _shared_store() == before


def _shared_store() -> int | None:
    store = Path("/tmp/localstripe.pickle")  # noqa: S108 - where the server would write by itself
    return store.stat().st_mtime_ns if store.exists() else None


class _Broken(Server):
    def __init__(self) -> None:
        super().__init__("broken", ("http",))

    def command(self) -> list[str]:
        return ["/bin/sh", "-c", "echo the reason why; exit 3"]


def test_a_server_that_ends_at_once_says_why() -> None:
    """The error carries the end of the server's own log, and its folder is gone."""
    server = _Broken()
    with pytest.raises(ServerFailed, match="the reason why"):
        server.start()
    assert server.pid is None
    assert not list(server.folder.glob("log"))


def test_a_missing_package_is_named_with_its_extra() -> None:
    """Without the server's package the error names it and the command that installs it."""
    with pytest.raises(UsageError, match=r"no_such_module .*pip install 'counterfoil\[demo\]'"):
        Server("odd", ("http", "no_such_module"))
