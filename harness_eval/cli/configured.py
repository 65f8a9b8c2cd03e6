"""The configuration that a verb is given, or the end of the command."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import typer

from harness_eval.cli.exit_codes import USAGE
from harness_eval.config import Config, ConfigError, load_config


def loaded(path: Path) -> Config:
    """Load a configuration file; if it cannot be used, say each problem and exit with 2."""
    try:
        return load_config(path)
    except ConfigError as error:
        refuse_configuration(error)


def refuse_configuration(error: ConfigError) -> NoReturn:
    """Say each problem of a configuration that cannot be used, and exit with 2."""
    for problem in error.problems:
        typer.echo(str(problem), err=True)
    raise typer.Exit(USAGE) from None
