"""The blocking shell: carries out the steps in the caller's thread; tools and looks run in daemon threads."""

from __future__ import annotations

from typing import Any, TypeVar

from counterfoil.effect import MICROSECONDS, Evidence, NeverSent, Row, Unclear
from counterfoil.errors import LedgerUnavailable
from counterfoil.runner.shell import Shell
from counterfoil.runner.transactional import transact
from counterfoil.runner.worker import Deadline
from counterfoil.steps import (
    Ask,
    Asked,
    Attempt,
    AttemptEnd,
    Flow,
    Read,
    Sight,
    Sleep,
    Start,
    Step,
    Tally,
    Transact,
    Weigh,
    Write,
)

T = TypeVar("T")


class BlockingShell(Shell):
    """Carries out the steps in the caller's thread; tools and looks run in daemon threads."""

    def run(self, flow: Flow[T]) -> T:
        """Drive a flow to its end."""
        answer: Any = None
        trouble: BaseException | None = None
        while True:
            try:
                step = flow.throw(trouble) if trouble is not None else flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            self.observe("before", step)
            answer, trouble = None, None
            try:
                answer = self.do(step)
            except LedgerUnavailable as problem:
                trouble = problem
            self.observe("after", step)

    def do(self, step: Step[Any]) -> Any:
        """Carry out one step."""
        match step:
            case Read(key):
                return self.site.ledger.read(key)
            case Start(fresh):
                return self.start(fresh)
            case Attempt():
                return self.attempt(step)
            case Write(change):
                answer, interrupt = self.whole(change)
                if interrupt is not None:
                    raise interrupt
                return answer
            case Transact():
                return transact(self, step)
            case Ask(row):
                return self.ask(row)
            case Sleep():
                self.site.clock.sleep(self.pause_s(step))
            case Sight():
                self.sight(step)
            case Weigh():
                self.weigh(step)
            case Tally():
                return self.tally(step)
            case _:
                raise AssertionError(f"no such step: {step!r}")
        return None

    def attempt(self, step: Attempt) -> AttemptEnd:
        """Run the function in a worker and wait for it until the deadline."""
        try:
            one, effect = self.begun(step)
        except RuntimeError:  # nobody could watch it, so the function is not called
            self.site.attempts.release()
            return AttemptEnd(NeverSent("no thread could be started"))
        try:
            self.site.attempts.run(lambda: self.in_thread(step, one, effect))
            self.site.clock.wait(one.done, step.deadline.remaining_s())
        except RuntimeError:  # no thread could be started, so the function was not called
            one.finish(AttemptEnd(NeverSent("no thread could be started")))
        except BaseException as interrupt:  # noqa: BLE001 - raised again by the flow once it is recorded
            return self.given_up(step, one, interrupt)
        return self.given_up(step, one, None)

    def ask(self, row: Row) -> Asked:
        """Ask the postcondition in a worker and wait for at most `look_timeout_s`."""
        clock, seconds = self.site.clock, self.job.tool.policy.look_timeout_s
        boot, begun_us = self.site.ledger.boot(), clock.boot_us()
        deadline = Deadline(clock, seconds)
        effect = self.looking(row, deadline)
        if isinstance(effect, Unclear):
            return self.asked(row, effect, boot, 0.0)
        if not self.site.looks.reserve():
            return self.asked(row, Unclear("too many looks are under way"), boot, 0.0)
        heard: list[Evidence] = []
        done = self.site.ledger.host.event()

        def answer(evidence: Evidence) -> None:
            heard.append(evidence)
            done.set()

        try:
            self.site.looks.run(lambda: self.look_in_thread(effect, answer))
        except RuntimeError:
            return self.asked(row, Unclear("no thread could be started for the look"), boot, 0.0)
        clock.wait(done, deadline.remaining_s())
        evidence = heard[0] if heard else Unclear(f"the postcondition did not answer within {seconds:g} s")
        return self.asked(row, evidence, boot, (clock.boot_us() - begun_us) / MICROSECONDS)
