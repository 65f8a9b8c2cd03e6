"""Which tools could be judged if they ended now, so that an executor can refuse to move before.

Pure: told the time and the facts. A tool is ready when nothing is known against it: its streams
are published with the right type and were good when they were last heard, its judge is reachable
and not quarantined, and the ledger can be written.

Nothing listens to a camera all the time for this. A stream is heard for a moment at the start,
whenever its publishers change, and after a capture that failed; while it is not good it is heard
again after 5 s, 10 s, and so on up to every 60 s. A capture that saw it is as good as that. In the
same way a judge is probed at the start and after three errors in a row, and again until a probe
succeeds; an answer is better than any probe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness_eval.config import Config
from harness_eval.config.evaluators import EvaluatorSettings
from harness_eval.contract import EvaluationError
from harness_eval.doctor.remarks import Remark
from harness_eval.evaluators.probing import together
from harness_eval.watches import JudgeWatch, Reason, StreamWatch

CAPTURE_ERRORS = frozenset(
    (
        'capture_timeout',
        'clock_jumped',
        'clock_skew',
        'clock_stopped',
        'frozen',
        'incompatible_qos',
        'no_frames',
        'no_publisher',
        'stale',
        'undecodable',
        'unproven_view',
        'unstamped_state',
        'unstamped_view',
        'unsynchronised',
        'wrong_type',
    )
)
"""Errors of a capture that speak against the streams of the tool, until they are heard again."""


@dataclass(frozen=True)
class ToolReadiness:
    """Whether a run of one tool could be judged if it ended now.

    Attributes:
        tool: Name of the tool.
        reasons: Why not, in the order of what comes first in an evaluation; empty: it is ready.
    """

    tool: str
    reasons: tuple[Reason, ...]

    @property
    def ready(self) -> bool:
        """Whether it is."""
        return not self.reasons


class Readiness:
    """What is known of everything, and what it means for each tool. Not thread-safe.

    Args:
        config: The configuration.
        streams: Names of the streams that each tool needs, by tool.
        subjects: How reasons name each stream, by its name.
        now: Steady seconds.
    """

    def __init__(
        self,
        config: Config,
        streams: Mapping[str, Sequence[str]],
        subjects: Mapping[str, str],
        now: float,
    ) -> None:
        self._settings: Mapping[str, EvaluatorSettings] = config.evaluation.evaluators
        self._judge_of = {tool: config.evaluator_of(tool) for tool in streams}
        self._streams_of = {tool: tuple(names) for tool, names in streams.items()}
        needed = dict.fromkeys(name for names in streams.values() for name in names)
        self.streams = {name: StreamWatch(subjects[name], now) for name in needed}
        used = dict.fromkeys(
            n for judge in self._judge_of.values() for n in self._with_named(judge)
        )
        self.judges = {name: JudgeWatch(name, now) for name in used}
        self._together: dict[str, Reason] = {}
        self._failed: dict[str, Reason] = {}

    def streams_of(self, tool: str) -> tuple[str, ...]:
        """The streams that a tool needs."""
        return self._streams_of[tool]

    def look_again(self, now: float) -> None:
        """Look at everything again; what is known holds until then."""
        for stream in self.streams.values():
            stream.retry.soon(now)
        for judge in self.judges.values():
            judge.retry.soon(now)

    def capture_failed(self, now: float, tool: str, kind: str, message: str) -> None:
        """A capture for a tool ended in an error: its streams are heard at once."""
        if tool not in self._streams_of:
            return
        self._failed[tool] = Reason(kind, f'the last capture failed: {message}')
        for name in self._streams_of[tool]:
            self.streams[name].retry.soon(now)

    def captured(self, tool: str) -> None:
        """A capture for a tool found an observation."""
        for name in self._streams_of.get(tool, ()):
            self.streams[name].captured()
        self._failed.pop(tool, None)
        self._together.pop(tool, None)

    def heard(
        self,
        now: float,
        remarks: Mapping[str, Sequence[Remark]],
        together: Callable[[Sequence[str]], Remark | None],
    ) -> None:
        """Streams were heard.

        Args:
            now: Steady seconds.
            remarks: What is wrong with each of them, by name.
            together: What is wrong with several of them together, or None.
        """
        for name, found in remarks.items():
            self.streams[name].heard(found)
        bad = {name for name in remarks if self.streams[name].reasons}
        for tool, names in self._streams_of.items():
            if not any(name in remarks for name in names):
                continue
            self._failed.pop(tool, None)
            self._together.pop(tool, None)
            if all(name in remarks and name not in bad for name in names):
                remark = together(names)
                if remark is not None:
                    self._together[tool] = Reason(remark.kind, remark.line)
        apart = [name for tool in self._together for name in self._streams_of[tool]]
        for name in remarks:
            self.streams[name].retry.ended(now, good=name not in bad and name not in apart)

    def to_hear(self, now: float) -> frozenset[str]:
        """The streams to be heard now: with one of a tool all that it is seen together with."""
        due = {name for name, stream in self.streams.items() if stream.retry.due(now)}
        wanted = set(due)
        for names in self._streams_of.values():
            if due.intersection(names):
                wanted.update(names)
        return frozenset(wanted)

    def to_probe(self, now: float) -> tuple[str, ...]:
        """The evaluators to be probed now."""
        return tuple(name for name, judge in self.judges.items() if judge.retry.due(now))

    def tools(self, *, active: bool, ledger_fault: str) -> tuple[ToolReadiness, ...]:
        """Say of every tool whether it is ready, in the order of the configuration.

        Args:
            active: Whether the node takes completions.
            ledger_fault: Why the ledger cannot be written now; empty if it can.
        """
        everywhere = []
        if not active:
            everywhere.append(Reason('inactive', 'the node is inactive; activate it'))
        if ledger_fault:
            everywhere.append(
                Reason('ledger', f'the ledger cannot be written: {ledger_fault}; free its disk')
            )
        return tuple(
            ToolReadiness(tool, (*everywhere, *self._against(tool))) for tool in self._streams_of
        )

    def _against(self, tool: str) -> list[Reason]:
        found = [r for name in self._streams_of[tool] for r in self.streams[name].reasons]
        if not found:
            found += [one[tool] for one in (self._failed, self._together) if tool in one]
        judge = self._judge_of[tool]
        fault = self._judge_fault(judge)
        if fault is not None:
            found.append(Reason(fault.kind, f'evaluator {judge!r}: {fault.message}'))
        return found

    def _judge_fault(self, name: str) -> EvaluationError | None:
        own = self.judges[name].fault
        settings = self._settings[name]
        if not settings.named:
            return own
        # Of one that asks others, its own errors count only as far as theirs do not explain them.
        asked = [other for _, names in settings.named for other in names]
        return together(settings, {other: self._judge_fault(other) for other in asked}) or own

    def _with_named(self, name: str) -> list[str]:
        asked = [other for _, names in self._settings[name].named for other in names]
        return [*(one for other in asked for one in self._with_named(other)), name]


def unready(tools: Sequence[ToolReadiness]) -> tuple[str, ...]:
    """Each tool that is not ready, with the kinds of its reasons, for diagnostics."""
    return tuple(
        f'{one.tool} ({", ".join(dict.fromkeys(reason.kind for reason in one.reasons))})'
        for one in tools
        if not one.ready
    )
