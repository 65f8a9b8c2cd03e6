"""The ``endpoint`` evaluator: an HTTP service that is posted the question as JSON.

``docs/endpoint.md`` describes question and answer, whose forms are in
:mod:`harness_eval.evaluators.endpoint_forms`. The pictures are encoded on the thread that asks;
the exchange itself is awaited, so that it can be cancelled.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable
import json
import math
from typing import Any

from pydantic import ValidationError

from harness_eval.config.evaluators import EndpointSettings
from harness_eval.contract import (
    Answer,
    CameraInfo,
    EvaluationRequest,
    EvaluatorError,
    Image,
    Rubric,
    State,
    Status,
    Verdict,
    View,
)
from harness_eval.evaluators.context import EvaluatorContext
from harness_eval.evaluators.elsewhere import plain_check, told_abstention
from harness_eval.evaluators.endpoint_forms import (
    CriterionSent,
    IntrinsicsSent,
    ObservationSent,
    OutputSent,
    PictureSent,
    Question,
    RewardAnswer,
    RubricSent,
    StateSent,
    TaskSent,
    VerdictAnswer,
    ViewSent,
)
from harness_eval.evaluators.http_connection import PostTarget, reference_of
from harness_eval.evaluators.http_post import post_json
from harness_eval.evaluators.picture_bytes import png_of
from harness_eval.lines import clean_line

MAX_PROBLEMS = 3
"""Problems of one answer that an error names."""


class EndpointEvaluator:
    """Posts the question to an HTTP service and takes its answer.

    Args:
        name: What the configuration calls it, for errors.
        settings: Its address, time-out, token and certificates.
        context: Not used.

    Attributes:
        ref: ``endpoint:`` and the address without its query.

    Raises:
        EvaluatorError: ``endpoint_url``.
    """

    def __init__(self, name: str, settings: EndpointSettings, context: EvaluatorContext) -> None:
        self.ref = reference_of(settings.url, name)
        self._target = PostTarget(
            url=settings.url,
            token_env=settings.token_env or '',
            ca_file=settings.ca_file or '',
            timeout=settings.timeout,
            ref=self.ref,
        )

    def evaluate(self, request: EvaluationRequest) -> Awaitable[Answer]:
        """Encode the question on this thread; what is returned posts it.

        Raises:
            EvaluatorError: ``unsendable_picture``, and once awaited whatever
                :func:`~harness_eval.evaluators.http_post.post_json` raises or
                ``malformed_answer``.
            DecodeError: A picture cannot be decoded.
        """
        return self._ask(question_bytes(request, self.ref))

    async def _ask(self, body: bytes) -> Answer:
        return read_answer(await post_json(self._target, body), self.ref)


def question_bytes(request: EvaluationRequest, ref: str) -> bytes:
    """The question as JSON in UTF-8, in the form of ``Question``.

    Raises:
        EvaluatorError: ``unsendable_picture``.
        DecodeError: A picture cannot be decoded.
    """
    asked, seen = request.post_condition, request.observation
    try:
        question = Question(
            task=TaskSent(
                prompt=asked.text,
                reference={
                    name: _picture(picture, f'reference {name!r}')
                    for name, picture in asked.references.items()
                },
                rubric=None if asked.rubric is None else _rubric(asked.rubric),
                report=[
                    OutputSent(key=one.key, title=one.title, type=one.type) for one in asked.report
                ],
                checks=[plain_check(check) for check in asked.checks],
                failure_kinds=list(asked.failure_kinds),
                process_allowed=asked.process_allowed,
            ),
            observation=ObservationSent(
                views={name: _view(view) for name, view in seen.views.items()},
                states={name: _state(state) for name, state in seen.states.items()},
                spread=seen.spread,
            ),
        )
    except EvaluatorError as error:
        raise EvaluatorError(error.kind, error.message, evaluator=ref) from None
    # allow_nan: a NaN that got this far is a fault of ours, and must not be sent as JSON.
    text = json.dumps(question.model_dump(mode='json'), allow_nan=False, ensure_ascii=True)
    return text.encode()


def read_answer(answer: Any, ref: str) -> Answer:
    """Make an evaluator's answer of what a service answered.

    Args:
        answer: The JSON value.
        ref: How errors name the service.

    Returns:
        The reward as it came (the caller checks its range), or a verdict.

    Raises:
        EvaluatorError: ``malformed_answer``.
        Abstention: ``judge_abstained``.
    """
    try:
        if not isinstance(answer, dict):
            raise ValueError(f'expected a JSON object, found {_kind(answer)}')
        if 'status' in answer:
            return _verdict(VerdictAnswer.model_validate(answer), ref)
        return RewardAnswer.model_validate(answer).reward
    except ValidationError as error:
        raise _malformed(_problems(error), ref) from None
    except ValueError as error:
        raise _malformed(str(error), ref) from None


def _verdict(answer: VerdictAnswer, ref: str) -> Verdict:
    if answer.status == 'abstain':
        if answer.failure_reason or answer.failure_kind:
            raise ValueError('abstain carries no failure_reason and no failure_kind')
        raise told_abstention(answer.evidence, ref)
    return Verdict(
        status=Status(answer.status),
        evidence=tuple(answer.evidence),
        failure_reason=answer.failure_reason,
        failure_kind=answer.failure_kind,
        score=answer.score,
        report=answer.report,
        route=answer.route,
        cost=answer.cost,
    )


def _problems(error: ValidationError) -> str:
    """What is wrong with an answer, by key; its values are not repeated."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [
        f'{".".join(str(part)[:60] for part in problem["loc"]) or "the answer"}: {problem["msg"]}'
        for problem in found[:MAX_PROBLEMS]
    ]
    if len(found) > MAX_PROBLEMS:
        lines.append(f'{len(found) - MAX_PROBLEMS} more')
    return '; '.join(lines)


def _malformed(problem: str, ref: str) -> EvaluatorError:
    return EvaluatorError(
        'malformed_answer',
        f'expected {{"reward": 0.83}} or a verdict object; {clean_line(problem)}',
        evaluator=ref,
    )


def _kind(value: object) -> str:
    names = {dict: 'an object', list: 'an array', str: 'a string', bool: 'a truth value'}
    return 'null' if value is None else names.get(type(value), 'a number')


def _picture(picture: Image, what: str) -> PictureSent:
    png = png_of(picture, what)
    return PictureSent.model_construct(
        data=base64.b64encode(png.data).decode('ascii'),
        format='png',
        width=png.width,
        height=png.height,
        channels=png.channels,
        bits=png.bits,
        unit=png.unit,
    )


def _view(view: View) -> ViewSent:
    return ViewSent.model_construct(
        image=_picture(view.image, f'view {view.name!r}'),
        age=view.age,
        stamp_source=view.stamp_source,
        frame_id=view.frame_id,
        camera_info=None if view.camera_info is None else _intrinsics(view.camera_info),
    )


def _intrinsics(info: CameraInfo) -> IntrinsicsSent:
    return IntrinsicsSent.model_construct(
        width=info.width,
        height=info.height,
        model=info.model,
        matrix=[[_real(number) for number in row] for row in info.matrix.tolist()],
        distortion=[_real(number) for number in info.distortion.tolist()],
    )


def _state(state: State) -> StateSent:
    value = state.value
    return StateSent.model_construct(
        value=[_real(n) for n in value] if isinstance(value, tuple) else _real(value),
        age=state.age,
        stamp_source=state.stamp_source,
        frame_id=state.frame_id,
    )


def _rubric(rubric: Rubric) -> RubricSent:
    return RubricSent(
        text=rubric.text,
        criteria=[
            CriterionSent(name=one.name, text=one.text, weight=one.weight, must=one.must)
            for one in rubric.criteria
        ],
        version=rubric.version,
    )


def _real(number: float) -> Any:
    if math.isfinite(number):
        return float(number)
    if math.isnan(number):
        return 'NaN'
    return 'Infinity' if number > 0 else '-Infinity'
