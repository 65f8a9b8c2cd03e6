"""Small plots of the numbers as SVG that stands inside a page; dark on light."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import io
import re
from typing import Any

from harness_eval.replay.scores import COLUMNS, ToolScores, TRUTHS

_SIZE = (3.5, 2.7)
"""Inches; the page scales it."""
_INK = '#33393f'
_BLUE = '#266cb8'
_GREY = '#9aa3ac'
_STYLE: Any = {
    'axes.edgecolor': _GREY,
    'axes.labelcolor': _INK,
    'axes.labelsize': 9,
    'axes.spines.right': False,
    'axes.spines.top': False,
    'figure.facecolor': 'white',
    'font.family': 'sans-serif',
    'font.size': 9,
    'svg.fonttype': 'none',
    'text.color': _INK,
    'xtick.color': _INK,
    'xtick.labelsize': 8,
    'ytick.color': _INK,
    'ytick.labelsize': 8,
}


@dataclass(frozen=True)
class Plot:
    """A plot.

    Attributes:
        svg: The element ``<svg>``.
        caption: What it shows.
    """

    svg: str
    caption: str


def plots(scores: ToolScores) -> list[Plot]:
    """Draw what there is to draw: nothing without labels.

    Args:
        scores: The numbers over all results.
    """
    found = []
    if any(count for row in scores.confusion.values() for count in row.values()):
        caption = 'What really happened, and what the segments came to.'
        found.append(Plot(_svg('confusion', lambda axes: _confusion(axes, scores)), caption))
    if scores.calibration:
        caption = (
            'Reliability: how often a score was right. On the diagonal a score of 0.8 means that '
            '80 % succeeded; the size of a dot is its share of the segments.'
        )
        found.append(Plot(_svg('reliability', lambda axes: _reliability(axes, scores)), caption))
    if scores.risk:
        caption = (
            'Selective risk: the share of wrong verdicts among the most confident ones, against '
            'how many of them are taken. Low on the left: doubt is a good sign of error.'
        )
        found.append(Plot(_svg('risk', lambda axes: _risk(axes, scores)), caption))
    return found


def _confusion(axes: Any, scores: ToolScores) -> None:
    import numpy as np

    used = [
        column
        for column in COLUMNS
        if column in TRUTHS or any(row[column] for row in scores.confusion.values())
    ]
    counts = np.array([[scores.confusion[truth][column] for column in used] for truth in TRUTHS])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.pcolormesh(shares, cmap='Blues', vmin=0.0, vmax=1.3, edgecolors='white', linewidth=2)
    axes.invert_yaxis()
    for (row, column), count in np.ndenumerate(counts):
        axes.text(
            column + 0.5,
            row + 0.5,
            f'{count}',
            ha='center',
            va='center',
            fontsize=11,
            color='white' if shares[row, column] > 0.8 else _INK,
        )
    axes.set_xticks(np.arange(len(used)) + 0.5, used)
    axes.set_yticks([0.5, 1.5], ['succeeded', 'failed'], rotation=90, va='center')
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel('came to')
    axes.set_ylabel('really')


def _reliability(axes: Any, scores: ToolScores) -> None:
    bins = scores.calibration
    most = max(one.count for one in bins)
    axes.plot([0, 1], [0, 1], color=_GREY, linestyle='--', linewidth=1)
    points = ([one.score for one in bins], [one.correct for one in bins])
    axes.plot(*points, color=_BLUE, linewidth=1.2)
    axes.scatter(*points, s=[12 + 60 * one.count / most for one in bins], color=_BLUE, zorder=3)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.04, 1.04)
    axes.set_xlabel('score')
    axes.set_ylabel('share that succeeded')


def _risk(axes: Any, scores: ToolScores) -> None:
    points = scores.risk
    coverage = [0.0, *(one.coverage for one in points)]
    axes.step(coverage, [points[0].risk, *(one.risk for one in points)], color=_BLUE, where='pre')
    axes.plot([points[-1].coverage], [points[-1].risk], 'o', color=_BLUE, markersize=4)
    axes.set_xlim(0.0, 1.02)
    axes.set_ylim(0.0, max(0.05, 1.15 * max(one.risk for one in points)))
    axes.set_xlabel('share of verdicts taken')
    axes.set_ylabel('wrong among them')


def _svg(name: str, draw: Callable[[Any], None]) -> str:
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    # Names of clips and marks must differ between the plots of a page, and be the same each time.
    with rc_context({**_STYLE, 'svg.hashsalt': name}):
        figure = Figure(figsize=_SIZE, layout='constrained')
        FigureCanvasSVG(figure)
        draw(figure.add_subplot())
        written = io.StringIO()
        figure.savefig(written, format='svg', metadata={'Date': None, 'Creator': None})
    svg = written.getvalue()
    svg = svg[svg.index('<svg') :]
    svg = re.sub(r'<metadata>.*?</metadata>', '', svg, flags=re.DOTALL)
    return svg.replace('<svg ', f'<svg role="img" aria-label="{name}" ', 1)
