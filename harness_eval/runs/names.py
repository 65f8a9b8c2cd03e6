"""What a name may be, and how a text from outside is shown on one line."""

from __future__ import annotations

import unicodedata

MAX_ID_LENGTH = 256
"""Most characters of a run id or an update id; longer ones are mistakes, not names."""
UNPRINTABLE = frozenset({'Cc', 'Cs', 'Cf', 'Zl', 'Zp'})
"""Unicode categories that have no place in a line of a log, nor in a name: nobody sees them."""


def id_problem(name: str) -> str:
    """What is wrong with a run id or an update id, to follow "has a run id"; or nothing."""
    if len(name) > MAX_ID_LENGTH:
        return f'of {len(name)} characters; at most {MAX_ID_LENGTH} are taken'
    if any(unicodedata.category(c) in UNPRINTABLE for c in name):
        return f'with control characters or others that nobody sees: {printable(name, 60)!r}'
    return ''


def printable(text: str, limit: int) -> str:
    """The text on one line, control characters replaced, cut to ``limit`` characters."""
    clean = ''.join(
        '\N{REPLACEMENT CHARACTER}' if unicodedata.category(c) in UNPRINTABLE else c
        for c in text[: limit + 1]
    )
    return clean if len(clean) <= limit else clean[: limit - 1] + '\N{HORIZONTAL ELLIPSIS}'
