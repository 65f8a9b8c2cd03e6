"""The command ``harness-eval``: one verb a file, and nothing imported before its verb is called.

Exit codes are those of :mod:`harness_eval.cli.exit_codes`. Nothing but a verdict may end with 0,
1 or 3 where a run is reported; that is why a fault of the command itself and Ctrl-C, which
Python and the libraries below would let end with 1, are given codes of their own here.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import importlib
import io
import keyword
import os
from pathlib import Path
import sys
import traceback
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from harness_eval.cli.exit_codes import BROKEN, CLOSED_PIPE, INTERRUPTED_BY_USER, OK

VERBS = {
    'check-config': 'Check a configuration file; tell each problem with file, line and key.',
    'doctor': 'Measure the cameras and check the judges of a cell; say what will fail.',
    'try': 'Have still pictures judged, without a robot.',
    'label': 'Note within cases what really happened, so that it travels with them.',
    'score': 'Say how well the judges judged, as far as the truth is known.',
    'calibrate': 'Choose the threshold that bounds false successes, from labelled results.',
    'replay': 'Judge bags and cases again.',
    'compare': 'Compare two configurations on the same runs: promote, hold or reject.',
    'wait': 'Wait for the outcome of a run and exit with its code.',
    'runs': 'List the newest runs on record.',
    'show': 'Show everything that is on record about a run.',
    'judge': 'Judge a run again that ended in an error or an abstention.',
    'interrupt': 'Stop the evaluation of a run, or have it never begin.',
}
"""Every verb and what ``--help`` says of it, without importing it."""


class _Verbs(TyperGroup):
    """Imports a verb only when it is called, so that ``--help`` is quick."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, summary in VERBS.items():
            self.commands[name] = TyperCommand(name, help=summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Put the real verb in the place of its summary."""
        if args and args[0] in VERBS:
            self.commands[args[0]] = _load(args[0])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; neither Ctrl-C nor a reader that went away is a failure of a run."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED_BY_USER) from None
        except BrokenPipeError:
            from harness_eval.cli.screen import forget_closed_pipes

            forget_closed_pipes()
            raise typer.Exit(CLOSED_PIPE) from None
        except (EOFError, typer.Abort):
            raise typer.Exit(BROKEN) from None


def _load(name: str) -> Any:
    function = name.replace('-', '_')
    if keyword.iskeyword(function):
        function += '_'
    verb = _with_annotations(
        getattr(importlib.import_module(f'harness_eval.cli.{function}'), function)
    )
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name)(verb)
    return typer.main.get_command(single)


def _with_annotations(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its annotations worked out, which typer 0.9 (of Ubuntu) does not do."""
    function.__annotations__ = get_type_hints(function, include_extras=True)
    return function


_HELP = """Tell what became of the runs of a robot's tools.

\b
Exit codes of wait, show, judge and try:
  0 success   1 failure   2 bad usage   3 process   4 evaluation error
  5 abstained   6 interrupted   124 no outcome (in time)
"""

app = typer.Typer(
    help=_HELP,
    cls=_Verbs,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={'help_option_names': ['-h', '--help']},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from harness_eval import __version__

        typer.echo(f'harness_eval {__version__}')
        raise typer.Exit(OK)


@app.callback()
@_with_annotations
def harness_eval(
    version: Annotated[
        bool,
        typer.Option(
            '--version', help='Print the version.', callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take the options that come before the verb."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: What follows the name of the command; None: those of this process.

    Returns:
        The exit code.
    """
    _prepare_streams()
    try:
        app(arguments, prog_name='harness-eval')
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else BROKEN
    except KeyboardInterrupt:
        return INTERRUPTED_BY_USER
    except Exception as fault:
        _tell_fault(fault)
    return BROKEN  # a verb without an exit code has come to nothing


def _prepare_streams() -> None:
    """Let nobody's missing or narrow terminal become a fault of the command."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open('w')  # noqa: SIM115 - it lives as long as we do
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open('w')  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors='backslashreplace')


def _tell_fault(fault: BaseException) -> None:
    from harness_eval.lines import describe

    what = describe(fault)
    with contextlib.suppress(OSError):
        typer.echo(f'harness-eval is broken, this says nothing of the run: {what}', err=True)
        if os.environ.get('HARNESS_EVAL_TRACEBACK'):
            traceback.print_exception(type(fault), fault, fault.__traceback__)
