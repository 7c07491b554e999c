"""smtplib against a real socket: which of its failures prove, which need a declaration, which say nothing."""

from __future__ import annotations

import smtplib

import pytest
from failure.failure_clients import AMPLE_S, SHORT_S, failure_of
from failure.failure_errors import anywhere, once
from failure.failure_faults import LOOPBACK, MailServer, closed_port, served

from counterfoil.effect import Lost, NeverSent, Refused


def _mail(port: int, host: str = LOOPBACK, limit_s: float = AMPLE_S) -> BaseException:
    def send(_: str, timeout_s: float) -> None:
        with smtplib.SMTP(host, port, local_hostname="here", timeout=timeout_s) as connection:
            connection.sendmail("a@counterfoil.invalid", ["b@counterfoil.invalid"], "Subject: hello\r\n\r\nhello\r\n")

    return failure_of(send, "", limit_s)


BEFORE_DATA = ("220 ready", "250 hello", "250 sender ok")


@pytest.mark.parametrize(
    ("lines", "raised", "proven", "arrived"),
    [
        (("554 closed today", "221 bye"), smtplib.SMTPConnectError, NeverSent, False),
        ((), smtplib.SMTPServerDisconnected, Lost, False),
        ((*BEFORE_DATA, "550 nobody here", "250 reset", "221 bye"), smtplib.SMTPRecipientsRefused, Lost, False),
        ((*BEFORE_DATA, "250 ok", "354 go on"), smtplib.SMTPServerDisconnected, Lost, True),
        (
            (*BEFORE_DATA, "250 ok", "354 go on", "552 too large", "250 ok", "221 bye"),
            smtplib.SMTPDataError,
            Lost,
            True,
        ),
    ],
    ids=["not-open", "closed-at-once", "recipient-refused", "closed-after-data", "message-refused"],
)
def test_mail(lines: tuple[str, ...], raised: type[BaseException], proven: type, arrived: bool) -> None:
    """A server that did not open proves never_sent; a lost connection never; an answer only when it is listed."""
    with served(MailServer(*lines)) as server:
        exc = _mail(server.port)
        assert bool(server.received) is arrived
    assert type(exc) is raised
    assert type(once(exc)) is proven
    assert isinstance(anywhere(exc), Lost)
    listed = once(exc, raised)
    answered = raised in (smtplib.SMTPRecipientsRefused, smtplib.SMTPDataError)
    assert type(listed) is (Refused if answered else proven)


def test_mail_without_a_connection() -> None:
    """smtplib lets the socket's own errors through: refused and unknown hosts prove, a silent server does not."""
    with closed_port() as port:
        refused = _mail(port)
    unknown = _mail(25, "counterfoil.invalid")
    with served(MailServer(silent=True)) as server:
        silent = _mail(server.port, limit_s=SHORT_S)
    assert [type(once(exc)) for exc in (refused, unknown, silent)] == [NeverSent, NeverSent, Lost]
    assert isinstance(silent, smtplib.SMTPServerDisconnected)
