"""Executors with a settable clock on each database, and tools that fail as a test says."""

from __future__ import annotations

from calls.conftest import async_executor_of, clock, executor_of, world

__all__ = ["async_executor_of", "clock", "executor_of", "world"]
