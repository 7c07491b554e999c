"""One provider for all tests of the suite, which forgets all between them: each is over in a fraction of its start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from adapters.conformance.playing import nursery
from provider import Provider


@pytest.fixture(scope="session")
def standing_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    """The process."""
    with Provider.start(tmp_path_factory.mktemp("provider") / "provider.jsonl") as running:
        yield running


@pytest.fixture
def provider(standing_provider: Provider) -> Iterator[Provider]:
    """As if just started. Nothing of a test is under way when it has ended; it fails otherwise."""
    yield standing_provider
    standing_provider.forget()
    assert (standing_provider.effects(), standing_provider.requests()) == ([], [])


@pytest.fixture(scope="session", autouse=True)
def nursery_at_work(request: pytest.FixtureRequest) -> None:
    """It imports the frameworks while the first scenarios are played, where any of them ends in a kill."""
    if any("killed" in item.name for item in request.session.items):
        nursery()
