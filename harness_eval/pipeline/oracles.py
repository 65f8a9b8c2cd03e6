"""Oracles beside the judges: asked when the frames are found, recorded with the case.

Everything here runs on the pipeline's thread but what is spawned; see the package for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
import logging

from harness_eval.cases import CaseStore
from harness_eval.contract import EvaluationError
from harness_eval.oracle import OracleAnswer, OracleCalls, OracleRequest
from harness_eval.pipeline.effects import Guarded
from harness_eval.runs import Completion

log = logging.getLogger('harness_eval.pipeline')


@dataclass(eq=False)
class Question:
    """A question to an oracle.

    Attributes:
        decides: Whether its answer is the verdict.
        until: Steady seconds at which nobody waits for it any more.
        answer: What it came to; None: not known yet.
        case: Name of the case that it is recorded with; empty: not stored yet.
        following: What waits for the answer.
    """

    ref: str
    decides: bool
    until: float
    answer: OracleAnswer | None = None
    case: str = ''
    following: Callable[[OracleAnswer], None] | None = None


class Oracles:
    """All questions to oracles that have no answer yet.

    Args:
        oracles: The oracle of each tool that has one.
        cases: Where answers are recorded.
        effects: The world around.
        count: Counts something for diagnostics.
    """

    def __init__(
        self,
        oracles: Mapping[str, OracleCalls],
        cases: CaseStore,
        effects: Guarded,
        count: Callable[[str], None],
    ) -> None:
        self._oracles = oracles
        self._cases = cases
        self._effects = effects
        self._count = count
        self._open: list[Question] = []

    def ask(self, completion: Completion) -> Question | None:
        """Ask the oracle of a tool about a run that has just ended; None if it has no oracle.

        Whatever goes wrong in asking is an answer too: it changes nothing for the run.
        """
        oracle = self._oracles.get(completion.tool)
        if oracle is None:
            return None
        now = self._effects.steady_now()
        question = Question(oracle.ref, oracle.decides, now + oracle.timeout)
        self._open.append(question)
        request = OracleRequest(
            completion.run_id, completion.tool, completion.segment, dict(completion.arguments)
        )

        def on_answer(answer: OracleAnswer) -> None:
            self._effects.post(lambda: self._answered(question, answer))

        try:
            oracle.ask(request, on_answer)
        except Exception as error:
            log.exception('%s cannot be asked; the run goes on', oracle.ref)
            fault = OracleAnswer(oracle.ref, error=f'internal_error: {type(error).__name__}')
            on_answer(fault)
        return question

    def recall(self, tool: str, answer: OracleAnswer | None) -> Question | None:
        """The recorded answer about a run that is judged again from stored evidence.

        The oracle is not asked again: what a simulator says now is about another world than that
        of the evidence.
        """
        oracle = self._oracles.get(tool)
        if oracle is None or answer is None or answer.ref != oracle.ref:
            return None
        return Question(oracle.ref, oracle.decides, 0.0, answer)

    def stored(self, question: Question | None, case: str) -> None:
        """The evidence is stored: record the answer with it, now or when it is there."""
        if question is not None:
            question.case = case
            self._record(question)

    def when_answered(self, question: Question, following: Callable[[OracleAnswer], None]) -> None:
        """Call ``following`` with the answer, now or when it is there, at the latest in time."""
        if question.answer is None:
            question.following = following
        else:
            following(question.answer)

    def tick(self, now: float) -> None:
        """Time has passed: give up what is past its deadline (steady seconds)."""
        for question in [q for q in self._open if now > q.until]:
            self._settle(
                question,
                OracleAnswer(question.ref, error='oracle_timeout: no answer in time'),
            )

    def wakeup(self) -> float | None:
        """Steady seconds at which :meth:`tick` has something to do; None: nothing is due."""
        return min((question.until for question in self._open), default=None)

    def _answered(self, question: Question, answer: OracleAnswer) -> None:
        if question.answer is not None:
            log.warning('%s: a late answer was dropped', question.ref)
            return
        self._settle(question, answer)

    def _settle(self, question: Question, answer: OracleAnswer) -> None:
        self._open.remove(question)
        question.answer = answer
        if answer.error:
            self._count('oracle faults')
            log.warning('%s: %s', question.ref, answer.error)
        else:
            self._count('oracle answers')
        self._record(question)
        following, question.following = question.following, None
        if following is not None:
            following(answer)

    def _record(self, question: Question) -> None:
        case, answer = question.case, question.answer
        if case and answer is not None:
            self._effects.spawn_spare(lambda: self._note(case, answer))

    def _note(self, case: str, answer: OracleAnswer) -> None:
        """On a spawned thread."""
        try:
            self._cases.note_oracle(case, answer)
        except EvaluationError as error:
            log.warning('%s', error)
