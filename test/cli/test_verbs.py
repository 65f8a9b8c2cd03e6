"""What holds for every verb."""

from __future__ import annotations

import importlib
import keyword

import pytest

from harness_eval import cli
from harness_eval.cli import VERBS


@pytest.mark.parametrize('verb', VERBS)
def test_annotations_are_worked_out_for_old_versions_of_typer(verb: str) -> None:
    """Typer 0.9 takes options for arguments where an annotation is still a text."""
    cli._load(verb)
    name = verb.replace('-', '_')
    module = importlib.import_module(
        f'harness_eval.cli.{name}_' if keyword.iskeyword(name) else f'harness_eval.cli.{name}'
    )
    function = getattr(module, f'{name}_' if keyword.iskeyword(name) else name)
    found = function.__annotations__
    assert found
    assert not [key for key, one in found.items() if isinstance(one, str)]
