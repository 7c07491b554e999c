"""An application that `counterfoil mcp serve` serves: the payment tool of the conformance suite."""

from __future__ import annotations

import os
import subprocess

from adapters.conformance.house import House
from provider import Provider

from counterfoil import AsyncExecutor

print("the application starts")  # noqa: T201 - applications do print while they are imported
subprocess.run(["echo", "and so do the programs that it runs"], check=True)


def executor() -> AsyncExecutor:
    house = House(os.environ["COUNTERFOIL_LEDGER"], Provider.at(os.environ["PROVIDER_URL"]), real_time=True)
    return AsyncExecutor(house.ledger, [house.payment()])
