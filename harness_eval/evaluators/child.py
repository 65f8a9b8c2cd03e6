"""The child process of ``isolation: process``; see :mod:`harness_eval.evaluators.isolation`."""

from __future__ import annotations

import json
from multiprocessing.connection import Connection
import os
import pickle
import signal
import struct
from typing import Any

from harness_eval.contract import Evaluator, Verdict
from harness_eval.evaluators.faults import as_evaluation_error, describe
from harness_eval.evaluators.running import judge_here, Stop
from harness_eval.judging import Thresholds

GRACE = 5.0
"""Seconds after the deadline at which a child that nobody killed ends itself."""

NUMBER = struct.Struct('>Q')
"""In front of each request and of its answer: an answer to another question is none."""

_STDOUT, _STDERR = 1, 2


def main(descriptor: int) -> None:
    """Answer requests until the parent closes the connection.

    Args:
        descriptor: File descriptor of this end of the connection.
    """
    os.set_inheritable(descriptor, False)  # what the judge starts must not keep it open
    os.dup2(_STDERR, _STDOUT)  # what a judge prints does not mix with the output of a command
    connection = Connection(descriptor)
    child, own = _Jobs(), os.getpid()
    while True:
        try:
            message = connection.recv_bytes()
        except EOFError:
            return
        # The kernel's own action for SIGALRM ends the process even where native code holds the
        # interpreter, so that no hung judge outlives a parent that was killed.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
        number, message = message[: NUMBER.size], message[NUMBER.size :]
        reply = child.answer(message)
        if os.getpid() != own:
            os._exit(0)  # the judge forked and came back twice; only one of the two may answer
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        connection.send_bytes(number + json.dumps(reply).encode())


class _Jobs:
    """Keeps the evaluator between requests, so that its module and model are loaded once."""

    def __init__(self) -> None:
        self._pickled = b''
        self._job: tuple[Evaluator, Thresholds, bool] | None = None

    def answer(self, message: bytes) -> dict[str, Any]:
        ref = ''
        try:
            pickled, timeout, request = pickle.loads(message)
            signal.setitimer(signal.ITIMER_REAL, timeout + GRACE)
            if self._job is None or pickled != self._pickled:
                self._job, self._pickled = pickle.loads(pickled), pickled
        except Exception as error:
            return _told('EvaluatorError', 'not_picklable', _cannot_load(error), False)
        try:
            evaluator, thresholds, clamp = self._job
            ref = evaluator.ref
            verdict = judge_here(evaluator, request, thresholds, clamp=clamp, stop=Stop())
        except BaseException as raised:
            fault = as_evaluation_error(raised, ref)
            told = _told(type(fault).__name__, fault.kind, fault.message, fault.retryable)
            told['error']['score'] = getattr(fault, 'score', None)  # of an abstention
            return told
        return {'verdict': _fields(verdict)}


def _cannot_load(error: Exception) -> str:
    return f'the evaluator or its request cannot be loaded in its process: {describe(error)}'


def _told(family: str, kind: str, message: str, retryable: bool) -> dict[str, Any]:
    return {'error': {'family': family, 'kind': kind, 'message': message, 'retryable': retryable}}


def _fields(verdict: Verdict) -> dict[str, Any]:
    return {
        'status': verdict.status.value,
        'evidence': verdict.evidence,
        'failure_reason': verdict.failure_reason,
        'failure_kind': verdict.failure_kind,
        'score': verdict.score,
        'report': verdict.report,
        'route': verdict.route,
        'cost': verdict.cost,
    }
