"""Races are run by the processes of the nursery, on a stage."""

from __future__ import annotations

from crash.fixtures import nursery, stage

__all__ = ["nursery", "stage"]
