"""Ground truth about a run, from a simulator, a benchmark or a database: beside the judge.

An oracle is told which run it is about, and therefore never feeds a judge: what it is asked and
what it answers have types of their own, which fit nowhere in a request to an evaluator. Its answer
is recorded with the case as ``outcome_correct``; where the configuration says that it decides, an
answer is also the verdict, and the judge's is kept beside it.

Threading model. :meth:`OracleCalls.ask` may be called from any thread and never waits: each
question has a daemon thread of its own, on which the answer is handed on. Whoever asks keeps the
deadline; a thread that hangs on is not heard any more, and while too many do, nothing is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
import inspect
import json
import logging
import threading
import time
from typing import Any, cast, Protocol, TYPE_CHECKING

import numpy as np

from harness_eval.contract import EvaluationError, EvaluatorError, Status, Verdict
from harness_eval.evaluators.faults import as_evaluation_error
from harness_eval.lines import clean_evidence, clean_line, MAX_EVIDENCE_LINES
from harness_eval.threads import Threads

if TYPE_CHECKING:
    from harness_eval.config.tool_judging import OracleSettings

MAX_HANGING = 4
"""Questions still unanswered past their deadline at which an oracle is not asked any more."""

_SHOWN_OF_EVIDENCE = MAX_EVIDENCE_LINES - 4
"""Lines of the judge's evidence that are kept beside an oracle's verdict."""

log = logging.getLogger('harness_eval.oracle')


@dataclass(frozen=True)
class OracleRequest:
    """What an oracle is asked: did this run really achieve what it was asked to do?

    Attributes:
        run_id: Names the execution.
        tool: Name of the tool.
        segment: Number of the segment, from 0.
        arguments: What the tool was asked to do.
    """

    run_id: str
    tool: str
    segment: int = 0
    arguments: Mapping[str, str] = field(default_factory=dict)


OracleResult = bool | None
"""``True``: the outcome is as it should be; ``False``: it is not; ``None``: not known here."""


class Oracle(Protocol):
    """Whatever knows the truth.

    Attributes:
        ref: How records and errors name it; no credentials, no query.
    """

    ref: str

    def answer(self, request: OracleRequest) -> OracleResult | Awaitable[OracleResult]:
        """Say whether the outcome is correct. It may block; it runs on a thread of its own."""
        ...


@dataclass(frozen=True)
class OracleAnswer:
    """What asking an oracle came to.

    Attributes:
        ref: The oracle.
        outcome_correct: Its answer; None: it has none, or could not be asked.
        error: Kind and message of what kept it from answering; empty if nothing did.
    """

    ref: str
    outcome_correct: bool | None = None
    error: str = ''

    def to_plain(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_plain(cls, data: Any) -> OracleAnswer | None:
        """Read plain data; None for what does not hold an answer."""
        if not isinstance(data, Mapping):
            return None
        correct = data.get('outcome_correct')
        return cls(
            ref=str(data.get('ref', '')),
            outcome_correct=correct if isinstance(correct, bool) else None,
            error=str(data.get('error', '')),
        )

    def __str__(self) -> str:
        if self.error:
            return f'no answer: {self.error}'
        if self.outcome_correct is None:
            return 'does not know'
        return 'correct' if self.outcome_correct else 'not correct'


class PluginOracle:
    """A callable of the user's: ``answer(request: OracleRequest) -> bool | None``, sync or async.

    Args:
        target: ``module:callable``; see :class:`~harness_eval.evaluators.plugin.PluginEvaluator`.

    Raises:
        EvaluatorError: ``plugin_ref``.
    """

    def __init__(self, target: str) -> None:
        from harness_eval.evaluators.plugin import PluginEvaluator

        self._plugin = PluginEvaluator(target, {})
        self.ref = f'oracle:{self._plugin.ref}'

    def answer(self, request: OracleRequest) -> OracleResult | Awaitable[OracleResult]:
        """Call it."""
        # The loading of a plugin does not look at what it is called with.
        answer: Any = self._plugin.evaluate(cast(Any, request))
        return cast('OracleResult | Awaitable[OracleResult]', answer)


class EndpointOracle:
    """An HTTP service: POST of the request, answered by ``{"outcome_correct": true}``.

    Args:
        url: Its address.
        token_env: Name of the environment variable with the bearer token; empty: none.
        timeout: Seconds for the whole exchange.

    Raises:
        EvaluatorError: ``endpoint_url``.
    """

    def __init__(self, url: str, token_env: str, timeout: float) -> None:
        from harness_eval.evaluators.http_post import PostTarget, reference_of

        self.ref = f'oracle:{reference_of(url, "oracle")}'
        self._target = PostTarget(url, token_env, '', timeout, self.ref)

    def answer(self, request: OracleRequest) -> Awaitable[OracleResult]:
        """Post it."""
        return self._post(request)

    async def _post(self, request: OracleRequest) -> OracleResult:
        from harness_eval.evaluators.http_post import post_json

        body = {
            'run_id': request.run_id,
            'tool': request.tool,
            'segment': request.segment,
            'arguments': dict(request.arguments),
        }
        answer = await post_json(self._target, json.dumps(body).encode())
        if not isinstance(answer, dict) or not {'outcome_correct'} <= set(answer) <= _KEYS:
            raise EvaluatorError(
                'malformed_answer',
                'expected {"outcome_correct": true}, false or null, found other keys',
            )
        return cast(OracleResult, answer['outcome_correct'])


_KEYS = {'outcome_correct', 'info'}


def build_oracle(settings: OracleSettings) -> Oracle:
    """Make the oracle of a tool; nothing of the user's is imported here.

    Raises:
        EvaluatorError: ``plugin_ref`` or ``endpoint_url``.
    """
    if settings.kind == 'plugin':
        return PluginOracle(settings.ref)
    return EndpointOracle(settings.ref, settings.token_env or '', settings.timeout)


def decided_by(
    answer: OracleAnswer, judged: Verdict | EvaluationError
) -> Verdict | EvaluationError:
    """What a segment comes to where the oracle decides: its answer, if there is one.

    Args:
        answer: The oracle's.
        judged: The judge's verdict, error or abstention; it is kept in the evidence.
    """
    if answer.outcome_correct is None:
        if isinstance(judged, Verdict):
            line = f'{answer.ref} would decide, but {_lead(answer)}'
            return replace(judged, evidence=clean_evidence((line, *judged.evidence)))
        return judged
    said = f'{answer.ref} says that the outcome is {answer}'
    beside = (said, *_beside(judged))
    # A report that came with a failure need not be one that a success may have.
    agreed = isinstance(judged, Verdict) and judged.status is Status.SUCCESS
    report = judged.report if agreed and isinstance(judged, Verdict) else None
    cost = judged.cost if isinstance(judged, Verdict) else None
    return Verdict(
        status=Status.SUCCESS if answer.outcome_correct else Status.FAILURE,
        evidence=clean_evidence(beside),
        failure_reason='' if answer.outcome_correct else said,
        report=report,
        route=answer.ref,
        cost=cost,
    )


def _lead(answer: OracleAnswer) -> str:
    return f'gave no answer: {answer.error}' if answer.error else 'does not know'


def _beside(judged: Verdict | EvaluationError) -> tuple[str, ...]:
    if not isinstance(judged, Verdict):
        return (clean_line(f'the judge came to no verdict: {judged}'),)
    score = '' if judged.score is None else f', score {judged.score:.4g}'
    reason = f': {judged.failure_reason}' if judged.failure_reason else ''
    first = clean_line(f'the judge says {judged.status.value}{score}{reason}')
    return (first, *(f'judge: {line}' for line in judged.evidence[:_SHOWN_OF_EVIDENCE]))


class OracleCalls:
    """Asks one oracle.

    Args:
        oracle: What knows the truth.
        timeout: Seconds after which nobody waits for an answer.
        decides: Whether an answer is the verdict.
        clock: Seconds of a steady clock.
    """

    def __init__(
        self,
        oracle: Oracle,
        timeout: float,
        *,
        decides: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._oracle = oracle
        self._clock = clock
        self._threads = Threads('oracle')
        self._lock = threading.Lock()
        self._number = 0
        self._started: dict[int, float] = {}
        self.ref = oracle.ref
        self.timeout = timeout
        self.decides = decides

    def ask(self, request: OracleRequest, on_answer: Callable[[OracleAnswer], None]) -> None:
        """Ask, and return at once.

        Args:
            request: What is asked.
            on_answer: Gets what it came to, once, on another thread or (if nothing can be asked)
                on this one; not if the oracle hangs for good.
        """
        with self._lock:
            now = self._clock()
            hanging = sum(now - since > self.timeout for since in self._started.values())
            if hanging >= MAX_HANGING:
                refusal = f'oracle_hangs: {hanging} earlier questions are not answered yet'
            else:
                refusal = ''
                self._number += 1
                number = self._number
                self._started[number] = now
        if refusal:
            on_answer(OracleAnswer(self.ref, error=refusal))
            return

        def work() -> None:
            try:
                answer = ask_here(self._oracle, request, self.timeout)
            finally:
                with self._lock:
                    del self._started[number]
            on_answer(answer)

        try:
            self._threads.run(work)
        except (RuntimeError, MemoryError):
            with self._lock:
                del self._started[number]
            on_answer(OracleAnswer(self.ref, error='no_thread: the system gave no thread'))


def ask_here(oracle: Oracle, request: OracleRequest, timeout: float) -> OracleAnswer:
    """Ask on this thread; whatever the oracle raises is in the answer.

    Args:
        oracle: What knows the truth.
        request: What is asked.
        timeout: Seconds after which an asynchronous oracle is cancelled.
    """
    try:
        result: Any = oracle.answer(request)
        if inspect.isawaitable(result):
            result = asyncio.run(_within(result, timeout))
        return OracleAnswer(oracle.ref, _checked(result))
    except BaseException as error:  # SystemExit of foreign code too: nothing else may end by it
        fault = as_evaluation_error(error, oracle.ref)
        return OracleAnswer(oracle.ref, error=f'{fault.kind}: {fault.message}')


async def _within(awaitable: Awaitable[Any], timeout: float) -> Any:
    try:
        return await asyncio.wait_for(awaitable, timeout)
    except (asyncio.TimeoutError, TimeoutError):
        raise EvaluatorError('oracle_timeout', f'no answer within {timeout:g} s') from None


def _checked(result: Any) -> bool | None:
    if result is None:
        return None
    if isinstance(result, (bool, np.bool_)):
        return bool(result)
    raise EvaluatorError(
        'malformed_answer',
        f'an oracle answers True, False or None, not a value of type {type(result).__name__}',
    )
