"""How properties are tested here: without a wall clock, so that a slow machine proves the same as a fast one."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("counterfoil", deadline=None)
settings.load_profile("counterfoil")
