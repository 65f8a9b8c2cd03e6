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
    votes = sorted((len(names) for names in _votes(list(answers.items())).values()), reverse=True)
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
    winners = [status for status, names in votes.items() if len(names) >= needed]
    lines = [said(name, outcome) for name, outcome in ballots]
    if len(winners) == 1:
        lines += [f'{name}: not waited for' for name in unheard]
        return _verdict(winners[0], ballots, lines, votes[winners[0]])
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
    found = ', '.join(f'{len(names)} for {status.value}' for status, names in votes.items())
    raise Abstention(
        'no_majority',
        f'{needed} votes for one status alone are needed, found {found}; {"; ".join(lines)}',
        evaluator=evaluator,
    )


def _votes(ballots: Sequence[Ballot]) -> dict[Status, list[Verdict]]:
    votes: dict[Status, list[Verdict]] = {status: [] for status in Status}
    for _, outcome in ballots:
        if isinstance(outcome, Verdict):
            votes[outcome.status].append(outcome)
    return votes


def _verdict(
    status: Status, ballots: Sequence[Ballot], lines: Sequence[str], agreeing: Sequence[Verdict]
) -> Verdict:
    agreed = [
        (name, outcome)
        for name, outcome in ballots
        if isinstance(outcome, Verdict) and outcome.status is status
    ]
    scores = [verdict.score for verdict in agreeing if verdict.score is not None]
    more = [
        line
        for name, outcome in ballots
        if isinstance(outcome, Verdict)
        for line in details(name, outcome)
    ]
    failed = status is Status.FAILURE
    return Verdict(
        status,
        evidence=(*lines, *more),
        failure_reason='; '.join(f'{name}: {one.failure_reason}' for name, one in agreed)
        if failed
        else '',
        failure_kind=_kind(agreeing) if failed else '',
        score=min(1.0, fsum(scores) / len(scores)) if scores else None,
        report=next((one.report for one in agreeing if one.report is not None), None),
        route=', '.join(route(name, one) for name, one in agreed),
        cost=cost(outcome for _, outcome in ballots),
    )


def _kind(agreeing: Sequence[Verdict]) -> str:
    """The kind of failure that all name who name one."""
    kinds = {verdict.failure_kind for verdict in agreeing} - {POST_CONDITION}
    return kinds.pop() if len(kinds) == 1 else POST_CONDITION
