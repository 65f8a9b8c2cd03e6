"""Text as OpenCV can draw it: plain characters, measured, broken and cut to a width in pixels."""

from __future__ import annotations

import unicodedata

from harness_eval.contract import Image

_LONGEST_TEXT = 1000

_FOLDED = str.maketrans(
    {
        0x2013: '-',  # dashes
        0x2014: '-',
        0x2212: '-',  # minus
        0x2265: '>=',
        0x2264: '<=',
        0x2260: '!=',
        0x00B1: '+-',
        0x00B0: ' deg',
        0x00D7: 'x',  # multiplied by
        0x2192: '->',
        0x2190: '<-',
        0x2018: "'",  # quotation marks
        0x2019: "'",
        0x201C: '"',
        0x201D: '"',
        0x00DF: 'ss',
        0x00E6: 'ae',
        0x00F8: 'o',
        0x2022: '*',  # bullet
        0x00B5: 'u',  # micro
        0x03BC: 'u',
    }
)


def ascii_fold(text: str) -> str:
    """Write a text with the characters that OpenCV can draw; others become ``?``."""
    plain = text.translate(_FOLDED)
    letters = [
        char for char in unicodedata.normalize('NFKD', plain) if not unicodedata.combining(char)
    ]
    return ''.join(
        char if ' ' <= char <= '~' else ' ' if char.isspace() else '?' for char in letters
    )


def wrapped(text: str, width: int, scale: float) -> list[str]:
    """Break a text into lines of at most so many pixels."""
    lines = ['']
    for word in ascii_fold(text)[:_LONGEST_TEXT].split():
        longer = f'{lines[-1]} {word}' if lines[-1] else word
        if text_width(longer, scale) <= width:
            lines[-1] = longer
            continue
        if lines[-1]:
            lines.append('')
        # A word that is wider than the line is broken where it must be.
        for char in word:
            if lines[-1] and text_width(lines[-1] + char, scale) > width:
                lines.append('')
            lines[-1] += char
    return lines


def shortened(text: str, width: int, scale: float) -> str:
    """Cut a text that is wider than so many pixels, with three dots at its end."""
    plain = ascii_fold(text)[:300]
    if text_width(plain, scale) <= width:
        return plain
    while plain and text_width(f'{plain}...', scale) > width:
        plain = plain[:-1]
    return f'{plain}...' if plain else ''


def text_width(text: str, scale: float, thickness: int = 1) -> int:
    """Pixels that a text is wide."""
    import cv2

    return int(cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, scale, thickness)[0][0])


def write(
    image: Image,
    text: str,
    origin: tuple[int, int],
    scale: float,
    color: tuple[int, int, int],
    thickness: int = 1,
) -> None:
    """Write a text into a picture; ``origin`` is its lower left corner, ``color`` is BGR."""
    import cv2

    cv2.putText(
        image, text, origin, cv2.FONT_HERSHEY_SIMPLEX, scale, color, thickness, cv2.LINE_AA
    )
