"""One self-contained HTML page of a replay or of a comparison.

The page asks nothing of any network: styles, script, plots and pictures are inside it, and its
Content-Security-Policy allows nothing else. Foreign texts are escaped by Jinja2; the script runs
by its hash alone, so that not even a mistake here could let a run id become a script.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

from harness_eval.replay.comparison import Comparison
from harness_eval.replay.report.entries import entries, Entry, safe
from harness_eval.replay.report.pictures import (
    Album,
    MAX_BYTES,
    MAX_PICTURES,
    most_important_first,
    Picture,
    read_pictures,
)
from harness_eval.replay.report.plots import plots
from harness_eval.replay.report.tables import gain_table, score_table, Table
from harness_eval.replay.results import count_verdicts, Replayed
from harness_eval.replay.scores import Scores

STATES = ('success', 'failure', 'process', 'error', 'abstained', 'interrupted')
_OPENED = 20
"""Most regressions that are unfolded from the start."""
_LISTED = 20
"""Most regressions that are named at the top."""


@dataclass(frozen=True)
class _Shown(Entry):
    """A run with what the template shows beside it."""

    pictures: tuple[Picture, ...] = ()
    left_out: bool = False

    @property
    def mark(self) -> str:
        """Whether the verdict agrees with the truth, in a word."""
        return {'right': 'right', 'wrong': 'wrong', 'unknown': ''}[self.agreement]


def write_html(
    path: Path,
    replayed: Replayed,
    scores: Scores | None = None,
    comparison: Comparison | None = None,
    *,
    max_pictures: int = MAX_PICTURES,
    max_bytes: int = MAX_BYTES,
) -> None:
    """Write the page.

    Args:
        path: The file to write.
        replayed: The results; those of the candidate if there is a comparison.
        scores: Their numbers; None: the page has none.
        comparison: What came of comparing them with a base.
        max_pictures: Most pictures on the page.
        max_bytes: Most characters that they take together.

    Raises:
        OSError: The file cannot be written.
    """
    text = render(replayed, scores, comparison, max_pictures=max_pictures, max_bytes=max_bytes)
    path.write_text(text, encoding='utf-8')


def render(
    replayed: Replayed,
    scores: Scores | None = None,
    comparison: Comparison | None = None,
    *,
    max_pictures: int = MAX_PICTURES,
    max_bytes: int = MAX_BYTES,
) -> str:
    """The page as a text; see :func:`write_html`."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    found = entries(replayed, comparison)
    ranked = [(entry.rank, entry.case) for entry in found]
    album = read_pictures(most_important_first(ranked), max_pictures, max_bytes)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    script = _resource('page.js')
    return environment.from_string(_resource('page.html')).render(
        policy=_policy(script),
        css=Markup(_resource('page.css')),
        script=Markup(script),
        title=_title(replayed, comparison),
        versions=', '.join(f'{safe(k, 60)} {safe(v, 60)}' for k, v in replayed.versions.items()),
        comparison=None if comparison is None else _decision(comparison, found),
        cards=list(_cards(replayed, found)),
        bar=_bar(replayed),
        tables=list(_tables(replayed, scores, comparison)),
        plots=[
            {'svg': Markup(plot.svg), 'caption': plot.caption}
            for plot in (plots(scores.overall) if scores is not None else ())
        ],
        skipped=[
            {
                'source': safe(one.source, 200),
                'kind': safe(one.kind, 80),
                'message': safe(one.message),
            }
            for one in (replayed.skipped if comparison is None else comparison.skipped)
        ],
        choices=list(_choices(found)),
        entries=[_shown(entry, album) for entry in found],
        opened=_OPENED,
        cut=_cut(album, max_pictures, max_bytes),
        footer='Written by harness-eval. The page holds everything that it shows.',
    )


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding='utf-8')


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _title(replayed: Replayed, comparison: Comparison | None) -> str:
    if comparison is not None:
        names = (
            safe(comparison.base, 100) or 'base',
            safe(comparison.candidate, 100) or 'candidate',
        )
        return f'{names[1]} compared with {names[0]}'
    if replayed.config:
        return f'Replay with {safe(replayed.config, 100)}'
    return 'Outcomes on record'


def _decision(comparison: Comparison, found: Sequence[Entry]) -> dict[str, Any]:
    worse = [(n, one.run) for n, one in enumerate(found, 1) if one.change == 'regression']
    return {
        'decision': comparison.decision.value,
        'reasons': [safe(reason) for reason in comparison.reasons],
        'notes': [safe(note) for note in comparison.notes],
        'regressions': worse[:_LISTED],
        'more': max(0, len(worse) - _LISTED),
    }


def _cards(replayed: Replayed, found: Sequence[Entry]) -> Iterator[dict[str, Any]]:
    """Counts, each a link that filters by it."""
    yield {'count': len(found), 'name': 'segments', 'state': '', 'filter': 'outcome='}
    counts = count_verdicts(replayed.results)
    for state in STATES:
        if counts.get(state):
            yield {
                'count': counts[state],
                'name': state,
                'state': state,
                'filter': f'outcome={state}',
            }
    if any(entry.truth for entry in found):
        for agreement, name in (('right', 'as it really was'), ('wrong', 'against the truth')):
            yield {
                'count': sum(entry.agreement == agreement for entry in found),
                'name': name,
                'state': agreement if agreement == 'wrong' else '',
                'filter': f'agreement={agreement}',
            }


def _bar(replayed: Replayed) -> list[tuple[str, str]]:
    counts = count_verdicts(replayed.results)
    total = sum(counts.values())
    return [(state, f'{100 * counts[state] / total:.2f}') for state in STATES if counts.get(state)]


def _tables(
    replayed: Replayed, scores: Scores | None, comparison: Comparison | None
) -> Iterator[Table]:
    if comparison is not None:
        yield gain_table(comparison)
    if scores is not None and replayed.results:
        of = ' of the candidate' if comparison is not None else ''
        yield score_table(scores, f'Numbers{of}')


def _choices(found: Sequence[Entry]) -> Iterator[dict[str, Any]]:
    """What the runs can be filtered by."""
    compared = any(entry.change for entry in found)
    values = {
        'tool': sorted({entry.tool for entry in found}),
        'outcome': [s for s in STATES if any(entry.side.state == s for entry in found)],
        'agreement': ['right', 'wrong', 'unknown'] if any(entry.truth for entry in found) else [],
        'change': ['regression', 'correction', 'changed', 'same'] if compared else [],
    }
    for name, known in values.items():
        if known:
            yield {'name': name, 'known': known}


def _shown(entry: Entry, album: Album) -> _Shown:
    own = {field.name: getattr(entry, field.name) for field in fields(Entry)}
    pictures = () if entry.case is None else album.pictures.get(entry.case)
    return _Shown(**own, pictures=pictures or (), left_out=pictures is None)


def _cut(album: Album, max_pictures: int, max_bytes: int) -> str:
    if not album.left_out:
        return ''
    return (
        f'The pictures of {album.left_out} cases are left out: a page holds at most '
        f'{max_pictures} pictures and {max_bytes / 1e6:.0f} MB of them. What got worse or is '
        'wrong is shown first.'
    )
