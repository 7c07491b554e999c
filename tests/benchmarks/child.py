"""The process of one side: `python -m benchmarks.child MODULE CLASS PLACE`, asked and answering in lines of JSON.

Asked `{"do": "round", …}`, `{"do": "count"}` or `{"do": "close"}`, or the name of another method with its arguments.
Whatever else is printed goes to the error output. Uses the standard library alone.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import traceback
import warnings
from typing import Any


def answers(side: Any, asked: dict[str, Any]) -> Any:
    """What the side says to one question."""
    return getattr(side, asked.pop("do"))(**asked)


def main() -> None:
    """Open the side, say so, and answer until the input ends."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    module, name, place = sys.argv[1:4]
    try:
        side = getattr(importlib.import_module(f"benchmarks.sides.{module}"), name)(place)
        channel.write(json.dumps({"said": "open"}) + "\n")
        for line in sys.stdin:
            asked = json.loads(line)
            last = asked["do"] == "close"
            channel.write(json.dumps({"said": answers(side, asked)}) + "\n")
            if last:
                break
    except BaseException:
        channel.write(json.dumps({"trouble": traceback.format_exc()[-4000:]}) + "\n")
        raise
    channel.flush()
    os._exit(0)  # a peer's own threads may never end


if __name__ == "__main__":
    main()
