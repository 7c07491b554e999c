"""Nothing leaves without a durable begin, nor after the attempt was proven, nor later than the row says."""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checker.reading import UNKNOWN, Effect, Event, World, places


def sent(world: World, effect: Effect) -> Iterator[str]:
    """Each request belongs to a begin that was durable before, and to that begin's host, call and key."""
    if effect.tool.tier == "T5":
        return  # it sends nothing: what it writes is in the ledger's transaction
    first: dict[int, Event] = {}
    for event in effect.of("sent"):
        attempt = int(event.data["attempt"])
        where = f"send: effect {effect.id}: attempt {attempt} (event {event.number})"
        begun = effect.begin_of(attempt)
        if begun is None or begun.number > event.number:
            yield f"{where} was sent without a durable begin"
            continue
        key, wanted = event.get("key"), begun.row.get("provider_key")
        if effect.tool.keyed and key and key != wanted:
            yield f"{where} was sent under {key!r}, and was begun under {wanted!r}"
        for name, mine in (("host", begun.host), ("call", begun.call)):
            theirs = event.get(name)
            if None not in (mine, theirs) and mine != theirs:
                yield f"{where} was begun by {name} {mine} and sent by {theirs}"
        before = first.setdefault(attempt, event)
        if before.get("call") != event.get("call"):
            yield f"{where} was sent by two calls (events {before.number} and {event.number})"
        closing = effect.closing_of(attempt, event.number)
        if closing is not None and closing.proof in ("never_sent", "rejected"):
            yield f"{where} was sent after it had been closed as {closing.proof} (event {closing.commit.number})"
        yield from _late(world, effect, event, begun.number, where)
    for landing in effect.landings:
        begun = effect.begin_of(landing.attempt)
        if landing.attempt and (begun is None or begun.number > landing.number):
            where = f"send: effect {effect.id}: attempt {landing.attempt} (event {landing.number})"
            yield f"{where} landed without a durable begin"


def _late(world: World, effect: Effect, event: Event, begun: int, where: str) -> Iterator[str]:
    """What leaves later than `sends_until` leaves on a host that stood still, or that could not write down that its
    function goes on; and no later than grace covers."""
    present = effect.current(event.number)
    if present is None or effect.broke("pause", "clock"):
        return
    attempt = int(event.data["attempt"])
    closing = effect.closing_of(attempt, event.number)
    judged = closing is not None and closing.proof in ("absent_after_grace", "operator")
    if not judged and not (present.verdict == UNKNOWN and attempt in places(present.row)):
        return
    until, margin = int(present.row["sends_until"]), world.margin_us
    excused = any(begun < one.number < event.number for one in world.events if one.kind in ("paused", "holds"))
    if event.at > until + margin and not excused:
        yield f"{where} left at {event.at}, after sends_until {until}, and no host had stood still"
    if effect.tool.grace_us is not None and event.at > until + effect.tool.grace_us + 2 * margin:
        yield f"{where} left at {event.at}, later than grace covers"
