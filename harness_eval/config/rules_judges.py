"""The rules between a tool and its evaluator, with every other one that this one asks."""

from __future__ import annotations

from collections.abc import Iterator

from harness_eval.config.addresses import check_address
from harness_eval.config.draft import Draft
from harness_eval.config.evaluators import (
    CascadeSettings,
    ChecksSettings,
    EndpointSettings,
    ModelSettings,
    RubricEvaluatorSettings,
    ServiceSettings,
    VoteSettings,
)
from harness_eval.config.models import ToolSettings
from harness_eval.config.places import KeyPath
from harness_eval.config.rules_evaluators import plugin_ref
from harness_eval.config.shape import Finding
from harness_eval.config.tool_judging import OracleSettings

ASKED_FROM_OUTSIDE = (EndpointSettings, ServiceSettings)
"""Kinds that are sent the post-condition and the checks, and nothing else to judge by."""

NO_REPORT = (ChecksSettings, ServiceSettings)
"""Kinds whose answer has no place for a report."""


def listed_at(name: str, draft: Draft) -> KeyPath:
    """Where a tool is best pointed at: its own entry, or else its name among the required."""
    if name in draft.tools:
        return ('evaluation', 'tools', name)
    return ('evaluation', 'required_tools', draft.required_tools.index(name))


def judge_rules(
    name: str, base: KeyPath, settings: ToolSettings, chosen: str, draft: Draft
) -> Iterator[Finding]:
    """Find everything that an evaluator needs of a tool, and that the tool does not have.

    Args:
        name: Name of the tool.
        base: Where its settings stand.
        settings: Its settings.
        chosen: Name of its evaluator, which is there.
        draft: The configuration.
    """
    asked = draft.asked(chosen)
    by_rubric = {
        one.model
        for one in map(draft.evaluators.get, asked)
        if isinstance(one, RubricEvaluatorSettings)
    }
    direct = _directly_asked(chosen, draft)
    for judge in asked:
        evaluator = draft.evaluators.get(judge)
        if evaluator is None:
            continue  # its name or its shape is wrong, which is reported elsewhere
        who = f'its evaluator {chosen!r}' + ('' if judge == chosen else f' asks {judge!r}, which')
        since = f'since {who} is of the kind {evaluator.kind}'
        if isinstance(evaluator, ChecksSettings) and not settings.checks:
            yield (
                listed_at(name, draft),
                f'expected checks for the tool {name!r}, {since}, found none',
            )
        if isinstance(evaluator, RubricEvaluatorSettings) and settings.rubric is None:
            yield (
                listed_at(name, draft),
                f'expected a rubric for the tool {name!r}, {since}, found none',
            )
        asks_nothing = draft.post_condition(name) is None and not settings.checks
        if isinstance(evaluator, ASKED_FROM_OUTSIDE) and asks_nothing:
            yield (
                listed_at(name, draft),
                f'expected a post_condition or checks for the tool {name!r}, {since}, which is '
                'sent no rubric, found neither',
            )
        if isinstance(evaluator, ModelSettings):
            alone = judge not in by_rubric or judge in direct
            if alone and draft.post_condition(name) is None:
                yield (
                    listed_at(name, draft),
                    f'expected a post_condition for the tool {name!r}, {since}, found none',
                )
            yield from _views(name, base, settings, evaluator, since, draft)
    if settings.report is not None:
        if settings.report.source is not None:
            yield from plugin_ref((*base, 'report', 'from'), settings.report.source)
        elif not _can_report(chosen, draft, frozenset()):
            kind = getattr(draft.evaluators.get(chosen), 'kind', '')
            yield (
                (*base, 'report'),
                f'expected an evaluator that can fill in a report, found {chosen!r} of the kind '
                f'{kind}{_whose(chosen, draft)}; name a plugin that fills it in as '
                "'from: module:callable'",
            )


def oracle_rules(base: KeyPath, settings: OracleSettings) -> Iterator[Finding]:
    """Find what is wrong with an oracle.

    Args:
        base: Where its settings stand.
        settings: Its settings.
    """
    if settings.kind == 'plugin':
        yield from plugin_ref((*base, 'ref'), settings.ref)
        if settings.token_env is not None:
            yield (
                (*base, 'token_env'),
                "expected no 'token_env' for the kind 'plugin', found one; it belongs to the "
                'kind endpoint',
            )
        return
    try:
        check_address(settings.ref)
    except ValueError as error:
        yield (*base, 'ref'), str(error)


def _views(
    name: str,
    base: KeyPath,
    settings: ToolSettings,
    evaluator: ModelSettings,
    since: str,
    draft: Draft,
) -> Iterator[Finding]:
    shown = draft.views_of(name)
    if len(shown) > evaluator.max_views:
        yield (
            (*base, 'views') if settings.views is not None else listed_at(name, draft),
            f'expected at most {evaluator.max_views} views for the tool {name!r}, {since} with '
            f"that max_views, found {len(shown)}; name the tool's 'views', or raise max_views",
        )


def _directly_asked(chosen: str, draft: Draft) -> set[str]:
    """Names of the evaluators that are asked otherwise than by a rubric."""
    found: set[str] = set()
    todo = [chosen]
    while todo:
        name = todo.pop()
        settings = draft.evaluators.get(name)
        if name in found:
            continue
        found.add(name)
        if settings is not None and not isinstance(settings, RubricEvaluatorSettings):
            todo += [member for _, names in settings.named for member in names]
    return found


def _can_report(name: str, draft: Draft, above: frozenset[str]) -> bool:
    """Whether a success of an evaluator can always bring a report; true where nobody can tell."""
    settings = draft.evaluators.get(name)
    if settings is None or name in above:
        return True  # reported elsewhere
    below = above | {name}
    if isinstance(settings, CascadeSettings):
        return all(_can_report(member, draft, below) for member in settings.members)
    if isinstance(settings, VoteSettings):
        unable = [one for one in settings.members if not _can_report(one, draft, below)]
        return len(unable) < settings.needed
    return not isinstance(settings, NO_REPORT)


def _whose(chosen: str, draft: Draft) -> str:
    """Name the members of a vote or a cascade that cannot fill in a report."""
    settings = draft.evaluators.get(chosen)
    if not isinstance(settings, (VoteSettings, CascadeSettings)):
        return ''
    unable = [one for one in settings.members if not _can_report(one, draft, frozenset())]
    return f', whose {", ".join(map(repr, unable))} cannot'
