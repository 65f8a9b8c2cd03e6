"""``harness-eval try``: have still pictures judged by a configured evaluator, without a robot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
import queue
import time
from typing import Annotated, Any, List, Optional, TYPE_CHECKING, TypeVar  # noqa: UP035

from rich.console import RenderableType
from rich.text import Text
import typer

from harness_eval.cli.exit_codes import code_of_state, USAGE
from harness_eval.cli.outcome_text import outcome_json, outcome_rows
from harness_eval.cli.records import JsonOption
from harness_eval.cli.screen import fields, plain, print_json, print_screen, refuse, state_text
from harness_eval.config import Config, ConfigError, load_config
from harness_eval.contract import EvaluationError, EvaluationRequest, Verdict
from harness_eval.runs import Completion, Outcome, outcome_of, Segment

if TYPE_CHECKING:
    from harness_eval.config.tool_judging import ReportSettings
    from harness_eval.still import Still

T = TypeVar('T')
Value = float | tuple[float, ...]

RUN_ID = 'try'
"""Name of the run that is made up; no evaluator is told it."""

_USAGE_KINDS = ('missing_argument', 'argument_too_long')
"""Errors of the question that are mistakes in the arguments of the command."""

# typer reads these at run time, on Python 3.10 too.
_Config = Annotated[Path, typer.Argument(metavar='CONFIG', help='The YAML file.')]
_Tool = Annotated[str, typer.Option(metavar='NAME', help='The tool that has ended.')]
_Images = Annotated[
    Optional[List[str]],  # noqa: UP006, UP045
    typer.Option('--image', metavar='VIEW=FILE', help='A picture of each view.'),
]
_Arguments = Annotated[
    Optional[List[str]],  # noqa: UP006, UP045
    typer.Option('--arg', metavar='NAME=VALUE', help='What the tool was asked to do.'),
]
_States = Annotated[
    Optional[List[str]],  # noqa: UP006, UP045
    typer.Option('--state', metavar='NAME=NUMBER[,…]', help='Each reading.'),
]
_Evaluator = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar='NAME', help='What judges; default: the evaluator of the tool.'),
]


def try_(
    config: _Config,
    tool: _Tool,
    image: _Images = None,
    arg: _Arguments = None,
    state: _States = None,
    evaluator: _Evaluator = None,
    as_json: JsonOption = False,
) -> None:
    """Judge still pictures, show what was sent and the verdict, and exit with its code.

    Needs neither a robot nor a node; ROS 2 only for an evaluator of kind `service`. Nothing is put
    on record.
    """
    loaded = _loaded(config)
    name = _evaluator_of(loaded, tool, evaluator)
    arguments = _arguments(loaded, tool, _pairs('--arg', arg))
    paths = _complete('view', '--image', 'FILE', loaded.views_of(tool), _pairs('--image', image))
    states = _complete(
        'state', '--state', 'NUMBER', loaded.states_of(tool), _pairs('--state', state)
    )
    stills = {view: _still(view, path) for view, path in paths.items()}
    readings = {reading: _reading(reading, text) for reading, text in states.items()}
    outcome, request = _judged(loaded, name, tool, arguments, stills, readings)
    code = code_of_state(outcome.state.value)
    if as_json:
        sent = _sent_json(request, stills) if request is not None else None
        print_json({'sent': sent, **outcome_json(outcome)})
    else:
        print_screen(*_parts(name, tool, outcome, request, stills))
    raise typer.Exit(code)


# --- what is asked for ------------------------------------------------------------------------


def _loaded(path: Path) -> Config:
    try:
        return load_config(path)
    except ConfigError as error:
        for problem in error.problems:
            typer.echo(str(problem), err=True)
        raise typer.Exit(USAGE) from None


def _evaluator_of(config: Config, tool: str, chosen: str | None) -> str:
    required = config.evaluation.required_tools
    if tool not in required:
        refuse(
            f'--tool {plain(tool, 80)!r} is not one of required_tools: '
            f'{", ".join(required) or "none"}'
        )
    known = config.evaluation.evaluators
    name = config.evaluator_of(tool) if chosen is None else chosen
    if name not in known:
        refuse(f'--evaluator {plain(name, 80)!r} is none of {", ".join(known)}')
    return name


def _pairs(option: str, given: Sequence[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition('=')
        if not equals or not name:
            refuse(f'expected {option} NAME=VALUE, found {plain(text, 80)!r}')
        if name in found:
            refuse(f'{option} {plain(name, 80)} is given twice')
        found[name] = value
    return found


def _complete(
    what: str, option: str, meta: str, needed: Sequence[str], given: Mapping[str, str]
) -> dict[str, str]:
    """What was given, in the order of the configuration; neither more nor less than is needed."""
    unknown = [name for name in given if name not in needed]
    if unknown:
        refuse(
            f'the tool is not judged by a {what} {plain(unknown[0], 80)!r}; it needs '
            f'{", ".join(needed) or f"no {what}"}'
        )
    missing = [name for name in needed if name not in given]
    if missing:
        refuse(
            f'the tool is judged by the {what}{"s" if len(missing) > 1 else ""} '
            f'{", ".join(missing)} too; add {" ".join(f"{option} {n}={meta}" for n in missing)}'
        )
    return {name: given[name] for name in needed}


def _arguments(config: Config, tool: str, given: Mapping[str, str]) -> dict[str, str]:
    declared = config.tool(tool).arguments
    for name in given:
        if name not in declared:
            refuse(
                f'the tool has no argument {plain(name, 80)!r}; it has '
                f'{", ".join(declared) or "none"}'
            )
    return dict(given)


def _still(view: str, path: str) -> Still:
    from harness_eval.still import read_still

    try:
        return read_still(Path(path).read_bytes(), Path(path).name)
    except OSError as error:
        refuse(f'--image {view}: cannot read {plain(path, 200)}: {error.strerror or error}')
    except ValueError as error:
        refuse(f'--image {view}: {error}')


def _reading(name: str, text: str) -> Value:
    try:
        values = tuple(float(part) for part in text.split(','))
    except ValueError:
        values = ()
    if not values or any(value != value for value in values):
        refuse(f'--state {name}: expected a number, or several with commas, found {plain(text)!r}')
    return values if len(values) > 1 else values[0]


# --- judging ----------------------------------------------------------------------------------


def _judged(
    config: Config,
    evaluator: str,
    tool: str,
    arguments: Mapping[str, str],
    stills: Mapping[str, Still],
    readings: Mapping[str, Value],
) -> tuple[Outcome, EvaluationRequest | None]:
    from harness_eval.decode import Decoder
    from harness_eval.requests import Requests
    from harness_eval.still import still_observation

    now = time.time_ns()
    completion = Completion(RUN_ID, tool, 0, now, tuple(arguments.items()))
    requests = Requests(config, Decoder())
    request, ref = None, ''
    answer: Verdict | EvaluationError
    try:
        observation = still_observation(config, stills, readings, now)
        request = _question(lambda: requests.question(completion, observation))
        requests.check_usable(observation)
        ref, answer = _ask(config, evaluator, tool, request)
    except EvaluationError as error:
        answer = error
    outcome = outcome_of(
        answer,
        Segment(completion, order=0, receipt=now),
        decided_at=time.time_ns(),
        max_segments=config.evaluation.max_segments,
        evaluator=ref,
    )
    return outcome, request


def _question(make: Callable[[], T]) -> T:
    try:
        return make()
    except EvaluationError as error:
        if error.kind in _USAGE_KINDS:
            refuse(f'{error.message}; add --arg NAME=VALUE'.replace(_ADVICE, ''))
        raise


_ADVICE = '; report it with the completion'


def _reports(config: Config, tool: str) -> dict[str, ReportSettings]:
    report = config.tool(tool).report
    return {} if report is None else {tool: report}


def _ask(
    config: Config, name: str, tool: str, request: EvaluationRequest
) -> tuple[str, Verdict | EvaluationError]:
    """Ask as the node does: on a thread of its own, with the deadline of the evaluator."""
    from harness_eval.cli.services import ServicesOfTheShell
    from harness_eval.evaluators import Judges
    from harness_eval.judging import Thresholds
    from harness_eval.reported_calls import ReportedCalls

    evaluation = config.evaluation
    thresholds = Thresholds(evaluation.outcome_threshold, evaluation.failure_threshold)
    answers: queue.SimpleQueue[Verdict | EvaluationError] = queue.SimpleQueue()
    with ServicesOfTheShell() as services:
        judge = Judges(evaluation.evaluators, thresholds, services).calls(name)
        services.start()
        try:
            ReportedCalls(_reports(config, tool)).call(tool, judge, request, answers.put)
            return judge.evaluator, answers.get()
        finally:
            judge.close()


# --- what is shown ----------------------------------------------------------------------------


def _parts(
    evaluator: str,
    tool: str,
    outcome: Outcome,
    request: EvaluationRequest | None,
    stills: Mapping[str, Still],
) -> Iterator[RenderableType]:
    rows: list[tuple[str, RenderableType]] = [('tool', plain(tool)), ('judge', plain(evaluator))]
    if request is not None:
        rows += list(_sent_rows(request, stills))
    yield fields(rows)
    yield Text('')
    yield fields([('state', state_text(outcome.state.value)), *outcome_rows(outcome)])


def _sent_rows(
    request: EvaluationRequest, stills: Mapping[str, Still]
) -> Iterator[tuple[str, RenderableType]]:
    asked, seen = request.post_condition, request.observation
    if asked.text:
        yield 'text', plain(asked.text)
    if asked.checks:
        yield 'checks', str(len(asked.checks))
    if asked.rubric is not None:
        count = len(asked.rubric.criteria)
        yield 'rubric', f'{count} criteria' if count else 'free text'
    for output in asked.report:
        yield 'report', plain(f'{output.key} ({output.type}): {output.title}')
    for name in seen.views:
        yield 'view', plain(f'{name}: {stills[name].description}')
    for name, state in seen.states.items():
        yield 'state', f'{name}: {_number(state.value)}'
    for name, picture in asked.references.items():
        yield 'reference', plain(f'{name}: {picture.shape[1]}x{picture.shape[0]}')
    if asked.process_allowed:
        yield 'segments', 'process is an allowed answer'


def _number(value: Value) -> str:
    return ', '.join(f'{number:g}' for number in (value if isinstance(value, tuple) else (value,)))


def _sent_json(request: EvaluationRequest, stills: Mapping[str, Still]) -> dict[str, Any]:
    asked, seen = request.post_condition, request.observation
    return {
        'post_condition': asked.text,
        'checks': len(asked.checks),
        'rubric': None if asked.rubric is None else asked.rubric.digest,
        'report': [output.key for output in asked.report],
        'failure_kinds': list(asked.failure_kinds),
        'process_allowed': asked.process_allowed,
        'views': {
            name: {
                'width': int(stills[name].picture.shape[1]),
                'height': int(stills[name].picture.shape[0]),
                'file': stills[name].origin,
            }
            for name in seen.views
        },
        'states': {name: _plain_number(state.value) for name, state in seen.states.items()},
        'references': sorted(asked.references),
    }


def _plain_number(value: Value) -> Any:
    """Numbers for JSON, which has none that are not finite."""
    if isinstance(value, tuple):
        return [_plain_number(one) for one in value]
    return value if abs(value) != float('inf') else str(value)
