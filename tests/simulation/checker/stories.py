"""Small histories, written by hand: a ledger that does what it is told, so that it can be made to lie.

It keeps the columns in step with each other and guards nothing; what an honest ledger would refuse is the test's to do.
Instants are plain numbers: the margin is 1, a timeout 10, a grace 20, a retention 1000.
"""

from __future__ import annotations

import copy
from typing import Any

MARGIN, TIMEOUT, GRACE, RETENTION, AUDIT = 1, 10, 20, 1000, 500
TIERS: dict[str, dict[str, Any]] = {
    "T0": {},
    "T1": {"looks": True},
    "T2": {"looks": True, "grace_us": GRACE},
    "T3": {"grace_us": GRACE, "retention_us": RETENTION},
    "T4": {"revokes": True},
    "T5": {},
}
BLANK: dict[str, Any] = {
    "key": "aa", "id": "e", "tool": "pay", "task": "", "fingerprint": "f1", "arguments": "{}", "verdict": "no_effect",
    "proof": None, "code": None, "attempts": 0, "open_attempts": 0, "settled_attempt": None, "lease_until": 0,
    "version": 0, "sends_until": 0, "absent_from": None, "look_at": None, "review_at": None, "conditional_at": None,
    "grace_us": None, "audit_us": AUDIT, "keyed": False, "provider_key": "e-k0", "key_first_begun_at": 0, "count": 0,
    "references": [], "undoes": None, "undo_kind": None, "undo_through": 0, "revoke_by": None, "revoked_through": 0,
    "revoked_at": None, "undone_by": None, "begun_at": 0, "updated_at": 0,
}  # fmt: skip


class Story:
    """One effect, and perhaps one that takes it back; `at` is the present, which every event moves on by one."""

    def __init__(self, tier: str = "T2", **declared: Any) -> None:
        tool = {"tier": tier, "timeout_us": TIMEOUT, "grace_us": None, "retention_us": None, "looks": False}
        tool |= {"revokes": False} | TIERS[tier] | declared
        undo = {"tier": "T3", "timeout_us": TIMEOUT, "grace_us": 0, "retention_us": 10**9}
        self.tools: dict[str, dict[str, Any]] = {"pay": tool, "pay.revoke": undo, "pay.compensation": undo}
        self.at = 100
        self.events: list[dict[str, Any]] = []
        self.rows: dict[str, dict[str, Any]] = {}
        self.entries: list[dict[str, Any]] = []
        self.incidents: list[dict[str, Any]] = []
        self.calls = 0

    # ------------------------------------------------------------ the ledger

    def commit(self, event: str, *, attempt: int = 0, effect: str = "e", host: str = "A", **columns: Any) -> Story:
        """A durable commit with its entry; names ending in `_said` go into the entry's detail."""
        said = {name.removesuffix("_said"): columns.pop(name) for name in list(columns) if name.endswith("_said")}
        call = columns.pop("call", None)
        row = self.rows.setdefault(effect, copy.deepcopy(BLANK) | {"id": effect, "key": effect.encode().hex()})
        self.at += 1
        row |= columns | {"version": row["version"] + 1, "updated_at": self.at}
        entry = {"key": row["key"], "seq": row["version"], "attempt": attempt, "event": event, "actor": host}
        entry |= {"fence": row["attempts"], "at": self.at, "detail": {"verdict": row["verdict"], **said}}
        self.entries.append(entry)
        extra = {} if call is None else {"call": call}
        self._put("committed", effect=effect, host=host, row=copy.deepcopy(row), entries=row["version"], **extra)
        return self

    def begin(self, *, effect: str = "e", host: str = "A", **columns: Any) -> Story:
        row = self.rows.get(effect, BLANK)
        tool = self.tools[columns.get("tool", row["tool"])]
        number, now = row["attempts"] + 1, self.at + 1
        open_before = row["open_attempts"] if row["verdict"] == "effect_unknown" else 0
        until = max(row["sends_until"], now + TIMEOUT)
        grace = tool["grace_us"]
        begun: dict[str, Any] = {
            "verdict": "effect_unknown", "proof": None, "attempts": number, "settled_attempt": None,
            "open_attempts": open_before | 1 << (number - 1), "lease_until": now + TIMEOUT + MARGIN,
            "sends_until": until, "absent_from": None if grace is None else until + grace + MARGIN, "grace_us": grace,
            "look_at": now + TIMEOUT + MARGIN, "review_at": 10**6, "keyed": tool["retention_us"] is not None,
            "begun_at": now,
        }  # fmt: skip
        if not row["attempts"]:
            begun |= {"key_first_begun_at": now, "provider_key": f"{effect}-k0"}
        return self.commit("begun", attempt=number, effect=effect, host=host, **begun | columns)

    def begun_in_one(self, **columns: Any) -> Story:
        """Begin and settle in one commit (T5); an effect is logged just before it, at the same instant."""
        if columns["verdict"] == "effect_applied":
            self.land()
            self.at -= 1
            columns |= {"references": ["r1"], "count": 1}
        self.begin(**columns)
        row = self.rows["e"]
        second = self.entries[-1] | {"event": "returned", "seq": 2}
        row["version"] = 2
        self.entries.append(second)
        self.events[-1] |= {"entries": 2, "row": copy.deepcopy(row)}
        return self

    def renew(self, **columns: Any) -> Story:
        """Begin under a new provider key."""
        return self.begin(provider_key=f"e-k{self.rows['e']['attempts']}", key_first_begun_at=self.at + 1, **columns)

    def closed(self, said: str, attempt: int, *, effect: str = "e", every: bool = False, **columns: Any) -> Story:
        """P1: an attempt closed by itself; `every`: taken to speak for all that are open."""
        row, proof = self.rows[effect], said
        left = 0 if every else row["open_attempts"] & ~(1 << (attempt - 1))
        none: dict[str, Any] = {
            "verdict": "no_effect",
            "proof": proof,
            "settled_attempt": attempt,
            "look_at": self._audit(effect),
        }
        columns = {"open_attempts": left, "code": None} | ({} if left else none) | columns
        return self.commit("closed", attempt=attempt, effect=effect, proof_said=proof, **columns)

    def lost(self, attempt: int = 1, *, effect: str = "e") -> Story:
        return self.commit("lost", attempt=attempt, effect=effect, lease_until=self.at)

    def returned(self, attempt: int = 1, *, effect: str = "e", reference: str | None = None, **columns: Any) -> Story:
        row = self.rows[effect]
        name = f"r{attempt}" if reference is None else reference
        if row["verdict"] == "no_effect" and not row["undo_kind"]:
            self.incident("late_effect")
        done: dict[str, Any] = {
            "verdict": "effect_applied",
            "proof": "returned",
            "settled_attempt": attempt,
            "open_attempts": 0,
        }
        done |= {"references": [*row["references"], name], "count": 1, "look_at": self._audit(effect)}
        done |= columns
        return self.commit("returned", attempt=attempt, effect=effect, reference_said=name, **done)

    def absent(self, *, asked: int | None = None, looked: bool = True, **columns: Any) -> Story:
        """A look that was asked now, answered absence, and was taken for a proof."""
        asked = self.at + 1 if asked is None else asked
        if looked:
            self.look("absent", asked=asked)
        none: dict[str, Any] = {
            "verdict": "no_effect",
            "proof": "absent_after_grace",
            "open_attempts": 0,
            "settled_attempt": 0,
        }
        none |= {"conditional_at": self.at + 1, "look_at": self.at + GRACE}
        return self.commit("absent", asked_at_said=asked, proof_said="absent_after_grace", **none | columns)

    def found(self, reference: str = "r1", *, looked: bool = True, shown: bool = True, **columns: Any) -> Story:
        row = self.rows["e"]
        if looked:
            self.look("found", shown=shown)
        if row["verdict"] == "no_effect":
            self.incident("late_effect")
        done: dict[str, Any] = {
            "verdict": "effect_applied",
            "proof": "found",
            "settled_attempt": 0,
            "open_attempts": 0,
            "count": 1,
        }
        done |= {"references": list(dict.fromkeys([*row["references"], reference])), "look_at": self._audit("e")}
        return self.commit("found", proof_said="found", **done | columns)

    def resolved(self, verdict: str = "no_effect", **columns: Any) -> Story:
        done: dict[str, Any] = {"verdict": verdict, "proof": "operator", "open_attempts": 0, "settled_attempt": 0}
        done |= {"conditional_at": self.at + 1, "look_at": self.at + GRACE}
        self.commit("resolved", host="operator", proof_said="operator", **done | columns)
        return self._put("resolved", effect="e", verdict=verdict, by="operator")

    def revoke(self, *, through: int | None = None, **columns: Any) -> Story:
        """Begin to revoke all attempts so far."""
        through = self.rows["e"]["attempts"] if through is None else through
        link = {"undoes": self.rows["e"]["key"], "undo_kind": "revoke", "undo_through": through, "tool": "pay.revoke"}
        self.begin(effect="u", **link)
        return self.commit("revoke_asked", revoke_by="u", **columns)

    def revoked(self, *, acted: bool = True, through: int | None = None) -> Story:
        """The revoke was acknowledged: what stood is taken away, and the effect is known to be none."""
        through = self.rows["u"]["undo_through"] if through is None else through
        if acted:
            self.land(1, effect="u", made="undo", reference="stone")
            self._put("undone", effect="e", reference=None)
        self.returned(effect="u", reference="stone")
        row = self.rows["e"]
        end: dict[str, Any] = {"revoke_by": None, "revoked_through": through, "revoked_at": self.at + 1}
        if row["verdict"] == "effect_applied":
            end |= {"undone_by": "u"}
        else:
            end |= {"verdict": "no_effect", "proof": "revoked", "open_attempts": 0, "settled_attempt": 0}
        return self.commit("revoked", proof_said="revoked", **end)

    def compensate(self, *, acted: bool = True) -> Story:
        link = {"undoes": self.rows["e"]["key"], "undo_kind": "compensation", "tool": "pay.compensation"}
        self.begin(effect="c", **link)
        if acted:
            self.land(1, effect="c", made="undo", reference="refund")
            self._put("undone", effect="e", reference=None)
        self.returned(effect="c", reference="refund")
        return self.commit("compensated", undone_by="c")

    def incident(self, kind: str, effect: str = "e") -> Story:
        row = self.rows[effect]
        self.incidents.append({"key": row["key"], "effect_id": effect, "kind": kind, "at": self.at, "detail": {}})
        return self

    def _audit(self, effect: str) -> int | None:
        conditional = self.rows[effect]["conditional_at"]
        return None if conditional is None else int(conditional) + AUDIT

    # ------------------------------------------------------------ the world

    def wait(self, at: int) -> Story:
        assert at >= self.at, "time does not go back"
        self.at = at
        return self

    def send(self, attempt: int = 1, *, host: str = "A", key: str | None = None, **more: Any) -> Story:
        name = self.rows["e"]["provider_key"] if key is None and "e" in self.rows else key
        return self._put("sent", effect="e", attempt=attempt, key=name, host=host, marked=False, **more)

    def land(self, attempt: int = 1, *, effect: str = "e", **more: Any) -> Story:
        key = self.rows.get(effect, BLANK)["provider_key"]
        content = {"key": key, "reference": f"r{attempt}", "count": 1, "complete": True, "made": "effect"} | more
        return self._put("landed", effect=effect, attempt=attempt, **content)

    def refuse(self, attempt: int = 1) -> Story:
        return self._put("refused", effect="e", attempt=attempt, key=self.rows["e"]["provider_key"])

    def look(self, answer: str, *, asked: int | None = None, shown: bool | None = None) -> Story:
        asked = self.at + 1 if asked is None else asked
        return self._put("looked", effect="e", asked_at=asked, answer=answer, shown=answer == "found" and shown)

    def broke(self, condition: str, effect: str | None = "e") -> Story:
        return self._put("broke", effect=effect, condition=condition)

    def world(self, kind: str, **more: Any) -> Story:
        return self._put(kind, **more)

    # ------------------------------------------------------------ the caller

    def call(self, host: str = "A") -> Story:
        self.calls += 1
        return self._put("call", call=self.calls, host=host, tool="pay", order="o")

    def told(self, verdict: str, code: str, proof: str | None = None, *, call: int | None = None, **more: Any) -> Story:
        words: dict[str, Any] = {"next_action": "Go on; do not call pay for this again.", "text": ""}
        words |= {"tool": "pay", "ok": verdict == "effect_applied" and code != "ended", "effect": "e"} | more
        number = self.calls if call is None else call
        return self._put("told", call=number, code=code, verdict=verdict, proof=proof, **words)

    def _put(self, kind: str, **content: Any) -> Story:
        if kind != "committed":
            self.at += 1
        self.events.append({"at": self.at, "kind": kind, **content})
        return self

    # ------------------------------------------------------------ the end

    def history(self, *, quiet: bool = False) -> dict[str, Any]:
        tables = {"effects": list(self.rows.values()), "entries": self.entries, "incidents": self.incidents}
        return copy.deepcopy(
            {
                "seed": 0,
                "margin_us": MARGIN,
                "tools": self.tools,
                "events": self.events,
                "tables": tables | {"references": [], "tools": []},
                "quiet": quiet,
            }
        )
