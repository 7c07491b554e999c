"""`pause`, `resume` and `status`: a person stops a tool on every host, by name and with a reason."""

from __future__ import annotations

from typing import Any

import pytest

from counterfoil import Executor, Tool, tool

WORD = ("--by", "N. N.", "--why", "the bank asked for it")


def send_tool() -> Tool[..., Any]:
    """A tool that always works."""

    @tool(key=("what",))
    def send(what: str) -> str:
        """Send one thing. Use it when it is wanted."""
        return what

    return send


def test_a_pause_holds_for_every_tenant_until_it_is_resumed(run: Any, ledger_url: str) -> None:
    """After `pause` nothing begins, whosever the executor is; `status` says who and why; `resume` lets it go on."""
    with Executor(ledger_url, [send_tool()]) as one, Executor(ledger_url, [send_tool()], tenant="north") as other:
        assert run("status", "--ledger", ledger_url).out.strip() == "no tool is paused, and none fails"
        assert run("pause", "send", *WORD, "--ledger", ledger_url).code == 0
        codes = [each.call("send", {"what": "a"}).code for each in (one, other)]
        assert codes == ["paused", "paused"]
        (state,) = run("status", "--json", "--ledger", ledger_url).json
        assert (state["tool"], state["tenant"], state["paused_by"]) == ("send", "*", "N. N.")
        assert state["paused_at"].endswith("+00:00")
        assert "the bank asked for it" in run("status", "--ledger", ledger_url).out
        assert run("resume", "send", "--ledger", ledger_url).code == 0
        codes = [each.call("send", {"what": "a"}).code for each in (one, other)]
        assert codes == ["ok", "ok"]


def test_a_pause_of_one_tenant(run: Any, ledger_url: str) -> None:
    """The other tenants go on; it is resumed as it was made."""
    with Executor(ledger_url, [send_tool()]) as one, Executor(ledger_url, [send_tool()], tenant="north") as other:
        run("pause", "send", *WORD, "--tenant", "north", "--ledger", ledger_url)
        assert [each.call("send", {"what": "a"}).code for each in (one, other)] == ["ok", "paused"]
        ran = run("resume", "send", "--ledger", ledger_url)
        assert ran.code == 1
        assert "counterfoil status" in ran.err
        assert run("resume", "send", "--tenant", "north", "--ledger", ledger_url).code == 0
        assert other.call("send", {"what": "a"}).code == "ok"


@pytest.mark.parametrize("word", [("--by", "N. N."), ("--why", "because"), ("--by", " ", "--why", "because")])
def test_half_a_word_pauses_nothing(run: Any, ledger_url: str, word: tuple[str, ...]) -> None:
    """Without a name and a reason: exit code 1, how to mend it, nothing written."""
    ran = run("pause", "send", *word, "--ledger", ledger_url)
    assert (ran.code, ran.out) == (1, "")
    assert "--by NAME and --why TEXT" in ran.err
    assert run("status", "--json", "--ledger", ledger_url).json == []
