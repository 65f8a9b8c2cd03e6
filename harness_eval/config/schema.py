"""The JSON Schema of the configuration file, so that editors complete and check it.

It says what one file may hold. What takes several pieces (a check that names a view) is beyond a
schema and is told by :func:`harness_eval.config.loader.load_config`.
"""

from __future__ import annotations

from collections.abc import Iterator
import inspect
import re
from typing import Any

from pydantic import BaseModel

from harness_eval.config.base import Settings, Text
from harness_eval.config.models import Config

DRAFT = 'https://json-schema.org/draft/2020-12/schema'

_ENTRY = re.compile(r'(?P<name>[a-z_]+): (?P<text>.*)')


class ConfigFile(Config):
    """Configuration of harness_eval: what is judged, by what, and on which evidence.

    Attributes:
        include: Files whose ``evaluation`` is merged in: paths relative to this file, or
            ``package://package/path`` in the share folder of a ROS 2 package.
        evaluation: Which tools are judged, by what, and what must hold after them.
        capture: Which cameras and readings form an observation, and when.
        completions: How the node learns that a run ended, besides its own action.
        scene_graph: How updates of the scene graph are held and released.
        evidence: What is kept of what was seen.
    """

    include: tuple[Text, ...] = ()


def json_schema() -> dict[str, Any]:
    """Make the schema (draft 2020-12) of a configuration file.

    Every key has a description. Nothing of it refers to a network address that an editor would
    have to fetch, other than the name of the draft.
    """
    schema = ConfigFile.model_json_schema()
    _describe(ConfigFile, schema)
    for model in _models(Settings):
        definition = schema.get('$defs', {}).get(model.__name__)
        if definition is not None:
            _describe(model, definition)
    _allow_shorthands(schema['$defs'])
    _tidy(schema)
    return {'$schema': DRAFT, 'title': 'harness_eval configuration', **schema}


def attribute_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Read the ``Attributes`` of a class's docstring and of its bases', by attribute."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            found |= _own_descriptions(base)
    return found


def _own_descriptions(model: type[BaseModel]) -> dict[str, str]:
    text = inspect.cleandoc(model.__doc__ or '')
    _, _, section = text.partition('Attributes:\n')
    found: dict[str, str] = {}
    name = ''
    for line in section.splitlines():
        entry = _ENTRY.match(line.strip()) if re.match(r' {4}\S', line) else None
        if entry:
            name = entry['name']
            found[name] = entry['text']
        elif name and line.strip():
            found[name] += ' ' + line.strip()
    return {key: value.replace('``', '`') for key, value in found.items()}


def _describe(model: type[BaseModel], definition: dict[str, Any]) -> None:
    definition['description'] = inspect.cleandoc(model.__doc__ or '').partition('\n')[0]
    descriptions = attribute_descriptions(model)
    for name, settings in definition['properties'].items():
        settings['description'] = descriptions[name]


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


def _allow_shorthands(definitions: dict[str, Any]) -> None:
    """Add what a tool may write in place of a mapping with one key."""
    for key, long in (('rubric', 'text'), ('report', 'outputs'), ('metric', 'name')):
        described = definitions['ToolSettings']['properties'][key]
        settings = definitions[described['anyOf'][0]['$ref'].rpartition('/')[2]]
        short = settings['properties'][long]
        described['anyOf'].insert(0, short.get('anyOf', [short])[0])


def _tidy(node: Any) -> None:
    """Drop the titles that pydantic makes up, and close mappings whose keys have a pattern."""
    if isinstance(node, dict):
        if 'patternProperties' in node:
            node['additionalProperties'] = False
        if isinstance(node.get('title'), str):
            del node['title']
        for value in node.values():
            _tidy(value)
    elif isinstance(node, list):
        for value in node:
            _tidy(value)
