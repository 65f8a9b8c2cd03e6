"""Puts together what was found of a cell: streams, judges, what is wrong, and what to set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import math
from typing import Any

from harness_eval.capture import TopicFacts
from harness_eval.config import Config
from harness_eval.doctor.judges import Judge
from harness_eval.doctor.proposals import best_spreads, Proposal, propose
from harness_eval.doctor.remarks import (
    closest,
    Level,
    Remark,
    stream_remarks,
    subject_of,
    tool_remarks,
)
from harness_eval.doctor.streams import quantile, StreamStatistics
from harness_eval.lines import clean_line


@dataclass(frozen=True)
class Examined:
    """One stream as it was found.

    Attributes:
        measured: What it was like.
        facts: What the graph said about its topic.
        offered: The QoS that its publishers offer, in words; empty if there are none.
    """

    measured: StreamStatistics
    facts: TopicFacts
    offered: str


@dataclass(frozen=True)
class Spread:
    """How far apart the streams of one tool are, seconds; NaN if they were not all heard.

    Attributes:
        tool: Name of the tool.
        streams: Names of its streams.
        smallest: Spread of the closest frames.
        median: Spread of the closest neighbours of half of the frames.
        nearly_all: Spread of the closest neighbours of 99 % of the frames.
    """

    tool: str
    streams: tuple[str, ...]
    smallest: float
    median: float
    nearly_all: float


@dataclass(frozen=True)
class Diagnosis:
    """What is known of a cell.

    Attributes:
        streams: Every stream, by name.
        spreads: How far apart the streams of each tool are that needs more than one.
        judges: Every evaluator.
        proposals: Settings that the streams suggest.
        remarks: What is wrong, what will fail first.
        simulated: Whether times are of a simulation.
    """

    streams: Mapping[str, Examined]
    spreads: tuple[Spread, ...]
    judges: tuple[Judge, ...]
    proposals: tuple[Proposal, ...]
    remarks: tuple[Remark, ...]
    simulated: bool

    @property
    def well(self) -> bool:
        """Whether nothing is known that will fail."""
        return not any(remark.level is Level.FAIL for remark in self.remarks)

    def level_of(self, subject: str) -> str:
        """``FAIL``, ``warn`` or ``ok``: the worst that is said about a subject."""
        levels = {remark.level for remark in self.remarks if remark.subject == subject}
        worst = next((level for level in (Level.FAIL, Level.WARN) if level in levels), None)
        return 'ok' if worst is None else worst.value


def diagnose(
    config: Config,
    tools: Mapping[str, Sequence[str]],
    examined: Mapping[str, Examined],
    judges: Sequence[Judge],
    *,
    simulated: bool,
) -> Diagnosis:
    """Say what is wrong, and what to set.

    Args:
        config: The configuration.
        tools: Names of the streams that each tool needs, by tool.
        examined: What was found of each stream, by name.
        judges: What was found of each evaluator.
        simulated: Whether times are of a simulation.
    """
    capture = config.capture
    measured = {name: one.measured for name, one in examined.items()}
    remarks = [
        remark
        for one in examined.values()
        for remark in stream_remarks(one.measured, one.facts, capture)
    ]
    broken = {remark.subject for remark in remarks if remark.level is Level.FAIL}
    together: dict[tuple[str, ...], Remark] = {}
    for names in tools.values():
        needed = [measured[name] for name in names]
        if not any(subject_of(one) in broken for one in needed):
            together.update({tuple(names): r for r in tool_remarks(needed, capture)})
    remarks += together.values()
    remarks += [remark for judge in judges for remark in _judge_remarks(judge)]
    groups = {tool: [measured[name] for name in names] for tool, names in tools.items()}
    proposals = propose(capture, list(measured.values()), groups)
    return Diagnosis(
        streams=examined,
        spreads=tuple(_spread(t, group) for t, group in groups.items() if len(group) > 1),
        judges=tuple(judges),
        proposals=proposals,
        remarks=tuple(sorted(remarks, key=lambda remark: remark.level is not Level.FAIL)),
        simulated=simulated,
    )


def subject_of_judge(judge: Judge) -> str:
    """How remarks name an evaluator."""
    return f'evaluator {judge.name!r}'


def _judge_remarks(judge: Judge) -> list[Remark]:
    fault = judge.came_to.fault
    if fault is None:
        return []
    # One that no tool is judged by keeps nothing from working.
    level = Level.FAIL if judge.used else Level.WARN
    text, remedy = clean_line(fault.message), 'no tool is judged by it'
    if judge.used:
        text, _, remedy = text.rpartition('; ')
        text, remedy = (
            (text, remedy) if text else (remedy, f'see docs/evaluators.md, {fault.kind}')
        )
    return [Remark(level, fault.kind, subject_of_judge(judge), text, remedy)]


def _spread(tool: str, streams: Sequence[StreamStatistics]) -> Spread:
    found = best_spreads(streams)
    return Spread(
        tool,
        tuple(one.spec.name for one in streams),
        closest(streams),
        quantile(found, 0.5),
        quantile(found, 0.99),
    )


def diagnosis_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain data for programs; what was not measured is null."""
    return {
        'well': diagnosis.well,
        'simulated_time': diagnosis.simulated,
        'streams': {name: _stream_json(one) for name, one in diagnosis.streams.items()},
        'spreads': [
            {
                'tool': one.tool,
                'streams': list(one.streams),
                'smallest': _number(one.smallest),
                'median': _number(one.median),
                'p99': _number(one.nearly_all),
            }
            for one in diagnosis.spreads
        ],
        'evaluators': {
            one.name: {
                'kind': one.kind,
                'target': one.target,
                'used': one.used,
                'well': one.came_to.fault is None,
                'found': one.came_to.found,
                'asked_live': one.asked is not None,
                'error_kind': '' if one.came_to.fault is None else one.came_to.fault.kind,
            }
            for one in diagnosis.judges
        },
        'proposals': {
            one.key: {'value': one.value, 'now': one.now, 'figures': one.figures}
            for one in diagnosis.proposals
        },
        'remarks': [
            {
                'level': one.level.value,
                'kind': one.kind,
                'subject': one.subject,
                'text': one.text,
                'remedy': one.remedy,
            }
            for one in diagnosis.remarks
        ],
    }


def _stream_json(one: Examined) -> dict[str, Any]:
    measured = one.measured
    return {
        'kind': measured.spec.kind.value,
        'topic': measured.spec.topic,
        'type': measured.type,
        'publishers': one.facts.publishers,
        'offered': one.offered,
        'frames': measured.frames,
        'rate': _number(measured.rate),
        'period': _number(measured.period),
        'jitter': _number(measured.jitter),
        'offset': dict(
            zip(('smallest', 'median', 'largest'), map(_number, measured.offset), strict=True)
        ),
        'width': measured.width,
        'height': measured.height,
        'encoding': measured.encoding,
        'frozen': measured.frozen,
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)
