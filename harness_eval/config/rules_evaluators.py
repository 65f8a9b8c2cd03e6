"""The rules of the evaluators: what they name is there, fits, and leads back to none of them."""

from __future__ import annotations

from collections.abc import Iterator
import re

from harness_eval.config.draft import Draft
from harness_eval.config.errors import did_you_mean
from harness_eval.config.evaluators import (
    EvaluatorSettings,
    ModelSettings,
    PluginSettings,
    RubricEvaluatorSettings,
)
from harness_eval.config.places import KeyPath
from harness_eval.config.shape import Finding

_PLUGIN_REF = re.compile(
    r'[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*'
    r':[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z'
)


def evaluator_rules(draft: Draft) -> Iterator[Finding]:
    """Find everything that is wrong with the evaluators."""
    for name, settings in draft.evaluators.items():
        if settings is None:
            continue  # its shape is wrong, which is reported elsewhere
        base: KeyPath = ('evaluation', 'evaluators', name)
        if isinstance(settings, PluginSettings):
            yield from plugin_ref((*base, 'ref'), settings.ref)
        if isinstance(settings, ModelSettings):
            yield from _model(base, settings, draft)
        yield from _named(base, settings, draft)
        if (loop := _loop(name, draft)) is not None and _tells(loop):
            key = settings.named[0][0]
            yield (
                (*base, key),
                f'expected evaluators that do not ask each other in a circle, found {name} '
                f'asks {" asks ".join(loop[1:])}',
            )


def plugin_ref(at: KeyPath, ref: str) -> Iterator[Finding]:
    """A plugin is named as ``module:callable``."""
    if not _PLUGIN_REF.match(ref):
        found = repr(ref[:60]) if ref else 'none'
        yield (
            at,
            f"expected 'module:callable', for example 'my_robot.grading:grade', found {found}",
        )


def _named(base: KeyPath, settings: EvaluatorSettings, draft: Draft) -> Iterator[Finding]:
    for key, names in settings.named:
        for index, name in enumerate(names):
            at: KeyPath = (*base, key, index) if key == 'members' else (*base, key)
            if name not in draft.evaluators:
                known = [other for other in draft.evaluators if other != base[-1]]
                yield (
                    at,
                    'expected the name of an evaluator, found '
                    f'{name!r}{did_you_mean(name, known, what="evaluators")}',
                )
                continue
            member = draft.evaluators[name]
            wants_model = isinstance(settings, RubricEvaluatorSettings)
            if wants_model and member is not None and not isinstance(member, ModelSettings):
                yield (
                    at,
                    f'expected the name of an evaluator of the kind model, found {name!r}, which '
                    f'is of the kind {member.kind}',
                )


def _model(base: KeyPath, settings: ModelSettings, draft: Draft) -> Iterator[Finding]:
    for tool, regions in settings.regions.items():
        at: KeyPath = (*base, 'regions', tool)
        if tool not in draft.required_tools:
            if fault := draft.unrequired(tool):
                yield at, fault
            continue
        known = list(draft.views)
        shown = draft.views_of(tool)
        for view in regions:
            if view not in draft.views:
                yield (
                    (*at, view),
                    'expected a view of capture.views, found '
                    f'{view!r}{did_you_mean(view, known, what="there are")}',
                )
            elif view not in shown:
                yield (
                    (*at, view),
                    f"expected a view that 'views' of the tool {tool!r} lists, found {view!r}; "
                    'add it there',
                )
    if settings.max_image_bytes > settings.max_total_bytes:
        key = (
            'max_image_bytes'
            if 'max_image_bytes' in settings.model_fields_set
            else ('max_total_bytes')
        )
        yield (
            (*base, key),
            'expected max_image_bytes of at most max_total_bytes, found '
            f'{settings.max_image_bytes} and {settings.max_total_bytes} bytes',
        )


def _loop(start: str, draft: Draft) -> list[str] | None:
    """Find the way from an evaluator back to itself, if there is one."""
    todo = [[start]]
    seen = set()
    while todo:
        way = todo.pop()
        settings = draft.evaluators.get(way[-1])
        for _, names in settings.named if settings is not None else ():
            for name in names:
                if name == start:
                    return [*way, name]
                if name not in seen:
                    seen.add(name)
                    todo.append([*way, name])
    return None


def _tells(loop: list[str]) -> bool:
    """Tell of each loop once: where its first name, in the order of the alphabet, stands."""
    return loop[0] == min(loop)
