"""From YAML to validated settings; every error names file, line and key."""

from __future__ import annotations

from typing import Any

from harness_eval.config.errors import ConfigError, Problem
from harness_eval.config.loader import load_config
from harness_eval.config.models import Config
from harness_eval.config.placeholders import fill_placeholders


def json_schema() -> dict[str, Any]:
    """Make the JSON Schema (draft 2020-12) of a configuration file."""
    # Only here: a node that loads a file needs no schema.
    from harness_eval.config.schema import json_schema as make

    return make()


__all__ = [
    'Config',
    'ConfigError',
    'Problem',
    'fill_placeholders',
    'json_schema',
    'load_config',
]
