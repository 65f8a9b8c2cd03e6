"""The rules of one required tool: what it is judged by, and everything it names."""

from __future__ import annotations

from collections.abc import Iterator

from harness_eval.config.checks import ChangeCheck, Check, ColorCheck, MarkerCheck, StateCheck
from harness_eval.config.draft import Draft
from harness_eval.config.errors import did_you_mean
from harness_eval.config.models import ToolSettings
from harness_eval.config.placeholders import placeholders
from harness_eval.config.places import KeyPath
from harness_eval.config.rules_judges import judge_rules, listed_at, oracle_rules
from harness_eval.config.rules_metric import metric_rules
from harness_eval.config.shape import Finding


def tool_rules(name: str, draft: Draft) -> Iterator[Finding]:
    """Find everything that is wrong with a required tool.

    Args:
        name: Its name.
        draft: The configuration.
    """
    base: KeyPath = ('evaluation', 'tools', name)
    settings = draft.tools.get(name, ToolSettings())
    if settings is None:
        return  # its shape is wrong, which is reported elsewhere
    yield from _post_condition(name, base, settings, draft)
    yield from _evaluator(name, base, settings, draft)
    yield from _observed(name, base, settings, draft)
    for index, check in enumerate(settings.checks):
        yield from _check((*base, 'checks', index), check, settings, draft)
    if settings.checks and all(check.optional for check in settings.checks):
        yield (
            (*base, 'checks'),
            'expected at least one check that is not optional, found none; nothing could fail',
        )
    if settings.metric is not None:
        yield from metric_rules((*base, 'metric'), settings.metric, settings.report)
    if settings.oracle is not None:
        yield from oracle_rules((*base, 'oracle'), settings.oracle)
    for index, effect in enumerate(settings.on_success):
        for text in effect.texts():
            yield from _placeholders((*base, 'on_success', index, effect.op), text, settings)


def _post_condition(
    name: str, base: KeyPath, settings: ToolSettings, draft: Draft
) -> Iterator[Finding]:
    elsewhere = draft.post_conditions.get(name)
    at: KeyPath = ('evaluation', 'post_conditions', name)
    if settings.post_condition is not None:
        if elsewhere is not None:
            yield (
                (*base, 'post_condition'),
                'expected the post-condition in one place, found it in '
                f'evaluation.post_conditions.{name} too; delete one of the two',
            )
        at = (*base, 'post_condition')
    text = draft.post_condition(name)
    if text is not None:
        if not text.strip():
            yield at, 'expected a sentence, found nothing but white space'
        yield from _placeholders(at, text, settings)
    elif not settings.checks and settings.rubric is None:
        close = did_you_mean(name, [key for key in draft.post_conditions if key != name])
        hint = f'; evaluation.post_conditions{close}' if 'did you mean' in close else ''
        yield (
            listed_at(name, draft),
            f'expected a post_condition, checks or a rubric for the required tool '
            f'{name!r}, found none{hint}',
        )


def _placeholders(at: KeyPath, text: str, settings: ToolSettings) -> Iterator[Finding]:
    try:
        names = placeholders(text)
    except ValueError as error:
        yield at, str(error)
        return
    for name in names:
        if name not in settings.arguments:
            known = list(settings.arguments)
            hint = did_you_mean(name, known, what='declared') if known else ''
            yield (
                at,
                f"expected an argument that the tool's 'arguments' declares, found "
                f'{{{name}}}{hint}' + ('' if known else '; declare it there'),
            )


def _evaluator(
    name: str, base: KeyPath, settings: ToolSettings, draft: Draft
) -> Iterator[Finding]:
    chosen = settings.evaluator or draft.evaluator
    if chosen is None:
        yield (
            listed_at(name, draft),
            f'expected an evaluator for the required tool {name!r}, found none; name one in '
            'evaluation.evaluator or in the tool',
        )
        return
    if chosen not in draft.evaluators:
        if settings.evaluator is not None:  # a wrong default is reported once, where it stands
            known = list(draft.evaluators)
            yield (
                (*base, 'evaluator'),
                'expected the name of an evaluator, found '
                f'{chosen!r}{did_you_mean(chosen, known, what="evaluators")}',
            )
        return
    yield from judge_rules(name, base, settings, chosen, draft)


def _observed(name: str, base: KeyPath, settings: ToolSettings, draft: Draft) -> Iterator[Finding]:
    if settings.views is None:
        if not draft.observables:
            yield (
                listed_at(name, draft),
                f'expected a view or a state that shows what {name!r} did, found none; '
                'add one to capture.views or capture.states',
            )
        return
    if not settings.views:
        yield (
            (*base, 'views'),
            'expected at least one view or state, found none; without this key it is all of them',
        )
    for index, view in enumerate(settings.views):
        if view not in draft.observables:
            yield (
                (*base, 'views', index),
                'expected a view or a state of capture, found '
                f'{view!r}{did_you_mean(view, draft.observables, what="there are")}',
            )


def _check(at: KeyPath, check: Check, settings: ToolSettings, draft: Draft) -> Iterator[Finding]:
    target = check.settings
    where: KeyPath = (*at, check.kind)
    if check.failure_kind and check.failure_kind not in settings.failure_kinds:
        known = list(settings.failure_kinds)
        yield (
            (*at, 'failure_kind'),
            "expected one of the tool's failure_kinds, found "
            f'{check.failure_kind!r}{did_you_mean(check.failure_kind, known, what="they are")}',
        )
    if isinstance(target, StateCheck):
        # A state that a check names belongs to the observation, whatever 'views' lists.
        yield from _seen((*where, 'name'), target.name, 'state', list(draft.states), None)
        return
    yield from _seen((*where, 'view'), target.view, 'view', list(draft.views), settings.views)
    yield from _covered(where, check, draft)
    if isinstance(target, MarkerCheck):
        view = draft.views.get(target.view)
        if target.position is not None and view is not None and view.camera_info is None:
            yield (
                (*where, 'position'),
                f"expected 'camera_info' on capture.views.{target.view}, which a position "
                'needs, found none',
            )
        return
    reference = getattr(target, 'reference', None)
    if reference is not None and reference not in settings.references:
        known = list(settings.references)
        yield (
            (*where, 'reference'),
            "expected one of the tool's references, found "
            f'{reference!r}{did_you_mean(reference, known, what="they are")}',
        )


def _seen(
    at: KeyPath, name: str, what: str, known: list[str], listed: tuple[str, ...] | None
) -> Iterator[Finding]:
    """A check looks at something that exists and that the tool's observation has."""
    if name not in known:
        hint = did_you_mean(name, known, what='there are')
        yield at, f'expected a {what} of capture.{what}s, found {name!r}{hint}'
    elif listed is not None and name not in listed:
        yield (
            at,
            f"expected a {what} that the tool's 'views' lists, found {name!r}; add it there",
        )


def _covered(where: KeyPath, check: Check, draft: Draft) -> Iterator[Finding]:
    """A covered camera shows no marker, no colour and no change: it would prove an absence."""
    target = check.settings
    if isinstance(target, MarkerCheck):
        key, found = 'visible', not target.visible
    elif isinstance(target, ColorCheck):
        key, found = 'coverage', target.coverage[0] == 0.0
    elif isinstance(target, ChangeCheck):
        key, found = 'fraction', target.fraction[0] == 0.0
    else:
        return
    view = draft.views.get(target.view)
    if found and view is not None and view.usable is None:
        yield (
            (*where, key),
            f"expected 'usable' on capture.views.{target.view}, since a covered camera meets this "
            'check too, found none; say there what is always to be seen, for example '
            'usable: {marker: {dictionary: DICT_4X4_50, id: 0}}',
        )
