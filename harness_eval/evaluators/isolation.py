"""``isolation: process``: the evaluator in a child process, killed at its deadline.

The child is a fresh interpreter started by name, not a fork (which would copy the locks of a
threaded node) and not :mod:`multiprocessing` (whose children run the user's main script again).
It is kept between calls, so that a model is loaded once; calls at the same time get a child each
and one idle child is kept. A child whose parent dies ends by itself: it reads the end of the
connection when idle, and a kernel timer ends it when it hangs.

Requests travel pickled to the child; answers come back as JSON, so that nothing a broken child
writes is executed here.
"""

from __future__ import annotations

from contextlib import suppress
import json
from multiprocessing.connection import Connection, Pipe
import os
from pathlib import Path
import pickle
import signal
import subprocess
import sys
import threading
from typing import Any

from harness_eval.contract import (
    Abstention,
    DecodeError,
    EvaluationError,
    EvaluationRequest,
    Evaluator,
    EvaluatorError,
    Status,
    Verdict,
)
from harness_eval.evaluators.faults import describe
from harness_eval.evaluators.running import Stop
from harness_eval.evaluators.snapshot import snapshot
from harness_eval.judging import interpret, Thresholds

KEPT_IDLE = 1
"""Idle children kept for the next call."""

EXIT_PATIENCE = 2.0
"""Seconds that a child which closed its connection has to end before it is killed."""

_START = 'import sys; from harness_eval.evaluators.child import main; main(int(sys.argv[1]))'

_FAMILIES = {'Abstention': Abstention, 'DecodeError': DecodeError}


class IsolatedJudge:
    """Judges in child processes. Thread-safe: several calls may be under way.

    Args:
        evaluator: What judges; must be picklable, and importable in a fresh interpreter.
        thresholds: Where a score becomes a verdict.
        clamp: Cut a score outside [0, 1].
        timeout: Seconds of a call, after which the child ends itself if nobody else does.
    """

    def __init__(
        self, evaluator: Evaluator, thresholds: Thresholds, clamp: bool, timeout: float
    ) -> None:
        self._ref = evaluator.ref
        self._evaluator = evaluator
        self._thresholds = thresholds
        self._clamp = clamp
        self._timeout = timeout
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._closed = False

    def judge(self, request: EvaluationRequest, stop: Stop) -> Verdict:
        """Judge in a child; a request to stop kills it.

        Raises:
            EvaluatorError: ``evaluator_crashed`` with the exit code, ``not_picklable``, or what
                the evaluator's answer came to.
            Abstention: The evaluator abstained.
            DecodeError: The evaluator asked for a picture that cannot be decoded.
        """
        portable = snapshot(request)
        message = self._pickled(portable)
        child = self._take()
        with stop.handled_by(child.kill):
            try:
                reply = child.ask(message)
            except (EOFError, OSError):
                raise self._crashed(child.end()) from None
        self._give_back(child)
        return self._understood(reply, request)

    def close(self) -> None:
        """End the idle children, and those under way when they come back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()

    def _take(self) -> _Child:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.alive:
                    return child
                child.end()
        try:
            child = _Child()
        except (OSError, ValueError) as error:
            raise EvaluatorError(
                'no_process',
                f'no child process could be started: {describe(error)}',
                evaluator=self._ref,
                retryable=True,
            ) from error
        return child

    def _give_back(self, child: _Child) -> None:
        with self._lock:
            if not self._closed and child.alive and len(self._idle) < KEPT_IDLE:
                self._idle.append(child)
                return
        child.end()

    def _pickled(self, request: EvaluationRequest) -> bytes:
        job = (self._evaluator, self._thresholds, self._clamp)
        try:
            # The evaluator is a message within the message, so that the child can load it once.
            return pickle.dumps(
                (pickle.dumps(job), self._timeout, request), protocol=pickle.HIGHEST_PROTOCOL
            )
        except Exception as error:
            raise EvaluatorError(
                'not_picklable',
                f'the request cannot travel to another process: {describe(error)}',
                evaluator=self._ref,
            ) from error

    def _crashed(self, code: int) -> EvaluatorError:
        how = f'with exit code {code}'
        if code < 0:
            try:
                how = f'by signal {-code} ({signal.Signals(-code).name})'
            except ValueError:
                how = f'by signal {-code}'
        return EvaluatorError(
            'evaluator_crashed',
            f'its process ended {how} before it answered',
            evaluator=self._ref,
            retryable=True,
        )

    def _understood(self, reply: bytes, request: EvaluationRequest) -> Verdict:
        try:
            told = json.loads(reply)
            if 'error' in told:
                raise _error(told['error'], self._ref)
            verdict = Verdict(**{**told['verdict'], 'status': Status(told['verdict']['status'])})
        except EvaluationError:
            raise
        except (ValueError, TypeError, KeyError) as error:
            raise EvaluatorError(
                'malformed_answer',
                f'its process answered nonsense: {describe(error)}',
                evaluator=self._ref,
            ) from error
        # Whether score and status fit was looked at in the child.
        return interpret(verdict, request, self._thresholds, evaluator=self._ref, share=True)


def _error(told: dict[str, Any], ref: str) -> EvaluationError:
    family = _FAMILIES.get(told['family'], EvaluatorError)
    return family(
        str(told['kind']), str(told['message']), evaluator=ref, retryable=bool(told['retryable'])
    )


class _Child:
    """One child process and the connection to it."""

    def __init__(self) -> None:
        ours, theirs = Pipe(duplex=True)
        try:
            self._process = subprocess.Popen(
                [sys.executable, '-c', _START, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env={**os.environ, 'PYTHONPATH': search_path()},
                # A group of its own, so that what the judge starts is killed with it.
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._connection: Connection = ours

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, message: bytes) -> bytes:
        """Send a request and wait for its answer.

        Raises:
            EOFError, OSError: The child is gone.
        """
        self._connection.send_bytes(message)
        return self._connection.recv_bytes()

    def kill(self) -> None:
        """End the child and its group now. Thread-safe; does not wait."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):  # it ended by itself just now
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> int:
        """Close the connection, see the child end, and give its exit code."""
        self._connection.close()
        try:
            return self._process.wait(EXIT_PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()


def search_path() -> str:
    """Make the child find the modules that this process finds."""
    return os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
