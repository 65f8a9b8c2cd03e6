"""The ``rubric`` evaluator: a model judges criteria, and the verdict is reckoned from them."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace

from harness_eval.config.evaluators import RubricEvaluatorSettings
from harness_eval.contract import EvaluationRequest, EvaluatorError, Rubric, Verdict
from harness_eval.evaluators.context import EvaluatorContext
from harness_eval.evaluators.model import form_of, ModelEvaluator
from harness_eval.evaluators.model.deciding import decide, evidence_of
from harness_eval.evaluators.model.errors import ModelError
from harness_eval.evaluators.model.prompt import Part, Question
from harness_eval.evaluators.model.verdict_form import VerdictForm
from harness_eval.evaluators.rubric.criteria_form import CriteriaForm, ReadCriteria
from harness_eval.evaluators.rubric.scoring import weigh

__all__ = ['RubricEvaluator']

MAX_SEEN = 20
"""Lines of evidence of what was seen; those about the criteria need room beside them."""

CRITERIA_TASK = (
    'Judge by the rules, each for itself, which of the numbered criteria are met now in the views '
    'and readings. The post-condition, if one stands above, says what the tool was to reach.'
)
TEXT_TASK = (
    'Judge by the rules and by the rubric whether the work was done, as it shows now in the views '
    'and readings. The post-condition, if one stands above, says what the tool was to reach.'
)


class RubricEvaluator:
    """Judges a tool's rubric by a model.

    Free text is judged in one call, as a post-condition is. Criteria are asked about
    ``max_criteria`` at a time, one call after the other under one deadline; the model says of each
    whether it is met, and the score is the weighted share of those that are. A typed report is
    filled in with the first call.

    Args:
        name: Name of the evaluator in the configuration.
        settings: Which model, and how many criteria in one call.
        context: Gives the model's evaluator and the thresholds.

    Attributes:
        ref: ``rubric:name``.

    Raises:
        EvaluatorError: ``no_model``: the evaluator that is named is not one of a model.
    """

    score_is_share = True  # a must decides beside it

    def __init__(
        self, name: str, settings: RubricEvaluatorSettings, context: EvaluatorContext
    ) -> None:
        self.ref = f'rubric:{name}'
        self._settings = settings
        self._thresholds = context.thresholds
        model = context.member(settings.model)
        if not isinstance(model, ModelEvaluator):
            raise EvaluatorError(
                'no_model',
                f'expected an evaluator of the kind model, found {model.ref}',
                evaluator=self.ref,
            )
        self._model = model

    def evaluate(self, request: EvaluationRequest) -> Awaitable[Verdict]:
        """Prepare the questions; the coroutine asks them.

        Raises:
            EvaluatorError: ``no_rubric``, ``not_applicable``, and what the model raises.
            Abstention: Nobody can tell, or is sure.
            DecodeError: A view cannot be decoded.
        """
        deadline = self._model.deadline(self._settings.timeout)
        rubric = request.post_condition.rubric
        if rubric is None:
            raise EvaluatorError(
                'no_rubric', 'the tool has no rubric; give it one', evaluator=self.ref
            )
        if rubric.criteria:
            forms = self._forms(request, rubric)
            question = self._model.question(request, (), CRITERIA_TASK, text_needed=False)
            return self._criteria_judged(request, question, forms, deadline)
        part = Part('The rubric, in markdown:', rubric.text)
        question = self._model.question(request, (part,), TEXT_TASK)
        form = replace(form_of(request), rubric=True, clamp=self._settings.clamp)
        return self._text_judged(question, form, deadline)

    def _forms(self, request: EvaluationRequest, rubric: Rubric) -> list[CriteriaForm]:
        plain = form_of(request)
        size = self._settings.max_criteria
        return [
            CriteriaForm(
                rubric.criteria[start : start + size],
                start + 1,
                plain.sources,
                plain.outputs if start == 0 else (),
            )
            for start in range(0, len(rubric.criteria), size)
        ]

    async def _text_judged(
        self, question: Question, form: VerdictForm, deadline: float
    ) -> Verdict:
        async with self._model.session(deadline) as session:
            found = await self._model.ask(session, question, form, form.read)
            return self._model.concluded(
                session, self.ref, lambda: decide(found, self._thresholds, evaluator=self.ref)
            )

    async def _criteria_judged(
        self,
        request: EvaluationRequest,
        question: Question,
        forms: list[CriteriaForm],
        deadline: float,
    ) -> Verdict:
        async with self._model.session(deadline) as session:
            answers = []
            for form in forms:
                criteria = Part('The criteria, by number:', form.text())
                asked = replace(question, parts=(*question.parts, criteria))
                answers.append(await self._model.ask(session, asked, form, form.read))
            return self._model.concluded(
                session, self.ref, lambda: self._weighed(request, answers)
            )

    def _weighed(self, request: EvaluationRequest, answers: list[ReadCriteria]) -> Verdict:
        for answer in answers:
            if not answer.applies:
                raise ModelError(
                    'not_applicable', f'the rubric cannot apply to this: {answer.reasons}'
                )
        seen = [line for answer in answers for line in evidence_of(answer.observations)]
        verdict = weigh(
            [judged for answer in answers for judged in answer.judged],
            self._thresholds,
            process_allowed=request.post_condition.process_allowed,
            evaluator=self.ref,
            evidence=tuple(seen[:MAX_SEEN]),
        )
        return replace(verdict, report=answers[0].report)
