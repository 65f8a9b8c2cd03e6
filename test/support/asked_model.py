"""A model evaluator that asks a server on loopback, and well-formed answers to change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from judged_world import make_request, make_view, noise
from model_server import Answer, LoopbackServer
import pytest

from harness_eval.config.evaluators import ModelSettings
from harness_eval.contract import Answer as Judged
from harness_eval.contract import EvaluationRequest
from harness_eval.evaluators.context import EvaluatorContext
from harness_eval.evaluators.model import ModelEvaluator

# Imported now, so that no test pays for it within a deadline of its own.
pytest.importorskip('openai', reason='an evaluator of the kind model needs openai')

KEY = 'sk-loopback-0123456789'
KEY_ENV = 'LOOPBACK_KEY'


def settings(url: str, **changes: Any) -> ModelSettings:
    """Settings that lead to the server."""
    given = {
        'kind': 'model',
        'model': 'judge-1',
        'base_url': f'{url}/v1',
        'api_key_env': KEY_ENV,
        'timeout': 20.0,
        **changes,
    }
    return ModelSettings.model_validate(given)


def judge(url: str, **changes: Any) -> ModelEvaluator:
    """The evaluator ``vlm``."""
    return ModelEvaluator('vlm', settings(url, **changes), EvaluatorContext())


@contextmanager
def serving(*answers: Answer) -> Iterator[LoopbackServer]:
    """A server, and the key in the environment."""
    with LoopbackServer(*answers) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_ENV, KEY)
        yield server


def ask(evaluator: Any, request: EvaluationRequest | None = None) -> Judged:
    """Judge, and wait for what comes of it."""

    async def judged() -> Judged:
        answer: Judged = await evaluator.evaluate(request or front_request())
        return answer

    return asyncio.run(judged())


def front_request(**changes: Any) -> EvaluationRequest:
    """A question about one view, ``front``."""
    return make_request(make_view('front', noise(1)), **changes)


def success(**changes: Any) -> dict[str, Any]:
    """A well-formed answer."""
    return {
        'observations': [{'source': 'front', 'seen': 'The part lies in its place.'}],
        'reasons': 'It lies where it belongs.',
        'status': 'success',
        'score': 0.97,
        **changes,
    }


def failure(**changes: Any) -> dict[str, Any]:
    """A well-formed answer that says no."""
    return success(
        **{
            'observations': [{'source': 'front', 'seen': 'The place is empty.'}],
            'reasons': 'The part is not in its place.',
            'status': 'failure',
            'score': 0.03,
            **changes,
        }
    )
