"""The ``model`` evaluator: a vision-language model behind a server that speaks chat completions.

:mod:`prompt` says what is sent, :mod:`verdict_form` which answer is asked for, :mod:`client` how,
:mod:`reply` and :mod:`parse` how strictly it is read, and :mod:`deciding` what it comes to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, TypeVar

from harness_eval.config.evaluators import ModelSettings
from harness_eval.contract import (
    Abstention,
    EvaluationRequest,
    EvaluatorError,
    ReportOutput,
    Verdict,
)
from harness_eval.evaluators.context import EvaluatorContext
from harness_eval.evaluators.model.client import ChatClient, Session
from harness_eval.evaluators.model.deciding import decide
from harness_eval.evaluators.model.errors import ModelError
from harness_eval.evaluators.model.pictures import encode_all, Limits, Original, Sent
from harness_eval.evaluators.model.prompt import (
    caption,
    Form,
    messages,
    Part,
    Question,
    random_token,
    readings,
)
from harness_eval.evaluators.model.verdict_form import VerdictForm

__all__ = ['ModelError', 'ModelEvaluator']

TASK = (
    'Judge by the rules whether the post-condition, the first of the data, holds now in the views '
    'and readings.'
)

_Read = TypeVar('_Read')


class ModelEvaluator:
    """Judges a post-condition by asking a model once.

    ``evaluate`` prepares the question on the thread that calls it (pictures are decoded and
    encoded, libraries imported) and gives a coroutine that asks; see :mod:`client` for its
    threading model.

    Args:
        name: Name of the evaluator in the configuration.
        settings: Which model, where, and how it is asked.
        context: Of this, the thresholds.
        token: Makes the delimiter of a question.

    Attributes:
        ref: ``model:name``.
    """

    def __init__(
        self,
        name: str,
        settings: ModelSettings,
        context: EvaluatorContext,
        *,
        token: Callable[[], str] = random_token,
    ) -> None:
        self.ref = f'model:{name}'
        self._name = name
        self._settings = settings
        self._thresholds = context.thresholds
        self._token = token
        self._client = ChatClient(settings, self.ref)

    def evaluate(self, request: EvaluationRequest) -> Awaitable[Verdict]:
        """Prepare the question; the coroutine asks it.

        Raises:
            EvaluatorError: See ``docs/evaluators.md``.
            Abstention: The model cannot tell, or is not sure.
            DecodeError: A view cannot be decoded.
        """
        deadline = self.deadline(self._settings.timeout)
        question = self.question(request, (), TASK)
        form = replace(form_of(request), clamp=self._settings.clamp)
        return self._judged(question, form, deadline)

    async def _judged(self, question: Question, form: VerdictForm, deadline: float) -> Verdict:
        async with self.session(deadline) as session:
            found = await self.ask(session, question, form, form.read)
            return self.concluded(
                session,
                self.ref,
                lambda: decide(found, self._thresholds, evaluator=self.ref),
            )

    # What the rubric evaluator uses as well.

    def deadline(self, timeout: float) -> float:
        """When a judgement that begins now has to end, on the client's clock."""
        return self._client.deadline(timeout)

    def session(self, deadline: float) -> AbstractAsyncContextManager[Session]:
        """Open what one judgement needs."""
        return self._client.session(deadline)

    def question(
        self,
        request: EvaluationRequest,
        further: tuple[Part, ...],
        task: str,
        *,
        text_needed: bool = True,
    ) -> Question:
        """Make the question of a request, with every picture encoded.

        Args:
            request: What is judged.
            further: Texts that follow the post-condition, as data.
            task: What is to be done.
            text_needed: Whether there must be a post-condition or something further.

        Raises:
            EvaluatorError: ``no_post_condition``, ``too_many_views``, ``unsendable_picture``,
                ``picture_too_large``, or what keeps any question from being asked.
            DecodeError: A view cannot be decoded.
        """
        self._client.access.check()
        condition, observation = request.post_condition, request.observation
        parts = further
        if condition.text.strip():
            parts = (Part('The post-condition:', condition.text), *further)
        if text_needed and not parts:
            raise EvaluatorError(
                'no_post_condition',
                'a model needs a post_condition to judge; checks alone do not tell it what to see',
                evaluator=self.ref,
            )
        if len(observation.views) > self._settings.max_views:
            raise EvaluatorError(
                'too_many_views',
                f'the tool is judged by {len(observation.views)} views, max_views is '
                f'{self._settings.max_views}; name the views of the tool, or raise max_views',
                evaluator=self.ref,
            )
        regions = condition.regions.get(self._name, {})
        unknown = ', '.join(sorted(set(regions) - set(observation.views)))
        if unknown:
            raise EvaluatorError(
                'unknown_region', f'regions name {unknown}, which is not sent', evaluator=self.ref
            )
        state_part = readings(request)
        references, views = self._pictures(request, regions)
        return Question(
            parts=(
                *parts,
                *_report_part(condition.report),
                *((state_part,) if state_part else ()),
            ),
            references=references,
            views=views,
            captions={
                name: caption(view.age, regions.get(name))
                for name, view in observation.views.items()
            },
            task=task,
        )

    def _pictures(
        self, request: EvaluationRequest, regions: Mapping[str, Any]
    ) -> tuple[dict[str, Sent], dict[str, Sent]]:
        references = request.post_condition.references
        views = request.observation.views
        originals = [
            *(Original(f'reference {name!r}', image) for name, image in references.items()),
            *(
                Original(f'view {name!r}', view.image, regions.get(name))
                for name, view in views.items()
            ),
        ]
        given = self._settings
        limits = Limits(given.max_image_bytes, given.max_total_bytes, given.max_side)
        sent = iter(encode_all(originals, limits))
        return {name: next(sent) for name in references}, {name: next(sent) for name in views}

    async def ask(
        self, session: Session, question: Question, form: Form, read: Callable[[str], _Read]
    ) -> _Read:
        """Ask within a session and read the answer.

        Raises:
            ModelError: There is no answer, or none that can be read. It names the evaluator and
                holds what was used.
        """

        def compose(in_words: bool) -> list[dict[str, Any]]:
            return messages(
                question, form, detail=self._settings.detail, in_words=in_words, token=self._token
            )

        text = await self._client.ask(session, compose, form)
        try:
            return read(text)
        except ModelError as error:
            raise error.told(self.ref, session.tally) from None

    def concluded(self, session: Session, ref: str, conclude: Callable[[], Verdict]) -> Verdict:
        """Conclude, and keep what was used whatever that comes to.

        Raises:
            ModelError, Abstention: What ``conclude`` raises, with what was used.
        """
        tally = session.tally
        try:
            verdict = conclude()
        except ModelError as error:
            raise error.told(ref, tally) from None
        except Abstention as abstention:
            message = ModelError('', abstention.message, tally=tally).message
            raise Abstention(
                abstention.kind, message, evaluator=ref, score=abstention.score
            ) from None
        return replace(
            verdict,
            evidence=(*verdict.evidence, f'used: {tally.note()}'),
            route=tally.route or f'{self._settings.model} (as asked; the server names none)',
            cost=tally.cost,
        )


def form_of(request: EvaluationRequest) -> VerdictForm:
    """The answer that a request allows."""
    condition, observation = request.post_condition, request.observation
    return VerdictForm(
        sources=(*observation.views, *observation.states, *condition.references),
        process_allowed=condition.process_allowed,
        failure_kinds=condition.failure_kinds,
        outputs=tuple((output.key, output.type) for output in condition.report),
    )


def _report_part(outputs: tuple[ReportOutput, ...]) -> tuple[Part, ...]:
    if not outputs:
        return ()
    lines = [f'{output.key} ({output.type}): {output.title}' for output in outputs]
    return (Part('Values to report, with what they mean, one a line:', '\n'.join(lines)),)
