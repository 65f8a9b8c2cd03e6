"""``harness-eval calibrate``: the threshold that bounds false successes, from labelled results."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

from rich.console import RenderableType
from rich.text import Text
import typer

from harness_eval.cli.exit_codes import EVALUATION_ERROR
from harness_eval.cli.extras import need_statistics
from harness_eval.cli.judged_input import InputsArgument, read_judged, ToolOption
from harness_eval.cli.label_input import LabelsOption
from harness_eval.cli.output_files import write_text
from harness_eval.cli.screen import complain, fields, many, plain, print_screen, refuse
from harness_eval.replay.calibration import calibrate as choose
from harness_eval.replay.calibration import Calibration, CalibrationError, Target
from harness_eval.replay.calibration_cases import Cases, scored_cases
from harness_eval.replay.scores import Rate

_RUNS_NAMED = 3
_OPTIONS = {
    'maximum': '--max-false-success',
    'confidence': '--confidence',
    'failure_threshold': '--failure-threshold',
}
_NOTHING_PASSES = (
    'no run that truly succeeded passes this threshold, so that the judge hardly ever says '
    'success; '
    'label more failed runs, ask for less, or take a judge that tells them apart'
)


class OfWhat(str, Enum):
    """Among what false successes are counted."""

    FAILURES = 'failures'
    VERDICTS = 'verdicts'


_Maximum = Annotated[
    float,
    typer.Option('--max-false-success', metavar='RATE', help='Highest rate of false successes.'),
]
_Confidence = Annotated[
    float,
    typer.Option(
        '--confidence', metavar='SHARE', help='How sure it must be that the rate is lower.'
    ),
]
_OfOption = Annotated[
    OfWhat,
    typer.Option(
        '--of',
        help='The rate among truly failed runs, or among verdicts of success.',
    ),
]
_FailureThreshold = Annotated[
    float,
    typer.Option(
        '--failure-threshold', metavar='SCORE', help='A score below it is failure; it is kept.'
    ),
]
_Out = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        '--out', metavar='FILE', help='Write the YAML lines there too.', show_default=False
    ),
]


def calibrate(
    inputs: InputsArgument,
    labels: LabelsOption = None,
    maximum: _Maximum = 0.02,
    confidence: _Confidence = 0.95,
    of: _OfOption = OfWhat.FAILURES,
    failure_threshold: _FailureThreshold = 0.5,
    tool: ToolOption = None,
    out: _Out = None,
) -> None:
    """Choose the lowest outcome_threshold whose rate of false successes is bounded.

    The code is 4 if no threshold can be given, and the message says how many cases it takes.
    """
    need_statistics()
    try:
        target = Target(maximum, confidence, of.value, failure_threshold)
    except ValueError as error:
        name, _, rest = str(error).partition(' ')
        refuse(f'{_OPTIONS.get(name, name)} {rest}')
    judged = read_judged(inputs, labels, tool)
    cases = scored_cases(judged.results)
    for line in _cautions(cases):
        complain(line)
    try:
        found = choose(cases, target)
    except CalibrationError as error:
        complain(error.message)
        raise typer.Exit(EVALUATION_ERROR) from None
    if found.passing.count == 0:
        complain(_NOTHING_PASSES)
    yaml = yaml_lines(found)
    if out is not None:
        write_text(out, yaml)
    print_screen(fields(_rows(found)), Text(f'\n{yaml}', end=''))


def yaml_lines(found: Calibration) -> str:
    """The lines of a configuration that use a threshold, with what it rests on."""
    target = found.target
    tools = ', '.join(plain(tool, 40) for tool in found.per_tool)
    return (
        f'# harness-eval calibrate: of {tools}\n'
        f'# {_what_is_shown(found)}\n'
        'evaluation:\n'
        f'  outcome_threshold: {found.threshold!r}\n'
        f'  failure_threshold: {target.failure_threshold!r}\n'
    )


def _what_is_shown(found: Calibration) -> str:
    """What was counted, and what that shows."""
    target = found.target
    passed = 'failed runs pass' if target.of == 'failures' else 'runs that pass have failed'
    return (
        f'{found.wrong} of {found.of} {passed}; a rate of at most {target.maximum:g} with '
        f'confidence {target.confidence:g}'
    )


def _rows(found: Calibration) -> Iterator[tuple[str, RenderableType]]:
    target = found.target
    yield 'threshold', f'{found.threshold:g}: a score at or above it is success'
    yield 'false success', _what_is_shown(found)
    yield 'passing', f'{_share(found.passing)} of the runs that truly succeeded'
    yield (
        'unsure',
        f'{_share(found.unsure)} of all, between {target.failure_threshold:g} and the threshold',
    )
    for name, (wrong, of) in found.per_tool.items():
        yield 'tools', f'{plain(name, 40)}: {wrong} of {of}'


def _share(rate: Rate) -> str:
    shown = '-' if rate.value is None else f'{rate.value:.1%}'
    return f'{shown} ({rate.count} of {rate.of})'


def _cautions(cases: Cases) -> Iterator[str]:
    for reason, run_ids in sorted(cases.left_out.items()):
        named = ', '.join(plain(run_id, 40) for run_id in run_ids[:_RUNS_NAMED])
        more = ', …' if len(run_ids) > _RUNS_NAMED else ''
        yield f'{len(run_ids)} left out: {reason} ({named}{more})'
    if cases.unknown:
        yield (
            f'{many(cases.unknown, "failed run")} left the judge unsure with a score that is not '
            'on record; each is taken as a false success at every threshold; replay them to know'
        )
    if cases.own_status:
        yield (
            f'{many(cases.own_status, "verdict")} without a word that a threshold made it; a '
            'judge with a status of its own is bound by no threshold, have it return its score'
        )
    tools = sorted(set(cases.tools))
    if len(tools) > 1:
        yield (
            f'{len(tools)} tools are taken together, as the configuration has one threshold for '
            'all; the bound is of their mixture, --tool chooses one'
        )
