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
import time
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
from harness_eval.evaluators.child import NUMBER
from harness_eval.evaluators.faults import describe
from harness_eval.evaluators.running import Stop
from harness_eval.evaluators.snapshot import snapshot
from harness_eval.judging import interpret, Thresholds

KEPT_IDLE = 1
"""Idle children kept for the next call."""

EXIT_PATIENCE = 2.0
"""Seconds that a child which closed its connection has to end before it is killed."""

LOOK = 0.1
"""Seconds between two looks at whether a child that does not answer still runs."""

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
    error: EvaluationError = family(
        str(told['kind']), str(told['message']), evaluator=ref, retryable=bool(told['retryable'])
    )
    if isinstance(error, Abstention) and told.get('score') is not None:
        error.score = float(told['score'])
    return error


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
        self._lock = threading.Lock()
        self._forgotten = False
        self._asked = 0

    @property
    def alive(self) -> bool:
        """Whether it runs. One that ended stays a zombie, so that its number stays its own."""
        try:
            looked = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._process.pid, looked) is None
        except ChildProcessError:
            return False

    def ask(self, message: bytes) -> bytes:
        """Send a request and wait for its answer, which bears the number of the question.

        Raises:
            EOFError, OSError: The child is gone, or answers another question.
        """
        self._asked += 1
        number = NUMBER.pack(self._asked)
        self._connection.send_bytes(number + message)
        # What the judge forked holds the other end too: then the child's end closes nothing.
        while not self._connection.poll(LOOK):
            if not self.alive and not self._connection.poll():
                raise EOFError
        reply = self._connection.recv_bytes()
        if reply[: NUMBER.size] != number:
            raise EOFError
        return reply[NUMBER.size :]

    def kill(self) -> None:
        """End the child and all of its group now. Thread-safe; does not wait."""
        with self._lock:
            if not self._forgotten:
                with suppress(ProcessLookupError):  # nobody is left of it
                    os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> int:
        """Close the connection, see the child and its group end, and give its exit code."""
        self._connection.close()
        patience = time.monotonic() + EXIT_PATIENCE
        while self.alive and time.monotonic() < patience:
            time.sleep(LOOK / 10)
        self.kill()  # also what it started and left behind
        with self._lock:
            self._forgotten = True  # the number of the group may be given to others now
        return self._process.wait()


def search_path() -> str:
    """Make the child find the modules that this process finds."""
    return os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
