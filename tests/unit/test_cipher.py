"""Ciphertexts belong to one place of one effect, and to nobody without the key."""

from __future__ import annotations

import base64
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil import UsageError
from counterfoil.ledger.cipher import CipherKeys, DataKey, Unreadable, key_id

OLD, NEW = b"o" * 32, b"n" * 32
MINE, OTHER = b"m" * 32, b"t" * 32
KEYS = CipherKeys((NEW, OLD))


def fresh(of: bytes = MINE) -> DataKey:
    return KEYS.fresh(key_id(NEW), of)


@settings(max_examples=100, deadline=None)
@given(st.text(), st.binary(min_size=32, max_size=32))
def test_every_text_comes_back(text: str, of: bytes) -> None:
    """Any text, of any effect, also with half a character in it; and no two ciphertexts of it are alike."""
    data_key = fresh(of)
    one, two = data_key.conceal(text, "a"), data_key.conceal(text, "a")
    assert one != two
    assert one.isascii()
    assert KEYS.opened(data_key.wrapped, of).reveal(one, "a") == text
    assert data_key.reveal(data_key.conceal(text + "\ud800", "a"), "a") == text + "\ud800"


def test_a_ciphertext_of_another_place_is_refused() -> None:
    """What is put into another column of the same effect is not read there."""
    data_key = fresh()
    with pytest.raises(Unreadable, match="put in the place of another"):
        data_key.reveal(data_key.conceal("x", "arguments"), "value")


def test_a_ciphertext_of_another_effect_is_refused() -> None:
    """Moved alone it has the wrong key; moved together with its data key that one does not open."""
    mine, other = fresh(), fresh(OTHER)
    with pytest.raises(Unreadable, match="put in the place of another"):
        other.reveal(mine.conceal("x", "a"), "a")
    with pytest.raises(Unreadable, match="put in the place of another"):
        KEYS.opened(mine.wrapped, OTHER)
    moved = DataKey(mine.wrapped, OTHER, mine._word)
    with pytest.raises(Unreadable, match="put in the place of another"):
        moved.reveal(mine.conceal("x", "a"), "a")


def test_a_changed_ciphertext_is_refused() -> None:
    """Each byte of it counts, and so does each of the wrapped key; what is none at all is refused as well."""
    data_key = fresh()
    text = data_key.conceal("some words", "a")
    content = base64.b64decode(text[3:])
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        with pytest.raises(Unreadable):
            data_key.reveal("c1." + base64.b64encode(bytes(changed)).decode(), "a")
    for broken in ("", "plain", "c1.", "c1.!", "c1.äöü", text[:-4], text + "AAAA", "c2." + text[3:]):
        with pytest.raises(Unreadable):
            data_key.reveal(broken, "a")
    by, _, wrapped = data_key.wrapped.partition(".")
    for broken in ("", by, f"{by}.", f"{by}.{wrapped[:-8]}", f"{key_id(OLD)}.{wrapped}", f"{by}.{'A' * len(wrapped)}"):
        with pytest.raises(Unreadable):
            KEYS.opened(broken, MINE)


def test_a_key_that_is_not_here_is_named() -> None:
    """The id of the missing cipher key is in the text, and nothing of a key is."""
    wrapped = CipherKeys((OLD,)).fresh(key_id(OLD), MINE).wrapped
    with pytest.raises(Unreadable, match=f"cipher key with the id {key_id(OLD)}, which was not given"):
        CipherKeys((NEW,)).opened(wrapped, MINE)


def test_an_exchange_keeps_the_data_key() -> None:
    """Wrapped anew, the old ciphertexts are read with the new cipher key alone."""
    before = KEYS.fresh(key_id(OLD), MINE)
    text = before.conceal("x", "a")
    wrapped = KEYS.rewrapped(before.wrapped, key_id(NEW), MINE)
    assert CipherKeys((NEW,)).opened(wrapped, MINE).reveal(text, "a") == "x"


@pytest.mark.parametrize("given_key", [b"", b"short", "x" * 32, bytes(31), bytes(33), [], [bytes(32), b""], 7])
def test_what_is_no_cipher_key_is_refused(given_key: Any) -> None:
    """32 bytes, or a list of such: said to the developer."""
    with pytest.raises(UsageError, match="32 random bytes"):
        CipherKeys.given(given_key)


def test_no_key_shows_in_a_repr() -> None:
    """Neither a cipher key nor a data key."""
    word = os.urandom(32)
    keys = CipherKeys.given([word])
    assert keys is not None
    shown = repr(keys) + repr(keys.fresh(keys.newest, MINE))
    assert repr(word)[2:-1] not in shown
    assert "_word" not in shown
