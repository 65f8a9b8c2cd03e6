"""Placeholders such as ``{target}`` in a post-condition or in a scene-graph operation.

The grammar is a small part of :meth:`str.format`: ``{name}`` stands for an argument, ``{{`` and
``}}`` for a brace. There are no format specifications, attributes or indexes, and what an
argument holds is never looked into again, so an argument cannot bring a placeholder in.
"""

from __future__ import annotations

from collections.abc import Mapping
import re

from harness_eval.contract import EvaluationError
from harness_eval.lines import visible

MAX_ARGUMENT_LENGTH = 200
"""Characters that one argument may have. A longer one is an error: a cut one could mean more."""

_TOKEN = re.compile(r'\{\{|\}\}|\{(?P<name>[^{}]*)\}|(?P<stray>[{}])')
_NAME = re.compile(r'[A-Za-z][A-Za-z0-9_]*\Z')


def placeholders(template: str) -> tuple[str, ...]:
    """List the names of the placeholders of ``template``, each once, in order.

    Raises:
        ValueError: A brace stands alone or holds something else than a name.
    """
    names: dict[str, None] = {}
    for token in _TOKEN.finditer(template):
        name = token['name']
        if token['stray']:
            raise ValueError(
                f'expected {{name}} or a doubled brace, found a single {token["stray"]!r} at '
                f'character {token.start() + 1}; write {token["stray"] * 2} for a brace'
            )
        if name is None:
            continue
        if not _NAME.match(name):
            raise ValueError(
                'expected the bare name of an argument between the braces, found '
                f'{{{name[:40]}}}; there are no format specifications, attributes or indexes'
            )
        names[name] = None
    return tuple(names)


def clean_argument(name: str, value: str) -> str:
    """Bring an argument onto one line, without the characters that nobody sees.

    Args:
        name: Name of the argument, for the error.
        value: What the tool was asked for; at most :data:`MAX_ARGUMENT_LENGTH` characters.

    Raises:
        EvaluationError: ``argument_too_long``; ``missing_argument`` if nothing visible is left.
    """
    if len(value) > MAX_ARGUMENT_LENGTH:
        raise EvaluationError(
            'argument_too_long',
            f'expected at most {MAX_ARGUMENT_LENGTH} characters in the argument {name!r}, '
            f'found {len(value)}; it is not cut, since a part could mean something else',
        )
    kept = visible(value)
    if not kept.strip():
        raise EvaluationError(
            'missing_argument',
            f'expected a text in the argument {name!r}, found nothing that can be seen',
        )
    return kept


def fill_placeholders(template: str, arguments: Mapping[str, str]) -> str:
    """Fill ``arguments`` into ``template``, one line each.

    Args:
        template: A text that :func:`placeholders` accepts.
        arguments: What the tool was asked to do. Those that the template does not name are not
            looked at.

    Returns:
        The text. Control characters (C0, C1, line and paragraph separators, bidirectional and
        other invisible format characters) of the arguments are removed.

    Raises:
        EvaluationError: ``missing_argument`` or ``argument_too_long``, naming the argument.
        ValueError: The template is malformed; one from a loaded configuration never is.
    """
    filled: dict[str, str] = {}
    for name in placeholders(template):
        if name not in arguments:
            raise EvaluationError(
                'missing_argument',
                f'expected the argument {name!r}, which the post-condition or an effect needs, '
                f'found {", ".join(sorted(arguments)[:10]) or "no arguments"}; '
                'report it with the completion',
            )
        filled[name] = clean_argument(name, arguments[name])

    def replacement(token: re.Match[str]) -> str:
        name = token['name']
        return token[0][0] if name is None else filled[name]

    return _TOKEN.sub(replacement, template)
