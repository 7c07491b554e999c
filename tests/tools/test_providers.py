"""The presets say what their sources say, and can be declared."""

from __future__ import annotations

import re
from pathlib import Path

from counterfoil import KeyPolicy, Policy
from counterfoil_tools import providers

PRESETS = {name: one for name, one in vars(providers).items() if isinstance(one, KeyPolicy)}


def test_every_preset_names_its_source() -> None:
    """Right above each preset stands the page that it is taken from."""
    text = Path(providers.__file__).read_text(encoding="utf-8")
    sourced = re.findall(r"((?:^# .*\n)+)^([A-Z_]+): Final = KeyPolicy\(", text, re.MULTILINE)
    assert {name for _, name in sourced} == set(PRESETS)
    assert all(re.match(r"# https://\S+", comment) for comment, _ in sourced)


def test_every_preset_can_be_declared() -> None:
    """Each leaves room for a resend of a tool with short times; none is below a quarter of an hour."""
    for one in PRESETS.values():
        assert Policy(timeout_s=10, grace_s=30, key_policy=one).key_policy is one
    assert min(one.retention_s for one in PRESETS.values()) == 15 * 60
    assert PRESETS["STRIPE"] == KeyPolicy(86_400, concurrent=True, replays_refusals=True, compares_body=True)
