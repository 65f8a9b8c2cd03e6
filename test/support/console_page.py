"""Console sessions in a Markdown page: what is typed, and what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
import re
import subprocess

NOT_RUN = '<!-- not run'
ANYTHING = '...'
_MARK = '---8<--- command {} ---'


@dataclass
class Command:
    """A command of a page, with what the page shows of its output.

    Attributes:
        text: What is typed, of several lines perhaps.
        shown: Lines of output; ``...`` alone stands for any number of lines, within a line and at
            its end for anything.
        line: Where it stands in the page, from 1.
    """

    text: str
    shown: list[str] = field(default_factory=list)
    line: int = 0


def commands_of(page: Path) -> list[Command]:
    """The commands of the ``console`` blocks of a page, but for those marked as not to be run."""
    commands: list[Command] = []
    inside, before = False, ''
    for number, line in enumerate(page.read_text('utf-8').splitlines(), start=1):
        if line.startswith('```'):
            inside = not inside and line == '```console' and not before.startswith(NOT_RUN)
        elif inside and line.startswith('$ '):
            commands.append(Command(line[2:], line=number))
        elif inside and line.startswith('>') and not commands[-1].shown:
            commands[-1].text += '\n' + line[2:]
        elif inside:
            commands[-1].shown.append(line)
        if line:
            before = line
    return commands


def run_all(commands: Sequence[Command], folder: Path, environment: dict[str, str]) -> list[str]:
    """Type the commands one after the other into one shell.

    Returns:
        What each wrote, standard output and error together.
    """
    script = []
    for number, command in enumerate(commands):
        # ``$?`` must be that of the command before.
        script.append(f'code=$?; echo "{_MARK.format(number)}"; (exit $code)\n{command.text}\n')
    done = subprocess.run(
        ['bash'],
        input=''.join(script),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return re.split(r'---8<--- command \d+ ---\n', done.stdout)[1:]


def is_shown(shown: Sequence[str], written: str) -> bool:
    """Whether an output is what a page shows of it."""
    pattern = ''
    for line in shown:
        if line == ANYTHING:
            pattern += r'(?:.*\n)*?'
        else:
            pattern += re.escape(line.rstrip()).replace(re.escape(ANYTHING), '.*') + r' *\n'
    return re.fullmatch(pattern, written) is not None
