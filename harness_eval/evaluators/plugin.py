"""The ``plugin`` evaluator: a callable of the user's, named as ``module:callable``.

The module is imported once, on the first call, under a lock; a failed import is not remembered,
so a plugin that was mended (or whose model server came up) works on the next call. The evaluator
runs on whatever thread calls it; see :mod:`harness_eval.calls`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
import importlib
import inspect
from operator import attrgetter
import re
import threading
from typing import Any

from harness_eval.contract import Answer, EvaluationError, EvaluationRequest, EvaluatorError
from harness_eval.evaluators.faults import describe, of_a_plugin

Judge = Callable[..., 'Answer | Awaitable[Answer]']

_NAME = r'[^\W\d]\w*(?:\.[^\W\d]\w*)*'
_REF = re.compile(rf'({_NAME}):({_NAME})')


class PluginEvaluator:
    """Calls the user's judge with the request and the configured options.

    The callable may be a function (also a coroutine function), an object with an ``evaluate``
    method, or a class with one; a class is instantiated once, with the options, and its
    ``evaluate`` is then called with the request alone.

    Args:
        target: ``module:callable``; the callable may be dotted (``module:Grader.judge``).
        options: Keyword arguments for it.

    Attributes:
        ref: ``plugin:module:callable``.

    Raises:
        EvaluatorError: ``plugin_ref`` if ``target`` is not of that form.
    """

    def __init__(self, target: str, options: Mapping[str, Any]) -> None:
        self.ref = f'plugin:{target}'
        match = _REF.fullmatch(target)
        if match is None:
            raise EvaluatorError(
                'plugin_ref',
                f'expected ref: "module:callable", for example "my_robot.grading:grade", '
                f'found {target!r}',
            )
        self._module, self._path = match.group(1), match.group(2)
        self._target = target
        self._options = dict(options)
        self._lock = threading.Lock()
        self._judge: Judge | None = None

    def __reduce__(self) -> tuple[type[PluginEvaluator], tuple[str, dict[str, Any]]]:
        """Travel to another process by name: the plugin is imported there."""
        return PluginEvaluator, (self._target, self._options)

    def evaluate(self, request: EvaluationRequest) -> Answer | Awaitable[Answer]:
        """Call the plugin.

        Raises:
            EvaluatorError: ``plugin_import`` (retryable) if it cannot be imported or made,
                ``plugin_not_callable`` if the name stands for nothing that judges.
            EvaluationError: What the plugin raises as an error of this package, under a kind
                that cannot pass for one of ours. Other exceptions pass as they are.
        """
        judge = self._loaded()
        try:
            answer = judge(request)
        except EvaluationError as error:
            raise of_a_plugin(error, self.ref) from None
        return self._awaited(answer) if inspect.isawaitable(answer) else answer

    async def _awaited(self, answer: Awaitable[Answer]) -> Answer:
        try:
            return await answer
        except EvaluationError as error:
            raise of_a_plugin(error, self.ref) from None

    def probe(self) -> str:
        """Import the plugin, without calling it.

        Raises:
            EvaluatorError: ``plugin_import``, ``plugin_not_callable``.
        """
        self._loaded()
        return f'{self._target} is imported and can be called'

    def _loaded(self) -> Judge:
        with self._lock:
            if self._judge is None:
                self._judge = self._load()
            return self._judge

    def _load(self) -> Judge:
        found = self._find()
        options = self._options
        evaluate = getattr(found, 'evaluate', None)
        if isinstance(found, type):
            if not callable(evaluate):
                raise self._not_callable(found, 'a class without a method evaluate(request)')
            made: Judge = self._guarded(lambda: found(**options), 'be instantiated').evaluate
            return made
        judge = evaluate if callable(evaluate) else found
        if not callable(judge):
            raise self._not_callable(found, f'of type {type(found).__name__}')
        return lambda request: judge(request, **options)

    def _find(self) -> Any:
        importlib.invalidate_caches()
        found = self._guarded(lambda: importlib.import_module(self._module), 'be imported')
        try:
            return attrgetter(self._path)(found)
        except AttributeError as error:
            raise self._error(
                'plugin_import',
                f'module {self._module!r} was imported, but has no {self._path!r}',
            ) from error

    def _guarded(self, step: Callable[[], Any], purpose: str) -> Any:
        try:
            return step()
        except EvaluationError as error:
            raise of_a_plugin(error, self.ref) from None
        except BaseException as error:
            # BaseException: a module that calls sys.exit() when imported is a failed import.
            raise self._error(
                'plugin_import',
                f'{self._target!r} could not {purpose}: {describe(error)}',
                retryable=True,
            ) from error

    def _not_callable(self, found: object, what: str) -> EvaluatorError:
        return self._error(
            'plugin_not_callable',
            f'{self._target!r} is {what}; expected a callable that takes the request, or an '
            'object or class with such a method evaluate',
        )

    def _error(self, kind: str, message: str, *, retryable: bool = False) -> EvaluatorError:
        return EvaluatorError(kind, message, evaluator=self.ref, retryable=retryable)
