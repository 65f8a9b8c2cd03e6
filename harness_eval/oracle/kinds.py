"""The kinds of oracles: a callable of the user's, and an HTTP service."""

from __future__ import annotations

from collections.abc import Awaitable
import json
from typing import Any, cast, TYPE_CHECKING

from harness_eval.contract import EvaluatorError
from harness_eval.oracle.answers import Oracle, OracleRequest, OracleResult

if TYPE_CHECKING:
    from harness_eval.config.tool_judging import OracleSettings


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
        from harness_eval.evaluators.http_connection import PostTarget, reference_of

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
