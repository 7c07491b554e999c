"""One look: the handle for a postcondition, how it is asked, and what its answer becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from counterfoil.arguments import Invalid
from counterfoil.attempt import Effect, Gate, running
from counterfoil.changes import SettleLook
from counterfoil.effect import (
    Absent,
    Evidence,
    Found,
    Row,
    Unclear,
)
from counterfoil.observe import stored_value
from counterfoil.runner.door import clean_look, let_value
from counterfoil.runner.job import REASON_MAX, Job, Site, as_evidence, bare, of_failed_look
from counterfoil.runner.worker import Deadline, completed
from counterfoil.steps import (
    Asked,
)


class Looking:
    """What both shells do around a look. A look never sends, and one that fails is unclear."""

    def __init__(self, site: Site, job: Job) -> None:
        self.site = site
        self.job = job

    def looking(self, row: Row, deadline: Deadline) -> Effect | Unclear:
        """The handle for a postcondition, made from what the ledger keeps."""
        revived = self.job.tool.arguments.revive(row.arguments)
        if isinstance(revived, Invalid):
            return Unclear("the stored arguments no longer fit the tool")
        return Effect(
            id=row.id,
            provider_key=row.provider_key,
            provider_keys=row.provider_keys,
            arguments=revived,
            context=self.job.context,
            gate=Gate(deadline.remaining_s),
            original=self.original(row),
        )

    def look_in_thread(self, effect: Effect, answer: Callable[[Evidence], None]) -> None:
        """Ask the postcondition in a worker's thread. A look that fails is unclear, never absent."""
        function = self.job.tool.postcondition_function
        assert function is not None
        try:
            with running(effect):
                evidence = completed(function(effect))
        except BaseException as problem:  # noqa: BLE001 - a look that fails is unclear
            evidence = of_failed_look(problem)
        answer(as_evidence(evidence))

    def asked(self, row: Row, evidence: Evidence, boot: tuple[str | None, int | None], took_s: float) -> Asked:
        """A look ready to be written; it counts from before the question was asked (protocol F4)."""
        look = SettleLook(
            key=row.key, actor=self.job.actor, asked_at=row.now, asked_boot_id=boot[0], asked_boot_us=boot[1]
        )
        match evidence:
            case Found() as found:
                kept = let_value(found.value, self.job, self.site.messages)
                look = replace(look, found=bare(found), value=kept)
            case Unclear() as said:
                clean = clean_look(said, self.job, self.site.messages)
                look = replace(look, unclear=clean.reason[:REASON_MAX] or "unclear", cause=clean.cause)
            case Absent():
                pass
            case _:
                assert_never(evidence)
        return Asked(look, took_s)

    def original(self, row: Row) -> Effect | None:
        """The effect that this one takes back, as the ledger keeps it."""
        there = None if row.undoes is None else self.site.ledger.read(row.undoes)
        of = self.job.tool.undoes
        if there is None or of is None:
            return None
        revived = of.arguments.revive(there.arguments)
        return Effect(
            id=there.id,
            provider_key=there.provider_key,
            provider_keys=there.provider_keys,
            arguments={} if isinstance(revived, Invalid) else revived,
            value=stored_value(there),
            references=there.references,
        )
