"""``harness-eval check-config``: tell what is wrong with a configuration, or what is in it."""

from __future__ import annotations

from collections.abc import Iterator
import json
from pathlib import Path
from typing import Annotated, Optional

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
import typer

from harness_eval.cli.configured import loaded
from harness_eval.cli.exit_codes import USAGE
from harness_eval.cli.plugin_refs import missing_plugins
from harness_eval.config import Config, json_schema
from harness_eval.config.placeholders import placeholders

# typer reads these at run time, on Python 3.10 too.
_File = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Argument(metavar='FILE', help='The YAML file.', show_default=False),
]
_Schema = Annotated[
    bool, typer.Option('--schema', help='Print the JSON Schema of the file, for editors.')
]


_Import = Annotated[
    bool,
    typer.Option('--import', help='Import the plugins too; one that cannot be is an error.'),
]


def check_config(
    file: _File = None, schema: _Schema = False, import_plugins: _Import = False
) -> None:
    """Check a configuration file; each problem is told with file, line and key."""
    if schema:
        typer.echo(json.dumps(json_schema(), indent=2))
        return
    if file is None:
        typer.echo('expected a FILE to check, or --schema; found neither', err=True)
        raise typer.Exit(USAGE)
    config = loaded(file)
    missing = list(missing_plugins(config, run=import_plugins))
    for line in missing:
        typer.echo(f'{file.name}: {line}' if import_plugins else f'note: {line}', err=True)
    if missing and import_plugins:
        raise typer.Exit(USAGE)
    print_summary(config, file.name, Console(soft_wrap=False))


def print_summary(config: Config, name: str, console: Console) -> None:
    """Print what a configuration holds, for a human; readable without colour.

    Args:
        config: A loaded configuration.
        name: Base name of its file.
        console: Where to print.
    """
    console.print(f'[green]ok[/green] {escape(name)}')
    console.print(_tools(config))
    console.print(_list('evaluators', _evaluators(config)))
    console.print(_list('views', _views(config)))
    console.print(_list('states', _states(config)))
    console.print(_list('completions', _completions(config)))
    graph = config.scene_graph
    console.print(f'scene graph  {graph.mode}, order {graph.order}, hold {graph.hold_timeout:g} s')
    for note in notes(config):
        console.print(f'[yellow]note[/yellow] {escape(note)}')


def notes(config: Config) -> Iterator[str]:
    """Give what is allowed and seldom meant."""
    required = config.evaluation.required_tools
    if not required:
        yield 'no tool is required, so nothing is judged'
    if config.scene_graph.mode == 'observe':
        yield 'mode observe: every scene-graph update passes, whatever the verdict'
    unused = [name for name in config.evaluation.post_conditions if name not in required]
    if unused:
        yield f'post-conditions of tools that are not required: {", ".join(unused)}'
    for source in config.completions:
        tool = source.tool if source.action is not None else source.tool_name
        if tool is not None and tool not in required:
            yield f'completions of {tool} are ignored, since it is not a required tool'


def _tools(config: Config) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ('tool', 'evaluator', 'judged by', 'looks at', 'arguments'):
        table.add_column(heading, overflow='fold')
    for name, settings in config.evaluation.tools.items():
        judged = ['sentence'] if settings.post_condition else []
        if settings.checks:
            plural = '' if len(settings.checks) == 1 else 's'
            judged.append(f'{len(settings.checks)} check{plural}')
        arguments = list(settings.arguments)
        if settings.post_condition:
            used = placeholders(settings.post_condition)
            arguments = [f'{{{item}}}' if item in used else item for item in arguments]
        segments = ' (segments)' if name in config.evaluation.segment_tools else ''
        table.add_row(
            escape(name + segments),
            escape(config.evaluator_of(name)),
            ', '.join(judged),
            _observed(config, name),
            escape(' '.join(arguments)) or '-',
        )
    return table


def _observed(config: Config, tool: str) -> str:
    if config.tool(tool).views is None:
        return 'everything'
    return escape(', '.join([*config.views_of(tool), *config.states_of(tool)]))


def _list(heading: str, lines: Iterator[str]) -> str:
    found = list(lines)
    if not found:
        return f'{heading:<12} none'
    return '\n'.join(
        f'{heading if index == 0 else "":<12} {escape(line)}' for index, line in enumerate(found)
    )


def _evaluators(config: Config) -> Iterator[str]:
    for name, settings in config.evaluation.evaluators.items():
        target = f' {settings.target}' if settings.target else ''
        yield f'{name}: {settings.kind}{target}, {settings.timeout:g} s'


def _views(config: Config) -> Iterator[str]:
    for name, view in config.capture.views.items():
        kind = view.message_type.rpartition('/')[2]
        extra = ''.join(
            f', {word}'
            for word, given in (('camera_info', view.camera_info), ('usable', view.usable))
            if given is not None
        )
        yield f'{name}: {view.topic} ({kind}{extra})'


def _states(config: Config) -> Iterator[str]:
    for name, state in config.capture.states.items():
        reduced = f', {state.reduce}' if state.reduce else ''
        yield f'{name}: {state.topic} {state.field}{reduced}'


def _completions(config: Config) -> Iterator[str]:
    for source in config.completions:
        if source.action is not None:
            yield f'end of the goals of {source.action}, as {source.tool}'
        else:
            yield f'{source.topic} ({source.type.rpartition("/")[2]})'
