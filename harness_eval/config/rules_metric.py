"""The rules between a tool's metric and the report that it is an output of."""

from __future__ import annotations

from collections.abc import Iterator

from harness_eval.config.errors import did_you_mean
from harness_eval.config.places import KeyPath
from harness_eval.config.shape import Finding
from harness_eval.config.tool_judging import MetricSettings, OutputSettings, ReportSettings


def metric_rules(
    base: KeyPath, settings: MetricSettings, report: ReportSettings | None
) -> Iterator[Finding]:
    """Find what is wrong with a metric.

    Args:
        base: Where its settings stand.
        settings: Its settings.
        report: What the tool's report holds, if it has one.
    """
    at: KeyPath = (*base, 'name')
    if report is None:
        yield at, f'expected a report with the output {settings.name!r}, found none; add it'
        return
    outputs = {output.key: output for output in report.outputs}
    output = outputs.get(settings.name)
    if output is None:
        known = [key for key, one in outputs.items() if one.type != 'string']
        hint = did_you_mean(settings.name, known, what='numbers and booleans')
        yield at, f"expected an output of the tool's report, found {settings.name!r}{hint}"
    elif output.type == 'string':
        yield (
            at,
            f'expected an output that is a number or a boolean, found that {settings.name!r} is '
            'a string, which has no better and no worse',
        )
    elif output.type == 'boolean':
        if settings.scale is not None:
            yield (
                (*base, 'scale'),
                f"expected no 'scale' for {settings.name!r}, which is a boolean, found one; "
                'delete it',
            )
    elif metric_scale(settings, output) is None:
        yield (
            base,
            f"expected 'scale', the difference of {settings.name!r} that counts as much as a "
            "wrong verdict put right, since the output has no 'between' of any width, found none",
        )


def metric_scale(settings: MetricSettings, output: OutputSettings) -> float | None:
    """The difference of the output that counts as 1; None: nothing says.

    Args:
        settings: The metric.
        output: The output that it names.
    """
    if output.type == 'boolean':
        return 1.0
    if settings.scale is not None:
        return settings.scale
    if output.between is None:
        return None
    width = output.between[1] - output.between[0]
    return width if 0.0 < width < float('inf') else None
