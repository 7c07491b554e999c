"""Executors with a settable clock on each database."""

from __future__ import annotations

from calls.conftest import async_executor_of, charge, clock, executor_of, world

__all__ = ["async_executor_of", "charge", "clock", "executor_of", "world"]
