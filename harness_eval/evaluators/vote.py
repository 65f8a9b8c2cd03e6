"""The ``vote`` evaluator: its members judge at the same time, and enough of them must agree."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from math import fsum

from harness_eval.config.evaluators import VoteSettings
from harness_eval.contract import (
    Abstention,
    EvaluationRequest,
    EvaluatorError,
    Status,
    Verdict,
)
from harness_eval.evaluators.context import EvaluatorContext
from harness_eval.evaluators.members import ask, cost, details, Outcome, patience, route, said
from harness_eval.judging import POST_CONDITION

Ballot = tuple[str, Outcome]
"""Name of a member, and what it said."""

Vote = tuple[str, Verdict]
"""The same of one that gave a verdict."""


class VoteEvaluator:
    """Asks all members at once and gives the status on which enough of them agree.

    Args:
        name: Name of the evaluator in the configuration.
        settings: Its members and how many of them are needed.
        context: Where the members are.

    Attributes:
        ref: ``vote:name``.

    Raises:
        EvaluatorError: A member cannot be made.
    """

    score_is_share = True  # it is made of those of the members

    def __init__(self, name: str, settings: VoteSettings, context: EvaluatorContext) -> None:
        self.ref = f'vote:{name}'
        self._needed = settings.needed
        self._patience = patience(settings.timeout)
        self._members = {member: context.calls(member) for member in settings.members}

    async def evaluate(self, request: EvaluationRequest) -> Verdict:
        """Ask the members until nothing that is still to come could change the result.

        Raises:
            Abstention: ``no_majority``.
            EvaluatorError: ``too_few_votes``, naming who failed and why.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience
        names = {
            asyncio.ensure_future(ask(calls, request)): name
            for name, calls in self._members.items()
        }
        answers: dict[str, Outcome] = {}
        waiting = set(names)
        try:
            while waiting and not decided(answers, len(waiting), self._needed):
                done, waiting = await asyncio.wait(
                    waiting,
                    timeout=max(0.0, deadline - loop.time()),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not done:
                    break
                answers.update({names[task]: task.result() for task in done})
        finally:
            for task in waiting:
                task.cancel()
        enough = decided(answers, len(waiting), self._needed)
        ballots = [(name, answers[name]) for name in self._members if name in answers]
        missing = [name for name in self._members if name not in answers]
        if enough:
            return counted(ballots, self._needed, self.ref, unheard=missing)
        late = EvaluatorError(
            'judge_timeout', f'no answer within {self._patience:.3g} s', retryable=True
        )
        ballots += [(name, late) for name in missing]
        return counted(ballots, self._needed, self.ref)


def decided(answers: Mapping[str, Outcome], to_come: int, needed: int) -> bool:
    """Tell whether exactly one status has enough votes, and no other one can still get them."""
    votes = sorted(
        (len(agreed) for agreed in _votes(list(answers.items())).values()), reverse=True
    )
    return votes[0] >= needed > votes[1] + to_come


def counted(
    ballots: Sequence[Ballot], needed: int, evaluator: str, unheard: Sequence[str] = ()
) -> Verdict:
    """Count the votes. Pure; the order of the ballots decides nothing but that of the evidence.

    Args:
        ballots: What each member said.
        needed: Votes for one status that make it the verdict.
        evaluator: Reference of the vote, for errors.
        unheard: Members whose answer could not change the result, and was not waited for.

    Raises:
        Abstention: ``no_majority``: no status has enough votes, or more than one has.
        EvaluatorError: ``too_few_votes``: with so few answers none could have had them.
    """
    votes = _votes(ballots)
    winners = [status for status, agreed in votes.items() if len(agreed) >= needed]
    lines = [said(name, outcome) for name, outcome in ballots]
    if len(winners) == 1:
        lines += [f'{name}: not waited for' for name in unheard]
        return _verdict(winners[0], votes[winners[0]], ballots, lines)
    failed = [
        (name, outcome)
        for name, outcome in ballots
        if not isinstance(outcome, (Verdict, Abstention))
    ]
    answered = len(ballots) - len(failed)
    if answered < needed:
        raise EvaluatorError(
            'too_few_votes',
            f'{needed} votes for the same status are needed, and {answered} of {len(ballots)} '
            f'members answered; {"; ".join(said(*ballot) for ballot in failed)}',
            evaluator=evaluator,
            retryable=any(getattr(outcome, 'retryable', False) for _, outcome in failed),
        )
    found = ', '.join(f'{len(agreed)} for {status.value}' for status, agreed in votes.items())
    raise Abstention(
        'no_majority',
        f'{needed} votes for one status alone are needed, found {found}; {"; ".join(lines)}',
        evaluator=evaluator,
    )


def _votes(ballots: Sequence[Ballot]) -> dict[Status, list[Vote]]:
    votes: dict[Status, list[Vote]] = {status: [] for status in Status}
    for name, outcome in ballots:
        if isinstance(outcome, Verdict):
            votes[outcome.status].append((name, outcome))
    return votes


def _verdict(
    status: Status, agreed: Sequence[Vote], ballots: Sequence[Ballot], lines: Sequence[str]
) -> Verdict:
    scores = [verdict.score for _, verdict in agreed if verdict.score is not None]
    more = [
        line
        for name, outcome in ballots
        if isinstance(outcome, Verdict)
        for line in details(name, outcome)
    ]
    reasons = kind = ''
    if status is Status.FAILURE:
        reasons = '; '.join(f'{name}: {verdict.failure_reason}' for name, verdict in agreed)
        kind = _kind(agreed)
    return Verdict(
        status,
        evidence=(*lines, *more),
        failure_reason=reasons,
        failure_kind=kind,
        score=min(1.0, fsum(scores) / len(scores)) if scores else None,
        report=next((one.report for _, one in agreed if one.report is not None), None),
        route=', '.join(route(name, verdict) for name, verdict in agreed),
        cost=cost(outcome for _, outcome in ballots),
    )


def _kind(agreed: Sequence[Vote]) -> str:
    """The kind of failure that all name who name one."""
    kinds = {verdict.failure_kind for _, verdict in agreed} - {POST_CONDITION}
    return kinds.pop() if len(kinds) == 1 else POST_CONDITION
