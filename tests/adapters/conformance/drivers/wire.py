"""The other end of an API's client: answers its HTTP requests from the script, without a network.

Owns the failure that has the SDK repeat each request to the model: its retries are on, and must double nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx2
from adapters.conformance.model import Call, Model, Told


class Wire:
    """`told_of` finds the results in a request, `said` puts calls into the API's form of a response."""

    def __init__(
        self,
        model: Model,
        told_of: Callable[[dict[str, Any]], Sequence[Told]],
        said: Callable[[tuple[Call, ...]], dict[str, Any]],
    ) -> None:
        self._model = model
        self._told_of = told_of
        self._said = said
        self._fails = True

    def blocking(self) -> httpx2.Client:
        """A client that talks to this."""
        return httpx2.Client(transport=httpx2.MockTransport(self._answer))

    def asynchronous(self) -> httpx2.AsyncClient:
        """The same for a program with a loop."""
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        if self._fails:
            self._fails = False
            return httpx2.Response(500, headers={"retry-after-ms": "1"}, json={"error": {"message": "overloaded"}})
        self._fails = True
        told = self._told_of(json.loads(request.content))
        return httpx2.Response(200, json=self._said(self._model.reply(told)))
