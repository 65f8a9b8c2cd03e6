"""The JSON Schema names, describes and closes everything that a file may hold."""

from __future__ import annotations

from collections.abc import Iterator
import json
from pathlib import Path
import re
from typing import Any

import pytest

from harness_eval.config import json_schema, load_config
from harness_eval.config.document import read_document
from harness_eval.config.markers import DICTIONARY_SIZES
from harness_eval.config.places import Source

EXAMPLE = Path(__file__).parents[2] / 'config' / 'example.yaml'


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from nodes(value)
    elif isinstance(node, list):
        for value in node:
            yield from nodes(value)


def test_the_schema_is_plain_json_of_the_draft_that_editors_know() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert schema['$schema'] == 'https://json-schema.org/draft/2020-12/schema'
    assert set(schema['properties']) == {
        'include',
        'evaluation',
        'capture',
        'completions',
        'scene_graph',
        'evidence',
    }


def test_every_key_is_described_in_words_and_every_mapping_is_closed() -> None:
    schema = json_schema()
    objects = [schema, *schema['$defs'].values()]
    assert len(objects) > 15
    for definition in objects:
        assert definition['description']
        assert definition['additionalProperties'] is False
        for name, settings in definition['properties'].items():
            assert len(settings['description']) > 10, name
            assert '``' not in settings['description'], name


def test_every_reference_within_the_schema_leads_somewhere() -> None:
    schema = json_schema()
    references = {node['$ref'] for node in nodes(schema) if isinstance(node.get('$ref'), str)}
    assert references == {f'#/$defs/{name}' for name in schema['$defs']}


def test_every_pattern_of_the_schema_is_one_that_others_can_compile() -> None:
    patterns = [
        node['pattern'] for node in nodes(json_schema()) if isinstance(node.get('pattern'), str)
    ]
    assert patterns
    for pattern in patterns:
        re.compile(pattern)
        assert '\\Z' not in pattern  # not known to ECMA 262, which the draft asks for


def test_the_dictionaries_that_can_be_completed_are_those_that_are_accepted() -> None:
    marker = json_schema()['$defs']['MarkerCheck']['properties']['dictionary']
    assert set(marker['enum']) == set(DICTIONARY_SIZES)


def test_the_example_is_valid_under_the_schema() -> None:
    jsonschema = pytest.importorskip('jsonschema', reason='jsonschema is not installed')
    data = read_document(EXAMPLE.read_text(), Source('example.yaml', Path())).data
    load_config(EXAMPLE)
    jsonschema.Draft202012Validator(json_schema()).validate(data)
