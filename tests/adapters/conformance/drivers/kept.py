"""What a loop of one's own keeps of its conversation: the messages, in a file, before any tool of a round is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_NAME = "conversation.json"


def keep(store: Path, said: list[dict[str, Any]]) -> None:
    """Keep all that was said so far."""
    (store / _NAME).write_text(json.dumps(said), encoding="utf-8")


def kept(store: Path) -> list[dict[str, Any]]:
    """What was kept last."""
    said: list[dict[str, Any]] = json.loads((store / _NAME).read_text(encoding="utf-8"))
    return said
