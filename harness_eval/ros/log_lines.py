"""What a healthy node says in its log: that it is active, and what each run came to. Pure."""

from __future__ import annotations

from collections.abc import Callable

from harness_eval.config import Config
from harness_eval.lines import clean_line
from harness_eval.runs import Outcome


def active_line(config: Config, ledger_url: str, resolve: Callable[[str], str]) -> str:
    """Say what an active node judges, by what, where the record is and what it listens to.

    Args:
        config: The whole configuration.
        ledger_url: Where the record is kept; only the name of the file is told.
        resolve: Gives the full name of a topic.
    """
    judged: dict[str, list[str]] = {}
    for tool in config.evaluation.required_tools:
        judged.setdefault(config.evaluator_of(tool), []).append(tool)
    by = ' and '.join(f'{", ".join(tools)} by {judge}' for judge, tools in judged.items())
    sources = [
        resolve(source.topic) if source.topic else f'the goals of {source.action}'
        for source in config.completions
    ]
    record = ledger_url.rpartition('/')[2].partition('?')[0]
    return (
        f'judging {by or "nothing"}; record {record or "in memory"}; '
        f'listening on {", ".join(sources) or "~/evaluate alone"}'
    )


def outcome_line(outcome: Outcome) -> str:
    """Say what a segment's evaluation came to, and why."""
    verdict = outcome.verdict
    if verdict is None:
        why = ': '.join(part for part in (outcome.error_kind, outcome.message) if part)
    else:
        why = verdict.failure_reason
        if verdict.score is not None:
            why = f'score {verdict.score:.2f}' + (f'; {why}' if why else '')
    segment = f' segment {outcome.segment}' if outcome.segment else ''
    told = f': {why}' if why else ''
    return clean_line(
        f'{outcome.tool} {outcome.state.value} (run {outcome.run_id}{segment}){told}'
    )
