"""Whether what a verb needs beside the package itself is installed."""

from __future__ import annotations

import importlib

from harness_eval.cli.screen import refuse
from harness_eval.lines import describe


def need_statistics() -> None:
    """End the command, with what to do, unless scikit-learn and SciPy can be imported."""
    _need('scikit-learn and SciPy', 'sklearn', 'scipy')


def need_page() -> None:
    """End the command, with what to do, unless what writes a page can be imported."""
    _need('Jinja2, Matplotlib, scikit-learn and SciPy', 'jinja2', 'matplotlib', 'sklearn', 'scipy')


def _need(names: str, *packages: str) -> None:
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError as error:
            refuse(f'this needs {names}: pip install "harness_eval[replay]" ({describe(error)})')
