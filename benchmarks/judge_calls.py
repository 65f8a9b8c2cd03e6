"""What lies between a question and its answer besides the judge, in one process.

From the call to the receipt of the verdict on another thread: the turn, the thread, the deadline,
the validation of the answer. The judge answers at once. With the cache, no judge is asked: the
verdict is read from a file that holds many others, validated and marked; the digest of the
question is known. The compared side is a thread of :class:`ThreadPoolExecutor` that answers.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
import hashlib
from pathlib import Path
from queue import SimpleQueue
import tempfile
import time

from benchmarks.effort import Effort
from benchmarks.rows import Row, row, Target
from harness_eval.calls import JudgeCalls, Outcome
from harness_eval.config.evaluators import PluginSettings
from harness_eval.contract import (
    EvaluationRequest,
    Observation,
    PostCondition,
    Status,
    Verdict,
)
from harness_eval.evaluators.plugin import PluginEvaluator
from harness_eval.judge_cache import JudgeCache
from harness_eval.judging import Thresholds
from harness_eval.kept_answers import identity

REQUEST = EvaluationRequest(PostCondition('The object is held.'), Observation({}, {}, 0, 0.0))
REF = 'benchmarks.nodes.judge:judge'
WARM_UP = 20
EVIDENCE = tuple(f'What was seen of part {n}, in a line of usual length.' for n in range(10))


def measure(effort: Effort) -> list[Row]:
    """Measure all sides in turns."""
    asked: list[float] = []
    cached: list[float] = []
    bare: list[float] = []
    settings = PluginSettings(kind='plugin', ref=REF, max_concurrency=16, cache=True)
    thresholds, evaluator = Thresholds(), PluginEvaluator(REF, {})
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        cache = JudgeCache(Path(folder) / 'judge_cache.sqlite3')
        who = identity(evaluator.ref, settings, thresholds)
        digests = [hashlib.sha256(b'%d' % n).hexdigest() for n in range(effort.cached_answers)]
        for digest in digests:
            cache.put(who, digest, Verdict(Status.SUCCESS, EVIDENCE, score=0.95))
        plain = JudgeCalls(evaluator, settings, thresholds)
        keeping = JudgeCalls(evaluator, settings, thresholds, kept=cache.of(who))
        for _ in range(effort.repetitions):
            bare += _timed(len(digests), lambda n, done: _answer_by(pool, done))
            asked += _timed(len(digests), lambda n, done: plain.call(REQUEST, done))
            cached += _timed(
                len(digests),
                lambda n, done: keeping.call(replace(REQUEST, digest=digests[n]), done),
            )
        hits = keeping.health().cached
        cache.close()
    if hits != effort.repetitions * (len(digests) + WARM_UP):
        raise RuntimeError(f'{hits} answers came from the cache, which is not all')
    return [
        _row('question to answer, without the judge', asked, bare, 5.0, effort),
        _row('question to cached answer, without its digest', cached, bare, 2.0, effort),
    ]


def _row(name: str, samples: list[float], bare: list[float], most: float, effort: Effort) -> Row:
    return row(
        name,
        'ms',
        samples,
        statistic='p99',
        repetitions=effort.repetitions,
        target=Target(most),
        reference=bare,
        reference_name='ThreadPoolExecutor',
    )


def _timed(count: int, ask: Callable[[int, Callable[[Outcome], None]], object]) -> list[float]:
    """Milliseconds of each of so many questions, asked one after the other."""
    answers: SimpleQueue[tuple[int, Outcome]] = SimpleQueue()
    samples = []
    for number in range(-WARM_UP, count):
        began = time.perf_counter_ns()
        ask(number % count, lambda outcome: answers.put((time.perf_counter_ns(), outcome)))
        ended, outcome = answers.get()
        if not isinstance(outcome, Verdict):
            raise outcome
        if number >= 0:
            samples.append((ended - began) / 1e6)
    return samples


def _answer_by(pool: ThreadPoolExecutor, done: Callable[[Outcome], None]) -> None:
    pool.submit(lambda: done(Verdict(Status.SUCCESS)))
