"""Lines of evidence: foreign text made safe to show, and measured values beside their bounds."""

from __future__ import annotations

import unicodedata

MAX_EVIDENCE_LINES = 64
"""Lines of evidence kept; more would drown the reader and swell every message and row."""

MAX_LINE = 500
"""Characters of one line of evidence."""

CUT = ' … (cut)'
"""Mark at the end of a text that was too long."""

_BIDIRECTIONAL = frozenset(
    '\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069'
)
"""They would let a text show in another order than it is written in."""


def clean_line(text: str, limit: int = MAX_LINE) -> str:
    """Make one bounded line of a text: no control, line-break or direction characters.

    Args:
        text: Any text; lone surrogates, which no encoding takes, are removed as well.
        limit: Most characters kept, the mark of a cut included.
    """
    # A text of megabytes is not looked at to its end: nothing beyond the limit would be kept.
    cut = len(text) > 4 * limit
    kept = []
    for character in text[: 4 * limit]:
        category = unicodedata.category(character)
        if category in ('Zl', 'Zp') or character in '\n\r\t':
            kept.append(' ')
        elif category not in ('Cc', 'Cs') and character not in _BIDIRECTIONAL:
            kept.append(character)
    line = ' '.join(''.join(kept).split())
    if cut or len(line) > limit:
        line = line[: limit - len(CUT)].rstrip() + CUT
    return line


def clean_evidence(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Bound the number and the length of evidence lines; empty ones are dropped."""
    cleaned = tuple(line for line in map(clean_line, lines[: 4 * MAX_EVIDENCE_LINES]) if line)
    if len(cleaned) <= MAX_EVIDENCE_LINES and len(lines) <= 4 * MAX_EVIDENCE_LINES:
        return cleaned
    left_out = len(lines) - (MAX_EVIDENCE_LINES - 1)
    return (*cleaned[: MAX_EVIDENCE_LINES - 1], f'… ({left_out} more lines were cut)')


def show(value: float, *bounds: float) -> str:
    """Write a measured value with as many digits as it takes to tell it from its bounds.

    Four significant digits are read best, but ``0.49999`` must not stand there as ``0.5`` beside
    a bound of ``0.5`` that it misses.
    """
    text = f'{value:.4g}'
    if any(value != bound and float(text) == bound for bound in bounds):
        return repr(float(value))
    return text
