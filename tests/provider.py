"""A real provider in another process: every crash and race test counts its effects here.

Owns the client's side: starting and stopping the process, arming faults, sending, looking, counting at quiescence.
The server's side is `provider_server.py`. Must not import anything but the standard library, and nothing heavy, because
child processes import it and start often. Run by itself it is the server::

    python tests/provider.py --state FILE --port 0

`send` and `look` raise what `http.client` raises (a reset, a timeout, a refused connection): they are the lost answers.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, urlsplit

Kind: TypeAlias = Literal[
    "ack_lost", "request_lost", "late", "reset_after", "reset_before", "status", "slow", "refuse",
    "stale", "error", "hang", "empty", "double", "look_alike",
]  # fmt: skip
Concurrent: TypeAlias = Literal["refuse", "wait", "racy"]

START_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request.

    On `POST /effects`:
        ack_lost: acts, then the answer is lost (`mode`: "hold" keeps the connection open and silent, "drop" ends it).
        request_lost: does nothing; `mode` as above.
        late: the answer is lost at once (`mode`), and the request arrives `seconds` later, or at `Provider.release()`
            when `seconds` is None. With a `status`, that is answered at once, as by a gateway that has given up.
        reset_after, reset_before: acts or does not, then the connection is reset.
        status: answers `status` with `payload`; acts first when `acts`.
        slow: the provider works for `seconds` before it acts (until `release()` when None), then answers as usual.
        refuse: does nothing and answers `status` (402 by default) with `payload`.

    On `GET /effects`:
        stale: answers as if nothing were there. error: answers `status`. hang: never answers. empty: 200 and no body.
        double: each match twice, under two ids. look_alike: somebody else's effect with the same body, nothing else.
    """

    kind: Kind
    mode: Literal["hold", "drop"] = "drop"
    seconds: float | None = None
    status: int = 0
    acts: bool = False
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the provider answered: the status, and the body as JSON (None when it was empty)."""

    status: int
    body: Any


class Provider:
    """The provider's address, with everything a test wants to say to it. Also owns the process if it started it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, Provider.start(Path(folder) / "state") as provider:
        ...     answer = provider.send("order-1", body={"amount": 5})
        ...     answer.status, provider.count("order-1")
        (201, 1)
    """

    def __init__(self, url: str, state: Path | None = None, process: subprocess.Popen[str] | None = None) -> None:
        self.url = url
        self.state = state
        self._process = process

    # ------------------------------------------------------------ the process

    @classmethod
    def start(cls, state: Path, port: int = 0) -> Provider:
        """Start the server and wait until it listens. It ends with this process at the latest."""
        command = [sys.executable, "-S", str(Path(__file__).resolve()), "--state", str(state), "--port", str(port)]
        process = subprocess.Popen(
            [*command, "--follow-stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, close_fds=True
        )
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            _reap(process)
            raise RuntimeError(f"the provider did not start (exit code {process.returncode})")
        return cls(url, state, process)

    @classmethod
    def at(cls, url: str) -> Provider:
        """The provider that another process started, for a child process that was given its URL."""
        return cls(url)

    def kill(self) -> None:
        """End the process at once, as a crash would (SIGKILL). What it had acknowledged is in its file."""
        if self._process is not None:
            self._process.kill()
            _reap(self._process)

    stop = kill  # every line is on the disk before it is answered, so there is nothing to be gentle about

    def restart(self) -> None:
        """Start it again on the same port and file: it remembers its effects, but no fault and no setting."""
        self.kill()
        assert self.state is not None
        self._process = Provider.start(self.state, port=urlsplit(self.url).port or 0)._process

    def __enter__(self) -> Provider:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    # ------------------------------------------------------------ what a tool does

    def send(
        self,
        reference: str,
        *,
        key: str | None = None,
        body: Any = None,
        timeout_s: float = 2.0,
        fault: Fault | None = None,
    ) -> Answer:
        """Ask for one effect. Raises what `http.client` raises when the answer is lost; `timeout_s` is per read."""
        content = {"reference": reference, "key": key, "body": body}
        return self._ask("POST", "/effects", content, timeout_s=timeout_s, fault=fault)

    def look(self, reference: str | None = None, *, timeout_s: float = 2.0, fault: Fault | None = None) -> Answer:
        """List the effects that carry `reference` (all without it), as a postcondition would."""
        return self._ask("GET", _with("/effects", reference), timeout_s=timeout_s, fault=fault)

    def revoke(self, reference: str, keys: Sequence[str], *, timeout_s: float = 2.0) -> list[dict[str, Any]]:
        """Ask that no request under these keys has an effect from now on; the effects that are there already, if any.

        Without one the provider keeps a stone for each key, and answers 410 to a request that carries it.
        """
        content = {"reference": reference, "keys": list(keys)}
        return list(self._ask("POST", "/revocations", content, timeout_s=timeout_s).body)

    # ------------------------------------------------------------ what a test arranges

    def arm(
        self,
        kind: Kind,
        *,
        times: int | None = 1,
        skip: int = 0,
        reference: str | None = None,
        mode: Literal["hold", "drop"] = "drop",
        seconds: float | None = None,
        status: int = 0,
        acts: bool = False,
        payload: Any = None,
    ) -> None:
        """Let the next `times` requests of that kind fail (None: all), after letting `skip` pass; see `Fault`."""
        fault = Fault(kind, mode=mode, seconds=seconds, status=status, acts=acts, payload=payload)
        self._control({"arm": {"fault": asdict(fault), "times": times, "skip": skip, "reference": reference}})

    def disarm(self) -> None:
        """Forget every armed fault."""
        self._control({"disarm": True})

    def dedupe(
        self, retention_s: float | None, *, concurrent: Concurrent = "refuse", replays_refusals: bool = False
    ) -> None:
        """Remember keys for `retention_s` from their first arrival (None: not at all).

        A known key is answered with the stored answer, with 422 when the request differs, and, while the first request
        is at work, with 409 ("refuse"), after it ("wait"), or not at all because it is stored only when done ("racy").
        """
        settings = {"retention_s": retention_s, "concurrent": concurrent, "replays_refusals": replays_refusals}
        self._control({"dedupe": settings})

    def advance(self, seconds: float) -> None:
        """Move the provider's clock on: its keys age by so much. Late requests do not hurry."""
        self._control({"advance_s": seconds})

    def forget(self) -> None:
        """Be as if just started on an empty file, so that a next test can go on with the same process.

        Raises:
            TimeoutError: something is still under way, which would count in the next test.
        """
        self.release()
        self.quiesce()
        self._control({"forget": True})

    def release(self) -> None:
        """Let all that waits by now go on: late requests arrive, slow ones act, held connections end.

        What has not come so far yet waits for the next release: see `await_parked`.
        """
        self._control({"release": True})

    # ------------------------------------------------------------ what a test asks

    def effects(self, reference: str | None = None) -> list[dict[str, Any]]:
        """Every effect there is: id, reference, key, body, at. No fault touches this."""
        return list(self._said("GET", _with("/truth", reference))["effects"])

    def count(self, reference: str | None = None) -> int:
        """How many effects there are. Ask at quiescence."""
        return len(self.effects(reference))

    def requests(self) -> list[dict[str, Any]]:
        """Every request to `/effects` that arrived: method, reference, key, body, fault, at."""
        return list(self._said("GET", "/requests")["requests"])

    def quiesce(self, timeout_s: float = 10.0) -> None:
        """Wait until nothing can change any more: no late request, none unread in a socket, none at work.

        Raises:
            TimeoutError: it did not become quiet, for example because something waits for `release()`.
        """
        answer = self._said("GET", f"/quiet?wait_s={timeout_s}", timeout_s=timeout_s + 5.0)
        if not answer["quiet"]:
            raise TimeoutError(f"the provider is not quiet: {answer}")

    def await_parked(self, count: int = 1, timeout_s: float = 10.0) -> None:
        """Wait until so many requests are at the point where only `release()` (or their seconds) lets them go on.

        Raises:
            TimeoutError: they did not come so far.
        """
        answer = self._said("GET", f"/parked?count={count}&wait_s={timeout_s}", timeout_s=timeout_s + 5.0)
        if not answer["enough"]:
            raise TimeoutError(f"too few requests wait: {answer}")

    # ------------------------------------------------------------ details

    def _control(self, content: Mapping[str, Any]) -> None:
        self._said("POST", "/control", content)

    def _said(self, method: str, path: str, content: Any = None, *, timeout_s: float = 5.0) -> Any:
        answer = self._ask(method, path, content, timeout_s=timeout_s)
        if answer.status != 200:
            raise ValueError(f"the provider refused {method} {path}: {answer.body}")
        return answer.body

    def _ask(
        self, method: str, path: str, content: Any = None, *, timeout_s: float, fault: Fault | None = None
    ) -> Answer:
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=timeout_s)
        headers = {"Content-Type": "application/json"} | ({"X-Fault": json.dumps(asdict(fault))} if fault else {})
        try:
            connection.request(method, path, None if content is None else json.dumps(content), headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        return Answer(answer.status, json.loads(text) if text else None)


def _with(path: str, reference: str | None) -> str:
    return path if reference is None else f"{path}?reference={quote(reference, safe='')}"


def _reap(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.wait(START_TIMEOUT_S)


if __name__ == "__main__":
    from provider_server import main

    main(sys.argv[1:])
