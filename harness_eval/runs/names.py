"""What a name may be."""

from __future__ import annotations

import unicodedata

from harness_eval.lines import INVISIBLE, printable

MAX_ID_LENGTH = 256
"""Most characters of a run id or an update id; longer ones are mistakes, not names."""


def id_problem(name: str) -> str:
    """What is wrong with a run id or an update id, to follow "has a run id"; or nothing."""
    if len(name) > MAX_ID_LENGTH:
        return f'of {len(name)} characters; at most {MAX_ID_LENGTH} are taken'
    if any(unicodedata.category(character) in INVISIBLE for character in name):
        return f'with control characters or others that nobody sees: {printable(name, 60)!r}'
    return ''
