"""The nursery for a whole session, and a stage for each test: its ledger, its provider. For conftest files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crash.nursery import Nursery
from crash.story import Stage, closed_port
from provider import Provider


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Where the processes of the tests come from."""
    with Nursery() as running:
        yield running


@pytest.fixture
def stage(ledger_url: str, provider: Provider, nursery: Nursery, tmp_path: Path) -> Iterator[Stage]:
    """A ledger and a provider of this test's own, and the nursery."""
    folder = tmp_path / "lives"
    folder.mkdir()
    with closed_port() as port:
        stage = Stage(ledger_url, provider, nursery, folder, port)
        yield stage
        stage.close()
