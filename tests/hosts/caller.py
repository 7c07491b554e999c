"""One process of a host: calls one effect after the other until its input ends, and writes down what it was told.

All hosts call the same orders, so that each effect is fought over; each order is called again a little later.
"""

from __future__ import annotations

import json
import sys
import threading
from itertools import count

from hosts.shop import executor

AGAIN_AFTER = 5


def main() -> None:
    ended = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    with executor() as running:
        for number in count():
            for order in (number, number - AGAIN_AFTER):
                if order < 0:
                    continue
                seen = running.call("pay", {"order": f"A-{order}"}, task="load", turn=number)
                told = {"order": f"A-{order}", "code": seen.code, "verdict": seen.verdict, "effect_id": seen.effect_id}
                sys.stdout.write(json.dumps(told) + "\n")
                sys.stdout.flush()
            if ended.is_set():
                return


if __name__ == "__main__":
    main()
