"""``harness-eval try``: have still pictures judged by a configured evaluator, without a robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, List, Optional, TYPE_CHECKING  # noqa: UP035

import typer

from harness_eval.cli.configured import loaded
from harness_eval.cli.exit_codes import code_of_state
from harness_eval.cli.outcome_text import outcome_json
from harness_eval.cli.records import JsonOption
from harness_eval.cli.screen import plain, print_json, print_screen, refuse
from harness_eval.cli.trial import judged, Value
from harness_eval.cli.trial_text import sent_json, shown
from harness_eval.config import Config

if TYPE_CHECKING:
    from harness_eval.still import Still

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
    settings = loaded(config)
    name = _evaluator_of(settings, tool, evaluator)
    arguments = _arguments(settings, tool, _pairs('--arg', arg))
    paths = _complete('view', '--image', 'FILE', settings.views_of(tool), _pairs('--image', image))
    states = _complete(
        'state', '--state', 'NUMBER', settings.states_of(tool), _pairs('--state', state)
    )
    stills = {view: _still(view, path) for view, path in paths.items()}
    readings = {reading: _reading(reading, text) for reading, text in states.items()}
    outcome, request = judged(settings, name, tool, arguments, stills, readings)
    code = code_of_state(outcome.state.value)
    if as_json:
        sent = sent_json(request, stills) if request is not None else None
        print_json({'sent': sent, **outcome_json(outcome)})
    else:
        print_screen(*shown(name, tool, outcome, request, stills))
    raise typer.Exit(code)


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
