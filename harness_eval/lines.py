"""Foreign text made safe to show, on one line, and measured values beside their bounds.

What the cleaners do with characters that nobody sees, with white space and with length:

=================== ============================ =====================================
function            for                          what becomes of the text
=================== ============================ =====================================
:func:`clean_line`  what somebody wrote: reasons Control characters, lone surrogates and
                    and evidence                 bidirectional ones go; white space of any
                                                 kind becomes one space; cut at the limit
                                                 with :data:`CUT`. Joiners stay, since
                                                 words of some scripts need them.
:func:`printable`   what something is called:    Each character of :data:`INVISIBLE` is
                    names, ids, topics           shown as U+FFFD, so that two names that
                                                 differ do not look alike; spaces stay;
                                                 cut at the limit with "…".
:func:`visible`     what is put into a question: Each character of :data:`INVISIBLE` goes,
                    arguments of tools           nothing else changes, nothing is cut.
                                                 Digests depend on it.
=================== ============================ =====================================

None of them takes paths or secrets out; :func:`redact` does that, and :func:`describe` for
exceptions.
"""

from __future__ import annotations

from collections.abc import Callable
import os
from pathlib import Path
import posixpath
import re
import unicodedata

MAX_EVIDENCE_LINES = 64
"""Lines of evidence kept; more would drown the reader and swell every message and row."""

MAX_LINE = 500
"""Characters of one line of evidence."""

CUT = ' … (cut)'
"""Mark at the end of a text that was too long."""

INVISIBLE = frozenset({'Cc', 'Cf', 'Cs', 'Zl', 'Zp'})
"""Unicode categories that nobody sees or that move text about: control characters (C0 and C1),
format characters (bidirectional ones, zero-width ones, tags), lone surrogates, line and paragraph
separators."""

_FOLDERS = frozenset(
    ('home', 'root', 'tmp', 'usr', 'var', 'etc', 'opt', 'mnt', 'media', 'srv', 'Users')
)
"""First folders of paths that may come from another machine; of this one every folder counts."""

_SEGMENT = r'[^\s/\'"`:,;<>()|?]+'

_PRIVATE = re.compile(
    r'(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]{0,19}://)(?P<rest>[^\s\'"<>`]*)'
    # In quotes a path ends with them, and may hold anything.
    r'|(?<=[\'"`])(?P<quoted>/[^\'"`\n]+)(?=[\'"`])'
    # Elsewhere it may hold spaces too: it goes on as long as a few words lead to another slash.
    rf'|(?<![\w/.~*])(?P<path>/{_SEGMENT}(?:(?: {_SEGMENT}){{0,4}}/{_SEGMENT})+/?)'
    r'|(?P<name>[?&][\w.-]{1,60}=)[^\s&\'"]+'
    r'|(?P<bearer>\b[Bb]earer )[^\s\'"]+'
)

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


def printable(text: str, limit: int) -> str:
    """Show a name on one line, at most ``limit`` characters, whatever is in it."""
    shown = ''.join(
        '\N{REPLACEMENT CHARACTER}' if unicodedata.category(character) in INVISIBLE else character
        for character in text[: limit + 1]
    )
    return shown if len(shown) <= limit else shown[: limit - 1] + '\N{HORIZONTAL ELLIPSIS}'


def visible(text: str) -> str:
    """Take the characters that nobody sees out of a text, line breaks among them."""
    return ''.join(
        character for character in text if unicodedata.category(character) not in INVISIBLE
    )


def clean_evidence(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Bound the number and the length of evidence lines; empty ones are dropped."""
    cleaned = tuple(line for line in map(clean_line, lines[: 4 * MAX_EVIDENCE_LINES]) if line)
    if len(cleaned) <= MAX_EVIDENCE_LINES and len(lines) <= 4 * MAX_EVIDENCE_LINES:
        return cleaned
    left_out = len(lines) - (MAX_EVIDENCE_LINES - 1)
    return (*cleaned[: MAX_EVIDENCE_LINES - 1], f'… ({left_out} more lines were cut)')


def redact(text: str) -> str:
    """Take out of a text what must not leave this machine.

    Absolute paths are reduced to their last part; of URLs the user name, the password and the
    query are left out, and so are the values of a query and a bearer token that stand alone. A
    name of a topic (``/cell/front``) stays, since its first part is no folder.
    """
    return _PRIVATE.sub(_public, text)


def redact_plain(value: object) -> object:
    """Redact every text in plain JSON values, the keys of objects included."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(str(key)): redact_plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact_plain(item) for item in value]
    return value


def describe(error: BaseException) -> str:
    """Write an exception as ``TypeName: text``, at most 500 characters on one line.

    The line may be stored and published: it is redacted, and no line of a traceback is in it.
    Nothing that an exception does when it is read gets out of here.
    """
    name = _read(lambda: str(type.__getattribute__(type(error), '__name__')), 'an exception')
    if isinstance(error, OSError):
        text = _read(lambda: _text_of_os_error(error), _UNREADABLE)
    else:
        text = _read(lambda: str.__str__(str(error)), _UNREADABLE)
    # Cut before it is looked through: a text may have megabytes.
    return clean_line(redact(f'{name}: {text[: 4 * MAX_LINE]}' if text else name))


_UNREADABLE = '(its text cannot be read)'


def _read(step: Callable[[], str], otherwise: str) -> str:
    try:
        return step()
    except BaseException:  # a class of somebody else's may raise anything when it is read
        return otherwise


def _text_of_os_error(error: OSError) -> str:
    """Write the error with base names: its own text holds paths of any form, relative ones too."""
    names = [
        posixpath.basename(os.fsdecode(name)) or '/'
        for name in (error.filename, error.filename2)
        if isinstance(name, (str, bytes))
    ]
    if not names or not error.strerror:
        return str(error)
    return f'[Errno {error.errno}] {error.strerror}: {" -> ".join(map(repr, names))}'


def _public(match: re.Match[str]) -> str:
    found = match.groupdict()
    if found['scheme'] is not None:
        return found['scheme'] + _public_address(found['rest'])
    if found['name'] is not None:
        return f'{found["name"]}…'
    if found['bearer'] is not None:
        return f'{found["bearer"]}…'
    path: str = found['quoted'] if found['path'] is None else found['path']
    return _base_name(path)


def _public_address(rest: str) -> str:
    place, question, _ = rest.partition('?')
    authority, slash, path = place.partition('/')
    if not authority and slash:  # sqlite:///… and file:///… name a file
        path = posixpath.basename(path.rstrip('/'))
    host = authority.rpartition('@')[2]
    return f'{host}{slash}{path}{question}{"…" if question else ""}'


def _base_name(path: str) -> str:
    first = path.split('/', 2)[1]
    if first not in _FOLDERS and not _is_folder(first):
        return path
    return posixpath.basename(path.rstrip('/')) or path


def _is_folder(name: str) -> bool:
    try:
        return Path('/', name).is_dir()
    except (OSError, ValueError):  # too long a name, a null character
        return False


def show(value: float, *bounds: float) -> str:
    """Write a measured value with as many digits as it takes to tell it from its bounds.

    Four significant digits are read best, but ``0.49999`` must not stand there as ``0.5`` beside
    a bound of ``0.5`` that it misses.
    """
    text = f'{value:.4g}'
    if any(value != bound and float(text) == bound for bound in bounds):
        return repr(float(value))
    return text
