"""The names whose contents are kept nowhere, whatever their type is: passwords, tokens, card numbers.

Owns the list. It knows neither arguments nor values; who handles them asks here. What is secret by its kind and not by
its name is marked where it is declared, with `Secret` or `SecretStr`.
"""

from __future__ import annotations

import re
from typing import Any, Final

MASK: Final = "***"
_WORDS: Final = frozenset(
    {
        "accesskey", "accesstoken", "apikey", "apisecret", "apitoken", "auth", "authorization", "authtoken", "bearer",
        "bearertoken", "cardnumber", "clientsecret", "cookie", "credential", "credentials", "csrftoken", "cvc", "cvv",
        "encryptionkey", "idtoken", "jwt", "otp", "passcode", "passphrase", "passwd", "password", "passwort", "pin",
        "privatekey", "pwd", "refreshtoken", "secret", "secretkey", "secrettoken", "securitycode", "sessioncookie",
        "sessiontoken", "setcookie", "signingkey", "token", "totp", "webhooksecret",
    }
)  # fmt: skip
_ENDS: Final = (
    *("accesskey", "accesstoken", "apikey", "authtoken", "cardnumber", "passphrase", "passwd", "password"),
    *("privatekey", "refreshtoken", "secret", "secretkey", "securitycode", "sessiontoken"),
)
_NO_LETTER: Final = re.compile(r"[^a-z0-9]+")


def is_private(name: object) -> bool:
    """Whether what has this name is kept nowhere, by the name alone.

    Example:
        >>> [is_private(name) for name in ("password", "X-Api-Key", "clientSecret", "page_token", "order")]
        [True, True, True, False, False]
    """
    bare = _NO_LETTER.sub("", str(name).lower())
    return bare in _WORDS or bare.endswith(_ENDS)


def without_private(data: Any) -> Any:
    """JSON data with what stands under a private name masked, at any depth.

    Example:
        >>> without_private({"id": 1, "charge": [{"client_secret": "x"}]})
        {'id': 1, 'charge': [{'client_secret': '***'}]}
    """
    match data:
        case dict():
            return {
                name: MASK if is_private(name) and not isinstance(one, bool | None) else without_private(one)
                for name, one in data.items()
            }
        case list() | tuple():
            return [without_private(one) for one in data]
        case _:
            return data


def only(data: Any, names: tuple[str, ...]) -> Any:
    """The chosen fields of an object, or of each object of a list; None of anything else.

    Example:
        >>> only({"payment": "pi_1", "receipt_email": "a@b.c"}, ("payment",))
        {'payment': 'pi_1'}
    """
    match data:
        case dict():
            return {name: data[name] for name in names if name in data}
        case list() | tuple():
            return [only(one, names) for one in data]
        case _:
            return None
