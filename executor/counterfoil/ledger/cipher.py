"""Cipher keys, and the data keys that they wrap: AES-256-GCM, with what a text belongs to as its associated data.

Owns the form of a ciphertext (version 1). Each effect and each incident has a data key of its own, wrapped by a cipher
key: so exchanging a cipher key rewrites the wrapping alone, and no key is used for more than a few texts. What was
taken from elsewhere, or was changed, is an error and never a text. Knows no statement; imports `cryptography` only when
a cipher key is given.
"""

from __future__ import annotations

import binascii
import hmac
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from counterfoil.errors import LedgerUnavailable, UsageError

KEY_SIZE: Final = 32
MARK: Final = "c1."  # what a ciphertext begins with; no JSON text does
_NONCE: Final = 12
_NAME: Final = b"counterfoil cipher 1\0"
_WRAPPING: Final = "data key"


class Unreadable(LedgerUnavailable):
    """What is kept of an effect or incident cannot be decrypted. Nothing is concluded from it, least of all absence."""

    def __init__(self, why: str) -> None:
        super().__init__(why, certain=True)


def _unknown(key_id: str) -> Unreadable:
    return Unreadable(f"a record is encrypted by the cipher key with the id {key_id}, which was not given")


def _changed() -> Unreadable:
    return Unreadable("a record cannot be decrypted: it was changed, or put in the place of another")


@dataclass(frozen=True, slots=True)
class DataKey:
    """The key of one effect or incident. `wrapped` is how the database keeps it, `of` to what it belongs."""

    wrapped: str
    of: bytes
    _word: bytes = field(repr=False)

    def conceal(self, text: str, place: str) -> str:
        """The ciphertext of a text that stands in one place of the effect: a column, an entry."""
        return MARK + _encrypted(self._word, text.encode("utf-8", "surrogatepass"), self.of, place)

    def reveal(self, text: str, place: str) -> str:
        """The text of a ciphertext.

        Raises:
            Unreadable: it is none, was changed, or is that of another place or effect.
        """
        if not text.startswith(MARK):
            raise _changed()
        return _decrypted(self._word, text.removeprefix(MARK), self.of, place).decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class CipherKeys:
    """The cipher keys of one host, newest first."""

    words: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def given(cls, cipher_key: Any) -> CipherKeys | None:
        """What `cipher_key=` was given; None for None.

        Raises:
            UsageError: it is not of 32 bytes, or the extra `encryption` is not installed.
        """
        if cipher_key is None:
            return None
        words: Sequence[Any] = cipher_key if isinstance(cipher_key, list | tuple) else [cipher_key]
        if not words or any(not isinstance(one, bytes) or len(one) != KEY_SIZE for one in words):
            raise UsageError("cipher_key= takes 32 random bytes that you keep, or a list of such, the newest first")
        try:
            import cryptography.hazmat.primitives.ciphers.aead  # noqa: F401
        except ImportError:
            raise UsageError("encryption needs cryptography: pip install 'counterfoil[encryption]'") from None
        return cls(tuple(words))

    @property
    def newest(self) -> str:
        """The id of the newest."""
        return key_id(self.words[0])

    def knows(self, ids: Collection[str]) -> bool:
        """Whether all of these keys are here."""
        return set(ids) <= {key_id(one) for one in self.words}

    def fresh(self, by: str, of: bytes) -> DataKey:
        """A new data key, wrapped by the cipher key with that id.

        Raises:
            Unreadable: that key is not here.
        """
        return self._wrapped(os.urandom(KEY_SIZE), by, of)

    def opened(self, wrapped: str, of: bytes) -> DataKey:
        """The data key of an effect.

        Raises:
            Unreadable: its cipher key is not here, or it is that of another effect, or was changed.
        """
        by, _, text = wrapped.partition(".")
        return DataKey(wrapped, of, _decrypted(self._word(by), text, of, f"{_WRAPPING} {by}"))

    def rewrapped(self, wrapped: str, by: str, of: bytes) -> str:
        """The same data key, wrapped by another cipher key. Raises as `opened`."""
        return self._wrapped(self.opened(wrapped, of)._word, by, of).wrapped

    def _wrapped(self, word: bytes, by: str, of: bytes) -> DataKey:
        return DataKey(f"{by}.{_encrypted(self._word(by), word, of, f'{_WRAPPING} {by}')}", of, word)

    def _word(self, by: str) -> bytes:
        for one in self.words:
            if key_id(one) == by:
                return one
        raise _unknown(by[:16])


def key_id(cipher_key: bytes) -> str:
    """The name of a cipher key, which says nothing of it.

    Example:
        >>> key_id(bytes(32))
        '1c1b280d3e98790e'
    """
    return hmac.digest(cipher_key, _NAME + b"id", "sha256").hex()[:16]


def _belongs(of: bytes, place: str) -> bytes:
    return _NAME + len(of).to_bytes(2, "big") + of + place.encode()


def _encrypted(word: bytes, content: bytes, of: bytes, place: str) -> str:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(_NONCE)
    made = nonce + AESGCM(word).encrypt(nonce, content, _belongs(of, place))
    return binascii.b2a_base64(made, newline=False).decode()


def _decrypted(word: bytes, text: str, of: bytes, place: str) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        made = binascii.a2b_base64(text, strict_mode=True)
        return AESGCM(word).decrypt(made[:_NONCE], made[_NONCE:], _belongs(of, place))
    except (InvalidTag, ValueError):
        raise _changed() from None
