"""The frozen vectors, from other sources than the code that they hold to its word.

Sources: the texts and hashes below were composed by hand from the rules in the docstring of `counterfoil.identity`
(SHA-256 over `counterfoil-key`, NUL, `v1`, NUL and the canonical text; the id is base32 of its first 17 bytes), and are
computed here with hashlib alone. The order of members is the example of RFC 8785, section 3.2.3. The pairs of Unicode
spellings are examples of Unicode Standard Annex 15 (figures 3 to 5 and 7).
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest
import unit

from counterfoil.identity import CANONICAL_VERSION, canonical
from counterfoil.ledger import schema

GOLDEN = json.loads((Path(unit.__path__[0]) / "golden_identity.json").read_text())
SCOPES = {
    "by a name": '{"arguments":{"order":"A-1"},"by":"named arguments","tenant":"t1","tool":"charge"}',
    "another tenant": '{"arguments":{"order":"A-1"},"by":"named arguments","tenant":"t2","tool":"charge"}',
    "by two names": (
        '{"arguments":{"cents":["n","5e2"],"order":"A-1"},"by":"named arguments","tenant":"t1","tool":"charge"}'
    ),
    "by all arguments": (
        '{"arguments":{"cents":["n","5e2"],"order":"A-1"},"by":"all arguments","task":"trip-42","tenant":"t1",'
        '"tool":"charge"}'
    ),
    "by the caller": '{"by":"caller","key":"k-1","tenant":"t1","tool":"charge"}',
    "a second time": (
        '{"arguments":{"order":"A-1"},"by":"named arguments","occurrence":"2","tenant":"t1","tool":"charge"}'
    ),
}
FINGERPRINT = '{"arguments":{"cents":["n","5e2"],"order":"A-1"},"tool":"charge"}'


@pytest.mark.parametrize("name", SCOPES)
def test_a_frozen_key_is_the_hash_of_a_text_written_by_hand(name: str) -> None:
    """Key, id and fingerprint of the frozen vectors, without the library."""
    key = hashlib.sha256(b"counterfoil-key\0v1\0" + SCOPES[name].encode()).digest()
    frozen = GOLDEN["identities"][name]
    assert frozen["key"] == key.hex()
    assert frozen["id"] == "cf-" + base64.b32encode(key[:17]).decode().rstrip("=").lower()
    assert frozen["fingerprint"] == hashlib.sha256(b"counterfoil-fingerprint\0v1\0" + FINGERPRINT.encode()).hexdigest()


def test_members_stand_in_the_order_of_rfc_8785() -> None:
    """Sorted by UTF-16 code units: the example of the RFC, but for one letter of it that NFC takes apart."""
    members = dict.fromkeys(("\u20ac", "\r", "\uff21", "1", "\U0001f600", "\u0080", "\u00f6"), True)
    ordered = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\uff21"]
    assert list(json.loads(canonical(members))) == ordered


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[("\u212b", "\u00c5"), ("\u2126", "\u03a9"), ("A\u030a", "\u00c5"), ("o\u0302", "\u00f4")],
        *[("\uac00", "\u1100\u1161"), ("\u1e9b\u0323", "\u017f\u0323\u0307"), ("q\u0307\u0323", "q\u0323\u0307")],
    ],
)
def test_canonically_equivalent_texts_are_one(one: str, other: str) -> None:
    """Canonical equivalents are one text, compatibility equivalents stay two."""
    assert canonical(one) == canonical(other)
    assert canonical("\ufb01") != canonical("fi")
    assert canonical("2\u2075") != canonical("25")


def test_a_ledger_pins_the_version_that_its_effects_are_named_by() -> None:
    """One schema version, one canonical version (protocol F24): hosts of two never write in one ledger, since each
    refuses a ledger of another schema version. A new canonical version takes a new schema version."""
    assert {"0001": 1}[schema.REVISION] == CANONICAL_VERSION
