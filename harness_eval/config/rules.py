"""The rules that take more than one piece of the configuration.

Each rule is a generator of findings: where something is wrong, and what would be right.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness_eval.config.draft import Draft
from harness_eval.config.errors import did_you_mean
from harness_eval.config.models import CompletionSource, Config
from harness_eval.config.placeholders import placeholders
from harness_eval.config.places import KeyPath
from harness_eval.config.rules_evaluators import evaluator_rules
from harness_eval.config.rules_tools import tool_rules
from harness_eval.config.shape import Finding
from harness_eval.field_path import FieldPath
from harness_eval.message_types import TOOL_COMPLETION

_ACTION_TOPICS = ('/_action/status', '/_action/feedback')
"""How the topics end on which the server of an action tells of its goals."""
_DEFAULT_SOURCES = tuple(source.topic for source in Config().completions if source.topic)
_MAPPING_KEYS = ('run_id', 'tool', 'tool_name', 'segment', 'stamp', 'arguments')


def broken_rules(draft: Draft) -> Iterator[Finding]:
    """Find everything that is wrong between the pieces."""
    yield from _evaluation(draft)
    yield from evaluator_rules(draft)
    for name in draft.required_tools:
        if name:
            yield from tool_rules(name, draft)
    yield from _capture(draft)
    yield from _completions(draft)


def _evaluation(draft: Draft) -> Iterator[Finding]:
    base: KeyPath = ('evaluation',)
    for index, name in enumerate(draft.segment_tools):
        if name and (fault := draft.unrequired(name)):
            yield (*base, 'segment_tools', index), fault
    for name in draft.tools:
        if fault := draft.unrequired(name):
            yield (*base, 'tools', name), fault
    if draft.failure_threshold > draft.outcome_threshold:
        yield (
            (*base, 'failure_threshold'),
            f'expected at most outcome_threshold ({draft.outcome_threshold}), '
            f'found {draft.failure_threshold}',
        )
    if draft.evaluator is not None and draft.evaluator not in draft.evaluators:
        yield (
            (*base, 'evaluator'),
            'expected the name of an evaluator, found '
            f'{draft.evaluator!r}'
            f'{did_you_mean(draft.evaluator, list(draft.evaluators), what="evaluators")}',
        )


def _capture(draft: Draft) -> Iterator[Finding]:
    capture = draft.capture
    if capture is not None and capture.max_ahead >= capture.settle:
        key = 'max_ahead' if 'max_ahead' in capture.model_fields_set else 'settle'
        yield (
            ('capture', key),
            'expected max_ahead below settle, so that no frame from before the end can count, '
            f'found max_ahead {capture.max_ahead} and settle {capture.settle}',
        )
    for name in draft.states:
        if name in draft.views:
            yield (
                ('capture', 'states', name),
                f'expected a name that no view has, found {name!r}, which is a view too; '
                'a tool names views and states in one list',
            )
    for name, state in draft.states.items():
        if state is not None:
            yield from _field_path(('capture', 'states', name, 'field'), state.field)
            yield from _no_claim(('capture', 'states', name, 'topic'), state.topic, draft)


def _no_claim(at: KeyPath, topic: str, draft: Draft) -> Iterator[Finding]:
    """What a tool says of itself must not reach a judge by way of a state."""
    named = [source.topic for source in draft.completions if source is not None and source.topic]
    claims = {name.lstrip('/') for name in (*named, *_DEFAULT_SOURCES)}
    if topic.lstrip('/') in claims:
        what = 'a source of completions'
    elif topic.endswith(_ACTION_TOPICS):
        what = 'what an action says of itself'
    else:
        return
    yield (
        at,
        'expected a topic on which a sensor says what is so, found '
        f'{topic!r}, which is {what}; a judge may not see what a tool claims',
    )


def _completions(draft: Draft) -> Iterator[Finding]:
    first: dict[tuple[str, str], int] = {}
    for index, source in enumerate(draft.completions):
        if source is None:
            continue
        base: KeyPath = ('completions', index)
        if (source.topic is None) == (source.action is None):
            found = 'none' if source.topic is None else 'both'
            yield base, f"expected exactly one of 'topic' and 'action', found {found}"
            continue
        key = 'action' if source.topic is None else 'topic'
        name = source.action if source.topic is None else source.topic
        before = first.setdefault((key, str(name)), index)
        if before != index:
            yield (
                (*base, key),
                f'expected each {key} once, found {name!r} again; '
                f'completions[{before}] has it already',
            )
        if key == 'action':
            yield from _action(base, source, draft)
        elif source.type == TOOL_COMPLETION:
            yield from _unwanted(base, source, _MAPPING_KEYS, f'a topic of {TOOL_COMPLETION}')
        else:
            yield from _mapped_topic(base, source, draft)


def _unwanted(
    base: KeyPath, source: CompletionSource, keys: tuple[str, ...], where: str
) -> Iterator[Finding]:
    for key in keys:
        if key in source.model_fields_set and getattr(source, key):
            yield (*base, key), f'expected no {key!r} for {where}, found one; delete it'


def _action(base: KeyPath, source: CompletionSource, draft: Draft) -> Iterator[Finding]:
    unwanted = ('type', *(key for key in _MAPPING_KEYS if key != 'tool'))
    yield from _unwanted(base, source, unwanted, 'an action')
    if source.tool is None:
        yield (*base, 'tool'), "expected 'tool', the name of the tool whose goals end, found none"
        return
    for argument in _needed_arguments(source.tool, draft):
        yield (
            (*base, 'action'),
            f'expected a tool without placeholders, found {source.tool!r} that needs the '
            f'argument {argument!r}; the end of a goal carries no arguments',
        )


def _mapped_topic(base: KeyPath, source: CompletionSource, draft: Draft) -> Iterator[Finding]:
    if source.run_id is None:
        yield (
            (*base, 'run_id'),
            f'expected the field path of the run id in {source.type}, found none',
        )
    if (source.tool is None) == (source.tool_name is None):
        found = 'neither' if source.tool is None else 'both'
        yield (
            base,
            "expected exactly one of 'tool' (field path) and 'tool_name' (a fixed name), "
            f'found {found}',
        )
    for key in ('run_id', 'tool', 'segment', 'stamp'):
        path = getattr(source, key)
        if path is not None and not (key == 'stamp' and path == 'receipt'):
            yield from _field_path((*base, key), path)
    for argument, path in source.arguments.items():
        yield from _field_path((*base, 'arguments', argument), path)
    if source.tool_name is not None:
        for argument in _needed_arguments(source.tool_name, draft):
            if argument not in source.arguments:
                yield (
                    (*base, 'arguments'),
                    f'expected the field path of {argument!r}, which the post-condition or an '
                    f'effect of {source.tool_name!r} needs, found none',
                )


def _needed_arguments(tool: str, draft: Draft) -> list[str]:
    """Arguments without which a tool cannot be judged; none for a tool that is not required."""
    settings = draft.tools.get(tool)
    texts = [draft.post_condition(tool) or '']
    if settings is not None:
        texts += [text for effect in settings.on_success for text in effect.texts()]
    if tool not in draft.required_tools:
        return []
    return list(dict.fromkeys(name for text in texts for name in _readable_placeholders(text)))


def _readable_placeholders(text: str) -> tuple[str, ...]:
    try:
        return placeholders(text)
    except ValueError:
        return ()  # reported where the text stands


def _field_path(path: KeyPath, text: str) -> Iterator[Finding]:
    try:
        FieldPath.parse(text)
    except ValueError as error:
        yield path, str(error)
