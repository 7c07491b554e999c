"""C58 (kind K16). A secret stands in the URL of an exception, in its cause, its note and its arguments. It reaches
neither model nor log nor ledger, and the message is as good as without it."""

from __future__ import annotations

import json
import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from cases.messages import assert_unknown
from cases.scene import details, post
from provider import Provider

from counterfoil import Effect, Executor, Messages, Policy, SystemClock, Tool, tool

KEY = "SECRET-123"
URL = f"https://api.x/v1?key={KEY}&x=1"
NEVER_TOLD = (KEY, "api.x", "https://", "Traceback", __file__, "test_c58", "Bearer", "HTTPError")


class Settings:
    """What the program is set up with."""

    api_key = KEY


class HTTPError(Exception):
    """A client's error whose text is the URL, as many are."""

    status_code = 500


def charge_tool(provider: Provider, raised: BaseException) -> Tool[..., Any]:
    @tool(key=("order",), policy=Policy(patience_s=0.1))
    def charge(effect: Effect, order: str) -> Any:
        """Charge the customer's card once for one order. Use it when the total is confirmed."""
        post(provider, effect, {"order": order})
        raise raised

    return charge


def leaky(*, note: str) -> BaseException:
    problem = HTTPError(f"500 Server Error for url: {URL}", {"url": URL, "settings": Settings.api_key})
    problem.add_note(note)
    problem.__cause__ = ConnectionError(f"Authorization: Bearer {KEY}")
    problem.__context__ = ValueError(KEY)
    return problem


def raw(ledger_url: str) -> str:
    """Every byte of a SQLite ledger, its log included; every column of every table of a server's."""
    url = sa.make_url(ledger_url)
    if url.get_backend_name() == "sqlite":
        file = Path(str(url.database))
        with sqlite3.connect(file) as connection:
            dump = "\n".join(connection.iterdump())
        return dump + "".join(one.read_bytes().decode("latin-1") for one in file.parent.glob(f"{file.name}*"))
    engine = sa.create_engine(ledger_url)
    try:
        with engine.connect() as connection:
            tables = [sa.table(name) for name in sa.inspect(connection).get_table_names()]
            asked: list[Any] = [sa.select(sa.literal_column("*")).select_from(table) for table in tables]
            return "\n".join(repr(row) for one in asked for row in connection.execute(one))
    finally:
        engine.dispose()


@pytest.mark.parametrize(
    ("note", "hide"),
    [(f"the call was made with key={KEY}", ()), (f"the word was {KEY}!", ()), ("nothing to add", (KEY,))],
    ids=["by its place", "by the same word elsewhere", "by name"],
)
def test_the_secret_stays_where_it_was(
    ledger_url: str, provider: Provider, caplog: pytest.LogCaptureFixture, note: str, hide: tuple[str, ...]
) -> None:
    """The verdict is unknown (500 after dispatch), the effect is at the provider; the secret is in no message, log
    line, trace attribute, audit output or table, the raw database included; code and next action are whole."""
    caplog.set_level(logging.DEBUG)
    spans: list[tuple[str, ...]] = []
    settings: dict[str, Any] = {"observer": lambda *told: spans.append(told), "clock": SystemClock()}
    tools = [charge_tool(provider, leaky(note=note))]
    with Executor(ledger_url, tools, messages=Messages(hide=hide), **settings) as executor:
        seen = executor.call("charge", {"order": "A-1"}, task="trip-42", call_id="call_1")
        executor.reconcile()
        assert_unknown(seen)
        for text in (seen.text, seen.message("json"), repr(seen), json.dumps(seen.as_dict())):
            assert [word for word in NEVER_TOLD if word in text] == []
        (lost,) = details(executor, seen.effect_id, "lost")
        audit = repr(executor.audit.effects()) + repr(executor.audit.history(str(seen.effect_id)))
        audit += repr(executor.audit.incidents()) + repr(executor.audit.doubts())
    assert len(provider.effects()) == 1
    assert KEY not in audit
    assert KEY not in raw(ledger_url)
    assert KEY not in caplog.text + repr([vars(record) for record in caplog.records])
    assert KEY not in repr(spans)
    assert "https://api.x/v1?key=***&x=***" in lost["error"]["text"], "engineers still see where it went"
    assert lost["error"]["status"] == 500
    assert lost["code"] == seen.code
