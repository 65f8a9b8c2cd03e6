"""The ``cascade`` evaluator: cheap first, the next one only when the one before has no answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from harness_eval.config.evaluators import CascadeSettings
from harness_eval.contract import (
    Abstention,
    EvaluationError,
    EvaluationRequest,
    EvaluatorError,
    Verdict,
)
from harness_eval.evaluators.context import EvaluatorContext
from harness_eval.evaluators.members import ask, cost, details, Outcome, patience, route, said

Answered = tuple[str, Outcome]
"""Name of a member, and what it said."""


class CascadeEvaluator:
    """Asks one member after the other until one has an answer.

    A member abstains with ``None``, with a score between the thresholds, or with one in its
    ``unsure`` band. An error of a member ends the cascade, unless ``on_error`` is ``next``.

    Args:
        name: Name of the evaluator in the configuration.
        settings: Its members, in order, and what follows an error.
        context: Where the members are.

    Attributes:
        ref: ``cascade:name``.

    Raises:
        EvaluatorError: A member cannot be made.
    """

    score_is_share = True  # it may be that of a member with checks

    def __init__(self, name: str, settings: CascadeSettings, context: EvaluatorContext) -> None:
        self.ref = f'cascade:{name}'
        self._goes_on = settings.on_error == 'next'
        self._patience = patience(settings.timeout)
        self._members = {member: context.calls(member) for member in settings.members}

    async def evaluate(self, request: EvaluationRequest) -> Verdict:
        """Ask the members in order.

        Raises:
            Abstention: The last member's, with what the others said.
            EvaluatorError: That of a member, with what the others said; ``judge_timeout`` if the
                members took too long together.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience
        chain: list[Answered] = []
        for name, calls in self._members.items():
            try:
                outcome = await asyncio.wait_for(
                    ask(calls, request), max(0.0, deadline - loop.time())
                )
            except asyncio.TimeoutError:
                raise self._too_slow(name, chain) from None
            chain.append((name, outcome))
            if not self._asks_next(outcome):
                break
        return concluded(chain, self.ref)

    def _asks_next(self, outcome: Outcome) -> bool:
        if isinstance(outcome, Verdict):
            return False
        return isinstance(outcome, Abstention) or self._goes_on

    def _too_slow(self, name: str, chain: Sequence[Answered]) -> EvaluatorError:
        before = ''.join(f'; {said(*link)}' for link in chain)
        return EvaluatorError(
            'judge_timeout',
            f'{name} had not answered when the {self._patience:.3g} s of all members were over'
            f'{before}',
            evaluator=self.ref,
            retryable=True,
        )


def concluded(chain: Sequence[Answered], evaluator: str) -> Verdict:
    """Say what the last member's answer means, with the whole chain as evidence. Pure.

    Args:
        chain: What the members said that were asked, in order; at least one.
        evaluator: Reference of the cascade, for errors.

    Raises:
        Abstention: The last one abstained.
        EvaluatorError: The last one failed.
    """
    name, last = chain[-1]
    lines = [said(*link) for link in chain]
    if isinstance(last, Verdict):
        failed = [other for other, outcome in chain if _failed(outcome)]
        warning = [
            f'warning: {name} stood in for {", ".join(failed)}, which failed (on_error: next)'
        ]
        return replace(
            last,
            evidence=(*(warning if failed else ()), *lines, *details(name, last)),
            route=route(name, last),
            cost=cost(outcome for _, outcome in chain),
        )
    message = '; '.join(lines)
    if isinstance(last, Abstention):
        raise Abstention(last.kind, message, evaluator=evaluator)
    raise EvaluatorError(last.kind, message, evaluator=evaluator, retryable=last.retryable)


def _failed(outcome: Outcome) -> bool:
    return isinstance(outcome, EvaluationError) and not isinstance(outcome, Abstention)
