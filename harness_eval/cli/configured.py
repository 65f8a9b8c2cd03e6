"""The configuration that a verb is given, or the end of the command."""

from __future__ import annotations

from pathlib import Path

import typer

from harness_eval.cli.exit_codes import USAGE
from harness_eval.config import Config, ConfigError, load_config


def loaded(path: Path) -> Config:
    """Load a configuration file; if it cannot be used, say each problem and exit with 2."""
    try:
        return load_config(path)
    except ConfigError as error:
        for problem in error.problems:
            typer.echo(str(problem), err=True)
        raise typer.Exit(USAGE) from None
