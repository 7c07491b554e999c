"""What is taken out of foreign texts, for the ledger and for a model."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from counterfoil.account import account_of
from counterfoil.cleaning import KEPT_BYTES, clean_data, kept, masked, plain, secrets_in

PLANTED = "SECRET-123/+ä"


@pytest.mark.parametrize(
    "text",
    [
        "https://api.x/v1?key=S3CRET&x=1",
        "https://api.x/v1?x=1;k=S3CRET#top",
        "https://agent:S3CRET@api.x/v1",
        "postgresql://agent:S3CRET@db/ledger",
        "Authorization: Bearer S3CRET",
        "{'Authorization': 'Bearer S3CRET'}",
        "authorization=S3CRET",
        "Basic S3CRET==",
        "X-Api-Key: S3CRET",
        '{"api_key": "S3CRET", "x": 1}',
        "client_secret=S3CRET",
        "password is wrong, password=S3CRET",
        "stripe_token='S3CRET'",
        "Set-Cookie: S3CRET",
        "key%3DS3CRET",
        "https://api.x/?key=S3CRET and again S3CRET in words",
        "-----BEGIN PRIVATE KEY-----\nS3CRET\nS3CRET\n-----END PRIVATE KEY-----",
        "eyJhbGciOiJI.S3CRET.abcdefgh",
        "sk_live_S3CRETS3CRET",
        "the word " + "aS3CRET9" * 5,
    ],
)
def test_a_secret_is_known_by_where_it_stands(text: str) -> None:
    """In a query, a header, an assignment, a well-known form: masked there, and wherever else the same word stands."""
    assert "S3CRET" not in masked(text)
    assert "S3CRET" not in plain(text, 500)
    assert "S3CRET" not in kept(text)["text"]


@pytest.mark.parametrize(
    "text",
    [
        "the card was declined", "no seat on 2026-03-04T09:00:00+01:00", "token expired", "Basic seats are sold out",
        "the key is not known", "payment pi_3NabcDEF not found", "effect cf-f2rzzmhi6bdmomomvrqm4lpsv3ca",
        "order 6f1c2b1e-8c55-4d5e-9d0b-2f0f1f7a5a10", "and/or, 3/4, w/o", "1.5 of 2.0", "a <= b and b > c",
        "Zoë & Ada pay 10 €", "It's 100% of {that}",
    ],
)  # fmt: skip
def test_ordinary_words_stay(text: str) -> None:
    """What a person would say is neither masked nor taken for markup, a path or a host."""
    assert masked(text) == text
    assert plain(text, 500) == text


@pytest.mark.parametrize(
    "written",
    [
        PLANTED,
        quote(PLANTED, safe=""),
        base64.b64encode(PLANTED.encode()).decode(),
        PLANTED.encode().hex(),
        repr(PLANTED),
    ],
)
def test_a_known_secret_is_masked_in_every_notation(written: str) -> None:
    """As it is, in a URL, in base64, in hexadecimal."""
    assert written.strip("'=") not in masked(f"it said {written} there", [PLANTED])


def test_the_longer_secret_goes_first() -> None:
    """Of two secrets, one the beginning of the other, no rest stays."""
    assert masked("abcd-efgh", ["abcd", "abcd-efgh"]) == "***"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<html><head><title>502</title></head><body>Bad <b>gateway</b></body></html>", "Bad gateway"),
        ("no seat<script>alert(1)</script>", "no seat"),
        ("line\none\r\n\ttwo\u2028three", "line one two three"),
        ("see /srv/app/main.py", "see …"),
        ("see C:\\app\\main.py", "see …"),
        ("from 10.0.0.7:5432 and db.internal", "from … and …"),
        ("no\x00nul\ud800", "no\N{REPLACEMENT CHARACTER}nul?"),
        ("it broke\nTraceback (most recent call last):\n  File ...", "it broke"),
        ("x" * 100, "x" * 23 + "… (100 characters)"),
    ],
)
def test_a_model_reads_one_line_of_words(text: str, told: str) -> None:
    """No markup, line break, path, host or trace; cut to the cap, and what was cut is said."""
    assert plain(text, 41) == told


SIZES: dict[str, str] = {
    "html": "<p class='x'>away</p>" * 100_000,
    "one line": "x1" * 500_000,
    "dots": "a." * 500_000,
    "equals": "key=" * 250_000,
    "open tags": "<a " * 300_000,
    "slashes": "/a" * 500_000,
    "spaces": " " * 1_000_000,
    "quotes": "'\"" * 500_000,
}


@pytest.mark.parametrize("name", SIZES)
def test_megabytes_cost_no_time(name: str) -> None:
    """Two megabytes of any shape are cut within a second of work, for the model and for the ledger."""
    started = time.process_time()
    assert len(plain(SIZES[name], 200)) <= 200
    account = kept(SIZES[name])
    assert time.process_time() - started < 2.0
    assert len(account["text"].encode()) <= KEPT_BYTES
    assert account["size"] == len(SIZES[name])
    assert account["digest"].startswith("sha256:")


@pytest.mark.parametrize("before", range(0, 40_000, 1_237))
def test_no_border_cuts_a_secret_in_two(before: int) -> None:
    """Wherever a known secret stands in a large text, no part of it is kept."""
    planted = "correct-horse-battery"
    text = "a " * (before // 2) + f"({planted})" + "b " * ((40_000 - before) // 2)
    for part in (kept(text, [planted])["text"], plain(text, 16_000, [planted])):
        assert not any(planted[start : start + 8] in part for start in range(len(planted) - 8))


@dataclass
class Session:
    """What a caller might give as context."""

    token: str
    language: str = "en"
    inner: Any = None


def test_secrets_of_a_context_are_found() -> None:
    """By their names, by their looks, in objects and lists, wrapped as secrets; ordinary words are not among them."""
    context = {"session": Session("hunter2", inner=[SecretStr("let me in"), b"raw-bytes-1"]), "user": "Ada", "page": 3}
    assert set(secrets_in(context)) == {"hunter2", "let me in", "raw-bytes-1"}
    wide = {"token": "hunter2"} | {f"a{number}": {"b": [Session("x")] * 50} for number in range(5_000)}
    started = time.process_time()
    assert next(iter(secrets_in(wide))) == "hunter2"
    list(secrets_in(wide))
    assert time.process_time() - started < 1.0, "there is an end to it"

    class Odd:
        @property
        def __dict__(self) -> Any:  # type: ignore[override]
            raise RuntimeError

    assert list(secrets_in({"odd": Odd(), "token": "hunter2"})) == ["hunter2"]
    loop: dict[str, Any] = {"token": "hunter2"}
    loop["self"] = loop
    assert set(secrets_in(loop)) == {"hunter2"}
    assert list(secrets_in(None)) == []


def test_data_is_cleaned_to_its_leaves() -> None:
    """Names and texts inside candidates are cleaned, what is no JSON data is dropped, and there is an end to depth."""
    deep: Any = {"a": {"b": {"c": {"d": 1}}}}
    assert clean_data(["<b>x</b>", object(), 1, None, True], 80) == ["x", None, 1, None, True]
    assert clean_data(deep, 80) == {"a": {"b": {"c": None}}}
    assert len(clean_data(["x"] * 1_000, 80)) == 10


def test_an_account_reads_nothing_that_fails() -> None:
    """An exception whose text, notes or status cannot be had is accounted for by its kind."""

    class Odd(Exception):
        __notes__ = 7  # type: ignore[assignment]

        def __str__(self) -> str:
            raise RuntimeError

        @property
        def status(self) -> int:
            raise RuntimeError

    assert account_of(Odd())["text"].endswith("Odd")
    circle = ValueError("round")
    circle.__cause__ = circle
    assert account_of(circle) == {"text": "ValueError: round"}
