"""What is taken out of a foreign text: secrets before it is kept, everything technical before a model reads it.

Owns the masks and the caps. It knows no exception, no tool and no ledger. Known secrets are masked wherever they stand;
unknown ones by the places where they usually stand (a URL's query, an Authorization header, `key=…`), and then wherever
else the same word stands in the text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, Final
from urllib.parse import quote, quote_plus

from pydantic import SecretBytes, SecretStr

from counterfoil.text import storable

MASK: Final = "***"
KEPT_BYTES: Final = 8_192
HIDDEN_MIN: Final = 4
_THINGS_MAX: Final = 2_000
# A word by one of these names is a secret, in whatever notation: `key=…`, `"token": "…"`, `X-Api-Key: …`.
_NAMES: Final = (
    r"(?:[\w.-]{0,40}(?:api|access|secret|private|signing|session|auth|client)[-_ ]?(?:key|token|id[-_]secret|secret)"
    r"|[\w.-]{0,40}(?:passwor[dt]|passwd|passphrase|pwd|secret|token|credential|signature|cookie)s?"
    r"|key|sig|auth|jwt|otp|cvc|cvv)"
)
_PREFIXED: Final = (
    r"(?<![\w-])(?P<secret>(?:(?:sk|pk|rk|whsec|gh[opsu]|github_pat|glpat|xox[a-z])[-_]|AKIA|ASIA|AIza|eyJ)"
)
_PLACES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bBearer\s+(?P<secret>[^\s\"'<>,;]{4,2000})",
        r"\b(?:Basic|Token|Digest|ApiKey|Negotiate)\s+(?=\S*\d|\S{16})(?P<secret>[^\s\"'<>,;]{4,2000})",
        r"\bAuthorization\b[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<secret>[^\s\"'<>,;]{4,2000})",
        r"(?<![\w-])" + _NAMES + r"(?:[\"']?\s{0,3}[:=]\s{0,3}[\"']?|%3D)(?P<secret>[^\s\"'<>,;&]{3,2000})",
        r"[?&;][\w.\[\]%-]{1,80}=(?P<secret>[^\s\"'<>&;#]{1,2000})",  # whatever stands in a query is the provider's
        r"://(?P<secret>[^\s/@\"'<>]{1,500})@",
        r"(?P<secret>-----BEGIN [A-Z ]{3,40}-----[\s\S]{0,8000}?(?:-----END [A-Z ]{3,40}-----|\Z))",
        _PREFIXED + r"[\w.-]{8,2000})",
    )
)
# A long word of letters and digits is more likely a credential than anything that an engineer needs.
_LONG: Final = re.compile(r"(?<![\w+/=.-])(?!cf-)(?=[\w+/=-]*\d)(?=[\w+/=-]*[A-Za-z])[\w+/=-]{32,}")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SCHEMES: Final = frozenset({"bearer", "basic", "token", "digest", "apikey", "negotiate"})
_WINDOW: Final = 16_384
_LONG_RUN: Final = re.compile(r"\S{512,}")  # no word of a language


def masked(text: str, hidden: Iterable[str] = ()) -> str:
    """`text` without secrets: the `hidden` ones, and what stands where secrets stand.

    Example:
        >>> masked("GET https://api.example/v1?key=SECRET-123&x=1 failed; SECRET-123 is refused")
        'GET https://api.example/v1?key=***&x=*** failed; *** is refused'
        >>> masked("the word is hunter2", hidden=["hunter2"])
        'the word is ***'
    """
    for secret in sorted(_notations(hidden), key=len, reverse=True):
        text = text.replace(secret, MASK)
    seen: set[str] = set()
    for place in _PLACES:
        for match in place.finditer(text):
            word = match["secret"]
            if word.lower() not in _SCHEMES and word != MASK:
                seen.add(word)
        text = place.sub(_without, text)
    for word in sorted(seen, key=len, reverse=True):
        if len(word) >= HIDDEN_MIN and not word.isalpha():  # "true" and "de" are no secrets elsewhere
            text = text.replace(word, MASK)
    return _LONG.sub(lambda match: match[0] if _UUID.fullmatch(match[0]) else MASK, text)


def without(data: Any, hidden: Iterable[str]) -> Any:
    """JSON data in whose texts no word of `hidden` stands, in any of its usual notations; nothing else is changed.

    Example:
        >>> without({"note": "paid with 4242-4242"}, ["4242-4242"])
        {'note': 'paid with ***'}
    """
    words = sorted(_notations(hidden), key=len, reverse=True)
    return _without_words(data, words) if words else data


def _without_words(data: Any, words: list[str]) -> Any:
    match data:
        case str():
            for word in words:
                data = data.replace(word, MASK)
            return data
        case dict():
            return {_without_words(name, words): _without_words(one, words) for name, one in data.items()}
        case list() | tuple():
            return [_without_words(one, words) for one in data]
        case _:
            return data


def kept(text: str, hidden: Iterable[str] = ()) -> dict[str, Any]:
    """What the ledger keeps of a text for engineers: at most 8 kB of it, beginning and end, without secrets.

    Where something was cut, `size` (in bytes) and `digest` of the whole stand beside it.

    Example:
        >>> kept("no such host")
        {'text': 'no such host'}
        >>> sorted(kept("x " * 20_000))
        ['digest', 'size', 'text']
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= KEPT_BYTES:
        short = _cut_bytes(masked(storable(text), hidden), KEPT_BYTES)
        return {"text": short}
    # Masked in windows that are larger than what is kept, so that no secret is cut in two at a border.
    half = KEPT_BYTES // 2
    head = _cut_bytes(masked(storable(text[:_WINDOW]), hidden), half)
    tail = masked(storable(text[-_WINDOW:]), hidden).encode()[-(half - 64) :].decode("utf-8", "ignore")
    if len(text) < 2 * _WINDOW:  # the windows overlap, and a border may lie inside what is kept of the other
        whole = masked(storable(text), hidden).encode()
        head, tail = _cut_bytes(whole.decode(), half), whole[half:][-(half - 64) :].decode("utf-8", "ignore")
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    return {"text": f"{head} … {tail}", "size": len(data), "digest": digest}


def plain(text: str, most: int, hidden: Iterable[str] = ()) -> str:
    """`text` as a model may read it: one line without markup, URLs, hosts, paths, traces and secrets, cut to `most`
    characters; what was cut is said.

    Example:
        >>> plain("<html><body>No <b>seat</b> is free</body></html>", 100)
        'No seat is free'
        >>> plain("see https://api.example/v1?key=x or /srv/app/main.py", 100)
        'see … or …'
    """
    size = len(text)
    short = storable(text[:_WINDOW])
    if size > _WINDOW:
        short = short.rpartition(" ")[0] or ""  # the last word may be half a secret
    trace = _TRACE.search(short)
    if trace is not None:
        short = short[: trace.start()]
    short = _MARKUP.sub(" ", _HIDDEN_MARKUP.sub(" ", short))
    short = masked(short, hidden)
    short = _TECHNICAL.sub("…", short)
    short = _LONG_RUN.sub("…", short)
    short = re.sub(r"(?:…[\s,;]*)+…", "…", " ".join(short.split()))
    if size <= _WINDOW and len(short) <= most:
        return short
    note = f"… ({size:,} characters)"
    return short[: max(0, most - len(note))].rstrip(" .…") + note


def clean_data(value: Any, most: int, hidden: Iterable[str] = (), depth: int = 3) -> Any:
    """JSON data with its texts made `plain`; what is no JSON data is None.

    Example:
        >>> clean_data({"slot": "09:00", "raw": object()}, 80)
        {'slot': '09:00', 'raw': None}
    """
    match value:
        case None | bool() | int() | float():
            return value if not isinstance(value, int) or abs(value) < 10**30 else None
        case str():
            return plain(value, most, hidden)
        case Mapping() if depth:
            return {plain(str(name), most, hidden): clean_data(one, most, hidden, depth - 1)
                    for name, one in list(value.items())[:10]}  # fmt: skip
        case list() | tuple() if depth:
            return [clean_data(one, most, hidden, depth - 1) for one in value[:10]]
        case _:
            return None


def secrets_in(given: object, *, named_only: bool = False) -> Iterator[str]:
    """The words in tokens, sessions and settings that have to be hidden: by their names, or because they look so.

    `named_only`: by their names alone, as where an ordinary word must not be taken for one.

    It reads plain data and the attributes of objects, calls nothing of theirs, and looks at 2,000 things at most.

    Example:
        >>> sorted(secrets_in({"token": "hunter2", "language": "en", "session": {"id": "a81f03b7c2"}}))
        ['a81f03b7c2', 'hunter2']
    """
    waiting: deque[tuple[str, object]] = deque([("", given)])
    seen: set[int] = set()
    while waiting and len(seen) < _THINGS_MAX:
        name, thing = waiting.popleft()
        if isinstance(thing, (str, bytes)):
            text = thing if isinstance(thing, str) else thing.decode("utf-8", "replace")
            looks_so = len(text) >= 8 and any(sign.isdigit() for sign in text) and any(sign.isalpha() for sign in text)
            if ((looks_so or isinstance(thing, bytes)) and not named_only) or _NAMED.fullmatch(name):
                yield text
            continue
        if thing is None or isinstance(thing, (int, float, type, ModuleType)) or id(thing) in seen:
            continue
        seen.add(id(thing))
        waiting.extend(_inside(name, thing))


def _inside(name: str, thing: object) -> list[tuple[str, object]]:
    match thing:
        case dict():
            return [(str(key), one) for key, one in list(thing.items())[:_THINGS_MAX]]
        case list() | tuple() | set() | frozenset():
            return [(name, one) for one in list(thing)[:_THINGS_MAX]]
        case SecretStr() | SecretBytes():
            return [("secret", thing.get_secret_value())]
        case _:
            try:
                held = getattr(thing, "__dict__", None)
            except Exception:  # noqa: BLE001 - an object with a will of its own has nothing to tell
                held = None
            return [(str(key), one) for key, one in list(held.items())[:_THINGS_MAX]] if type(held) is dict else []


# ---------------------------------------------------------------- details

_NAMED: Final = re.compile(_NAMES, re.IGNORECASE)
_HIDDEN_MARKUP: Final = re.compile(
    r"<(script|style|head|title)\b.{0,8000}?(?:</\1\s{0,5}>|\Z)|<!--.{0,8000}?(?:-->|\Z)", re.IGNORECASE | re.DOTALL
)
_MARKUP: Final = re.compile(r"<[!/?]?[A-Za-z][^<>]{0,2000}>|<[!/?]?[A-Za-z][^<>]{0,2000}\Z|&(?:[a-z]{2,8}|#\d{1,6});")
_TRACE: Final = re.compile(
    r"Traceback \(most recent call last\)|\n\s{0,8}at [\w$.<>]{1,200}\(|\bFile \"[^\"]{1,300}\", line \d"
)
_TECHNICAL: Final = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>]{1,2000}"  # a URL
    r"|(?<![\w.])(?:~|\.{1,2})?(?:/[\w.@+-]{1,100}){2,}/?"  # a path
    r"|(?<!\w)[A-Za-z]:\\[^\s\"'<>]{1,300}"
    r"|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\b"  # an address
    r"|\b(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}(?:com|net|org|io|dev|app|cloud|local|internal|lan|corp|svc|test"
    r"|example|invalid)(?::\d{1,5})?\b"
    r"|\blocalhost(?::\d{1,5})?\b"
    r"|\b[\w.]{1,200}(?:Error|Exception)\b:?"
    r"|\b0x[0-9a-f]{6,}\b"
    r"|\b(?:Authorization\W{1,4})?(?:Bearer|Basic|Token)\s+\*\*\*",
    re.IGNORECASE,
)


def _without(match: re.Match[str]) -> str:
    word = match["secret"]
    if word.lower() in _SCHEMES:
        return match[0]
    start, end = match.start("secret") - match.start(), match.end("secret") - match.start()
    return match[0][:start] + MASK + match[0][end:]


def _notations(hidden: Iterable[str]) -> set[str]:
    """Each secret as it stands in a URL, in JSON, in base64."""
    words: set[str] = set()
    for secret in hidden:
        if len(secret) >= HIDDEN_MIN:
            raw = secret.encode("utf-8", "replace")
            words |= {secret, quote(secret, safe="", errors="replace"), quote_plus(secret, errors="replace")}
            words |= {json.dumps(secret)[1:-1], repr(secret)[1:-1], raw.hex()}
            words.add(base64.b64encode(raw).decode().rstrip("="))
    return words


def _cut_bytes(text: str, most: int) -> str:
    return text.encode()[:most].decode("utf-8", "ignore")
