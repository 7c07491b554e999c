"""An application that `counterfoil mcp serve` serves: the payment tool of the conformance suite.

LATER_S in the environment: its clock is so many seconds on, as when a server starts again long after a crash.
"""

from __future__ import annotations

import os
import subprocess
import time

from adapters.conformance.house import House
from provider import Provider

from counterfoil import AsyncExecutor, Clock, ManualClock, SystemClock

print("the application starts")  # noqa: T201 - applications do print while they are imported
subprocess.run(["echo", "and so do the programs that it runs"], check=True)


def executor() -> AsyncExecutor:
    house = House(os.environ["COUNTERFOIL_LEDGER"], Provider.at(os.environ["PROVIDER_URL"]), real_time=True)
    later_s = float(os.environ.get("LATER_S", "0"))
    clock: Clock = ManualClock(int((time.time() + later_s) * 1_000_000)) if later_s else SystemClock()
    return AsyncExecutor(house.ledger, [house.payment()], clock=clock)
