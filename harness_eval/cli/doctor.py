"""``harness-eval doctor``: measure the cameras of a cell and check its judges, for real."""

from __future__ import annotations

from collections.abc import Iterator
import math
from pathlib import Path
from typing import Annotated, Optional, TYPE_CHECKING

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
import typer

from harness_eval.cli.configured import loaded
from harness_eval.cli.exit_codes import OK
from harness_eval.cli.records import JsonOption
from harness_eval.cli.screen import plain, print_json, print_screen, refuse
from harness_eval.cli.with_ros import need_ros
from harness_eval.config import Config
from harness_eval.doctor.diagnosis import (
    diagnose,
    Diagnosis,
    diagnosis_json,
    Examined,
    subject_of_judge,
)
from harness_eval.doctor.judges import check_judges
from harness_eval.doctor.remarks import Remark, subject_of
from harness_eval.judging import Thresholds

if TYPE_CHECKING:
    from harness_eval.ros.doctor import Examination

SOMETHING_WILL_FAIL = 1
"""Exit code when something was found that will fail."""

LONGEST = 600.0
"""Seconds that can be measured at most; the stamps of all frames are kept."""

_STYLES = {'ok': 'green', 'warn': 'yellow', 'FAIL': 'red'}

# typer reads these at run time, on Python 3.10 too.
_Config = Annotated[Path, typer.Argument(metavar='CONFIG', help='The YAML file.')]
_Seconds = Annotated[
    float, typer.Option(metavar='S', min=0.5, max=LONGEST, help='How long to listen, in seconds.')
]
_Live = Annotated[
    bool,
    typer.Option(
        '--live', help='Ask each model, endpoint and service one tiny question; may cost.'
    ),
]
_Namespace = Annotated[
    str, typer.Option(metavar='NS', help='Namespace of the evaluator node, for relative names.')
]
_Simulated = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        '--sim-time/--no-sim-time',
        help='Whether stamps are of a simulation; default: if somebody publishes /clock.',
        show_default=False,
    ),
]


def doctor(
    config: _Config,
    seconds: _Seconds = 5.0,
    live: _Live = False,
    namespace: _Namespace = '',
    sim_time: _Simulated = None,
    as_json: JsonOption = False,
) -> None:
    """Measure each camera, check each evaluator, and say what to set and what will fail.

    Ends with 0 if all is well, with 1 if something will fail, with 2 if the configuration or the
    usage is wrong. Needs no evaluator node.
    """
    settings = loaded(config)
    need_ros()
    diagnosis = _examined(settings, seconds, namespace, sim_time, live=live)
    if as_json:
        print_json(diagnosis_json(diagnosis))
    else:
        print_screen(*_parts(diagnosis, seconds))
    raise typer.Exit(OK if diagnosis.well else SOMETHING_WILL_FAIL)


def _examined(
    config: Config, seconds: float, namespace: str, simulated: bool | None, *, live: bool
) -> Diagnosis:
    from rclpy.exceptions import NameValidationException

    from harness_eval.ros.doctor import Examination

    try:
        examination = Examination(config, namespace, simulated)
    except NameValidationException as error:
        refuse(f'--namespace {plain(namespace, 80)!r} is none: {str(error).splitlines()[0]}')
    with examination:
        streams = examination.measure(seconds)
        return _judged(config, examination, streams, live=live)


def _judged(
    config: Config, examination: Examination, streams: dict[str, Examined], *, live: bool
) -> Diagnosis:
    from harness_eval.evaluators import Judges
    from harness_eval.evaluators.probing import Prober

    evaluation = config.evaluation
    thresholds = Thresholds(evaluation.outcome_threshold, evaluation.failure_threshold)
    judges = Judges(evaluation.evaluators, thresholds, examination.services)
    prober = Prober(evaluation.evaluators, judges.evaluator, examination.servers)
    # Clients are made on this thread, before another one spins the node.
    made = judges.all()
    try:
        with examination.spinning():
            found = check_judges(config, judges, prober, live=live)
    finally:
        for calls in made.values():
            calls.close()
    return diagnose(config, examination.tools, streams, found, simulated=examination.simulated)


# --- for people -------------------------------------------------------------------------------


def _parts(diagnosis: Diagnosis, seconds: float) -> Iterator[RenderableType]:
    clock = ', simulated time' if diagnosis.simulated else ''
    if diagnosis.streams:
        yield Text(f'streams, over {seconds:g} s{clock}')
        yield _streams(diagnosis)
    if diagnosis.spreads:
        yield Text('spread of the closest frames of each tool, ms')
        yield _spreads(diagnosis)
    yield Text('evaluators')
    yield _judges(diagnosis)
    if diagnosis.proposals:
        yield Text('proposed for capture:')
        yield _proposals(diagnosis)
    for remark in diagnosis.remarks:
        yield _told(remark)
    yield Text('')
    failing = sum(remark.level.value == 'FAIL' for remark in diagnosis.remarks)
    things = '1 thing' if failing == 1 else f'{failing} things'
    if diagnosis.well:
        yield Text.assemble(('ok', _STYLES['ok']), '  nothing was found that will fail')
    else:
        yield Text.assemble(('FAIL', _STYLES['FAIL']), f'  {things} will fail')


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        numeric = heading in (
            'Hz',
            'jitter ms',
            'offset ms',
            'smallest',
            'median',
            'p99',
            'now',
            'better',
        )
        table.add_column(
            heading, overflow='fold', justify='right' if numeric else 'left', no_wrap=False
        )
    return table


def _streams(diagnosis: Diagnosis) -> Table:
    table = _table('', 'stream', 'Hz', 'jitter ms', 'offset ms', 'picture', 'offered')
    for name, one in diagnosis.streams.items():
        measured = one.measured
        picture = ''
        if measured.width:
            picture = f'{measured.width}x{measured.height} {plain(measured.encoding, 40)}'
        table.add_row(
            _level(diagnosis.level_of(subject_of(measured))),
            Text(plain(name, 60)),
            _figure(measured.rate, 1),
            _figure(measured.jitter * 1e3, 0),
            _offset(measured.offset),
            Text(picture),
            Text(one.offered or 'no publisher'),
        )
    return table


def _spreads(diagnosis: Diagnosis) -> Table:
    table = _table('tool', 'streams', 'smallest', 'median', 'p99')
    for one in diagnosis.spreads:
        table.add_row(
            Text(one.tool),
            Text(', '.join(one.streams)),
            _figure(one.smallest * 1e3, 1),
            _figure(one.median * 1e3, 1),
            _figure(one.nearly_all * 1e3, 1),
        )
    return table


def _judges(diagnosis: Diagnosis) -> Table:
    table = _table('', 'evaluator', 'kind', 'found')
    for judge in diagnosis.judges:
        fault = judge.came_to.fault
        found = judge.came_to.found if fault is None else fault.kind
        table.add_row(
            _level(diagnosis.level_of(subject_of_judge(judge))),
            Text(judge.name if judge.used else f'{judge.name} (not used)'),
            Text(judge.kind),
            Text(plain(found)),
        )
    return table


def _proposals(diagnosis: Diagnosis) -> Table:
    table = _table('key', 'now', 'better', 'since')
    for one in diagnosis.proposals:
        same = math.isclose(one.value, one.now)
        table.add_row(
            Text(one.key),
            Text(f'{one.now:g}'),
            Text('as it is' if same else f'{one.value:g}'),
            Text(one.figures),
        )
    return table


def _told(remark: Remark) -> Text:
    return Text.assemble(
        _level(remark.level.value),
        f'  {remark.kind}: {plain(remark.subject)}: {plain(remark.text)}\n'
        f'      {plain(remark.remedy)}',
    )


def _level(level: str) -> Text:
    return Text(level, style=_STYLES[level])


def _figure(value: float, digits: int) -> str:
    return '-' if math.isnan(value) else f'{value:.{digits}f}'


def _offset(offset: tuple[float, float, float]) -> str:
    smallest, _, largest = offset
    if math.isnan(smallest):
        return '-'
    return f'{smallest * 1e3:.1f} to {largest * 1e3:.1f}'
