"""docs/configuration.md names every key that a file may hold, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
import re
from typing import Any

from harness_eval.config import json_schema
from harness_eval.config.sizes import parse_size

PAGE = Path(__file__).parents[2] / 'docs' / 'configuration.md'
NAMED = {
    'tools': '<tool>',
    'evaluators': '<evaluator>',
    'views': '<view>',
    'states': '<state>',
}


def keys_of_schema() -> dict[str, dict[str, Any]]:
    schema = json_schema()

    def keys_of_kind(ref: str) -> set[str]:
        return set(schema['$defs'][ref.rpartition('/')[2]]['properties'])

    def walk(node: dict[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
        if '$ref' in node:
            node = schema['$defs'][node['$ref'].rpartition('/')[2]]
        for alternative in node.get('anyOf', []):
            if prefix.endswith('.report') and alternative.get('type') == 'array':
                continue  # short for its 'outputs'
            yield from walk(alternative, prefix)
        kinds = node.get('discriminator', {}).get('mapping', {})
        shared = set.intersection(*(keys_of_kind(ref) for ref in kinds.values())) if kinds else ()
        for kind, ref in kinds.items():
            for key, value in walk({'$ref': ref}, ''):
                own = '' if key in shared else f'[{kind}]'
                yield f'{prefix}{own}.{key}', value
        for key, value in node.get('properties', {}).items():
            here = f'{prefix}.{key}' if prefix else key
            yield here, {**value, 'needed': key in node.get('required', [])}
            yield from walk(value, here)
        for value in node.get('patternProperties', {}).values():
            if '$ref' in value or 'discriminator' in value:
                yield from walk(value, f'{prefix}.{NAMED[prefix.rpartition(".")[2]]}')
        if isinstance(node.get('items'), dict):
            yield from walk(node['items'], f'{prefix}[]')

    return dict(walk(schema, ''))


def keys_of_page() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    prefix = ''
    for line in PAGE.read_text(encoding='utf-8').splitlines():
        heading = re.match(r'#+ (?:`(?P<prefix>[^`]+)`(?: of the kind `(?P<kind>\w+)`)?)?', line)
        if heading:
            prefix = heading['prefix'] or ''
            if heading['kind']:
                prefix = prefix.replace('<evaluator>', f'<evaluator>[{heading["kind"]}]')
        row = re.match(r'\| `(?P<key>\w+)` \|', line)
        if row:
            cells = [cell.strip() for cell in line.strip('|').split(' | ')]
            found[f'{prefix}.{row["key"]}' if prefix else row['key']] = cells
    return found


def test_every_key_of_the_schema_is_on_the_page_and_no_other() -> None:
    assert sorted(keys_of_page()) == sorted(keys_of_schema())


def test_every_row_gives_type_unit_default_and_meaning() -> None:
    for key, cells in keys_of_page().items():
        assert len(cells) == 5, key
        assert all(cells), key


def test_the_defaults_on_the_page_are_those_of_the_schema() -> None:
    page = keys_of_page()
    compared = 0
    for key, settings in keys_of_schema().items():
        shown = page[key][3].strip('`')
        default = settings.get('default')
        if settings['needed']:
            assert shown == 'required', key
        elif key.rpartition('.')[2].endswith('_bytes'):
            assert parse_size(shown) == default
        elif isinstance(default, bool):
            assert shown == str(default).lower(), key
        elif isinstance(default, (int, float)) or (isinstance(default, str) and default):
            assert shown == str(default), key
        else:
            continue
        compared += 1
    assert compared > 40
