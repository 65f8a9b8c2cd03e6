"""What judges: one module per kind of evaluator, and the builder that knows their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TYPE_CHECKING

from harness_eval.config.evaluators import EvaluatorSettings, PluginSettings
from harness_eval.contract import Evaluator, EvaluatorError
from harness_eval.evaluators.context import EvaluatorContext, RosService
from harness_eval.judging import Thresholds

if TYPE_CHECKING:
    from harness_eval.calls import JudgeCalls
    from harness_eval.judge_cache import JudgeCache

__all__ = ['BUILDERS', 'EvaluatorContext', 'Judges', 'build_evaluator']

Builder = Callable[[str, Any, EvaluatorContext], Evaluator]


def _build_checks(name: str, settings: Any, context: EvaluatorContext) -> Evaluator:
    from harness_eval.evaluators.checks import ChecksEvaluator

    return ChecksEvaluator(name, context.thresholds)


def _build_plugin(name: str, settings: PluginSettings, context: EvaluatorContext) -> Evaluator:
    from harness_eval.evaluators.plugin import PluginEvaluator

    return PluginEvaluator(settings.ref, settings.options)


def _class(target: str) -> Builder:
    """Make a builder that imports the class of a kind when the first one is asked for."""
    module, _, name = target.partition(':')

    def build(evaluator: str, settings: Any, context: EvaluatorContext) -> Evaluator:
        made: Evaluator = getattr(import_module(module), name)(evaluator, settings, context)
        return made

    return build


BUILDERS: Mapping[str, Builder] = {
    'checks': _build_checks,
    'plugin': _build_plugin,
    'model': _class('harness_eval.evaluators.model:ModelEvaluator'),
    'rubric': _class('harness_eval.evaluators.rubric:RubricEvaluator'),
    'endpoint': _class('harness_eval.evaluators.endpoint:EndpointEvaluator'),
    'service': _class('harness_eval.evaluators.service:ServiceEvaluator'),
    'vote': _class('harness_eval.evaluators.vote:VoteEvaluator'),
    'cascade': _class('harness_eval.evaluators.cascade:CascadeEvaluator'),
}
"""How each kind of evaluator is made; the modules are imported when one is asked for."""

DEFAULT_CONTEXT = EvaluatorContext()


def build_evaluator(
    name: str, settings: EvaluatorSettings, context: EvaluatorContext = DEFAULT_CONTEXT
) -> Evaluator:
    """Make the evaluator that the configuration calls ``name``.

    Nothing of the user's is imported here: a plugin is imported when it is first called.

    Args:
        name: Key under ``evaluation.evaluators``.
        settings: Its settings.
        context: What else it may use.

    Raises:
        EvaluatorError: ``unknown_evaluator_kind``, for a plugin ``plugin_ref``, or what the kind
            itself raises.
    """
    builder = BUILDERS.get(settings.kind)
    if builder is None:
        raise EvaluatorError(
            'unknown_evaluator_kind',
            f'evaluator {name!r} has the kind {settings.kind!r}; known: {", ".join(BUILDERS)}',
        )
    return builder(name, settings, context)


class Judges:
    """The evaluators of a configuration, each made once, when it is first asked for.

    Not thread-safe while they are made; :meth:`all` makes them all.

    Args:
        settings: Their settings by name; names within them are keys of it, without a loop.
        thresholds: Where a score becomes a verdict.
        ros_service: Calls a ROS 2 service; ``None`` where there is no node.
        cache: Keeps the answers of those whose ``cache`` is on; ``None``: nothing is kept.
    """

    def __init__(
        self,
        settings: Mapping[str, EvaluatorSettings],
        thresholds: Thresholds,
        ros_service: RosService | None = None,
        cache: JudgeCache | None = None,
    ) -> None:
        self._settings = settings
        self._cache = cache
        self._context = EvaluatorContext(thresholds, self.evaluator, self.calls, ros_service)
        self._evaluators: dict[str, Evaluator] = {}
        self._calls: dict[str, JudgeCalls] = {}

    def evaluator(self, name: str) -> Evaluator:
        """Give the evaluator of a name, as it is.

        Raises:
            EvaluatorError: It cannot be made.
        """
        if name not in self._evaluators:
            self._evaluators[name] = build_evaluator(name, self._of(name), self._context)
        return self._evaluators[name]

    def calls(self, name: str) -> JudgeCalls:
        """Give the evaluator of a name behind its calls: all that ask it share its limits.

        Raises:
            EvaluatorError: It cannot be made.
        """
        from harness_eval.calls import JudgeCalls

        if name not in self._calls:
            settings = self._of(name)
            kept = None
            if settings.cache and self._cache is not None:
                kept = self._cache.of(self._identity(name))
            self._calls[name] = JudgeCalls(
                self.evaluator(name), settings, self._context.thresholds, kept=kept
            )
        return self._calls[name]

    def all(self) -> dict[str, JudgeCalls]:
        """Give them all behind their calls, in the order of the settings.

        Raises:
            EvaluatorError: One of them cannot be made.
        """
        return {name: self.calls(name) for name in self._settings}

    def _identity(self, name: str) -> str:
        """Say who answers under a name: the evaluator and all that it asks."""
        from harness_eval.kept_answers import identity

        settings = self._of(name)
        members = {one: self._identity(one) for _, names in settings.named for one in names}
        return identity(self.evaluator(name).ref, settings, self._context.thresholds, members)

    def _of(self, name: str) -> EvaluatorSettings:
        try:
            return self._settings[name]
        except KeyError:
            raise EvaluatorError(
                'unknown_evaluator',
                f'expected the name of an evaluator, found {name!r}; there are '
                f'{", ".join(self._settings)}',
            ) from None
