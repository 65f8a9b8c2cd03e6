"""What judges: one module per kind of evaluator, and the builder that knows their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness_eval.config.models import EvaluatorSettings
from harness_eval.contract import Evaluator, EvaluatorError
from harness_eval.judging import Thresholds

DEFAULT_THRESHOLDS = Thresholds()


def _build_checks(name: str, settings: EvaluatorSettings, thresholds: Thresholds) -> Evaluator:
    from harness_eval.evaluators.checks import ChecksEvaluator

    return ChecksEvaluator(name, thresholds)


def _build_plugin(name: str, settings: EvaluatorSettings, thresholds: Thresholds) -> Evaluator:
    from harness_eval.evaluators.plugin import PluginEvaluator

    return PluginEvaluator(settings.ref, settings.options)


Builder = Callable[[str, EvaluatorSettings, Thresholds], Evaluator]

BUILDERS: Mapping[str, Builder] = {'checks': _build_checks, 'plugin': _build_plugin}
"""How each kind of evaluator is made; the modules are imported when one is asked for."""


def build_evaluator(
    name: str, settings: EvaluatorSettings, thresholds: Thresholds = DEFAULT_THRESHOLDS
) -> Evaluator:
    """Make the evaluator that the configuration calls ``name``.

    Nothing of the user's is imported here: a plugin is imported when it is first called.

    Args:
        name: Key under ``evaluation.evaluators``.
        settings: Its settings.
        thresholds: The two thresholds of the configuration.

    Raises:
        EvaluatorError: ``unknown_evaluator_kind`` or, for a plugin, ``plugin_ref``.
    """
    builder = BUILDERS.get(settings.kind)
    if builder is None:
        raise EvaluatorError(
            'unknown_evaluator_kind',
            f'evaluator {name!r} has the kind {settings.kind!r}; known: {", ".join(BUILDERS)}',
        )
    return builder(name, settings, thresholds)
