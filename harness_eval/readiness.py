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
from harness_eval.contract import EvaluationError, EvaluatorError
from harness_eval.doctor.remarks import Level, Remark
from harness_eval.evaluators.probing import Probed, together

ERRORS_IN_A_ROW = 3
"""Errors of a judge without an answer in between after which it has to be probed."""

FIRST_RETRY = 5.0
LONGEST_RETRY = 60.0
"""Seconds until what was not good is looked at again; doubled each time."""

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
class Reason:
    """Why a tool is not ready.

    Attributes:
        kind: Machine-readable name in ``snake_case``.
        text: For a person, in one line, with what to do.
    """

    kind: str
    text: str


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


class Retry:
    """When to look again; never while a look is under way.

    Args:
        now: Steady seconds; the first look is due at once.
    """

    def __init__(self, now: float) -> None:
        self._due: float | None = now
        self._pause = FIRST_RETRY

    def due(self, now: float) -> bool:
        """Whether to look now."""
        return self._due is not None and now >= self._due

    def soon(self, now: float) -> None:
        """Something has happened: look at once."""
        self._due = now
        self._pause = FIRST_RETRY

    def begun(self) -> None:
        """A look is under way."""
        self._due = None

    def ended(self, now: float, *, good: bool) -> None:
        """A look has ended. What happened meanwhile is looked at as well."""
        if good:
            self._pause = FIRST_RETRY
        elif self._due is None:
            self._due = now + self._pause
            self._pause = min(2.0 * self._pause, LONGEST_RETRY)

    def no_more(self) -> None:
        """There is no need to look."""
        self._due = None
        self._pause = FIRST_RETRY


_UNSEEN = 'it was not looked at yet; wait a moment'


class StreamWatch:
    """What is known of one stream.

    Args:
        subject: How reasons name it.
        now: Steady seconds.
    """

    def __init__(self, subject: str, now: float) -> None:
        self.retry = Retry(now)
        self._graph: object = None
        self._absent: tuple[Remark, ...] = ()
        self._heard: tuple[Remark, ...] | None = None
        self._subject = subject

    def graph(self, now: float, signature: object, remarks: Sequence[Remark]) -> None:
        """Take what the graph says.

        Args:
            now: Steady seconds.
            signature: Who publishes; if that changes, the stream is heard again.
            remarks: What is wrong with it by the graph alone.
        """
        came_back = bool(self._absent) and not remarks
        self._absent = tuple(remarks)
        if came_back:
            self._heard = None
        if signature != self._graph:
            self._graph = signature
            if not remarks:
                self.retry.soon(now)

    def heard(self, remarks: Sequence[Remark]) -> None:
        """Take what hearing it showed."""
        self._heard = tuple(r for r in remarks if r.level is Level.FAIL)

    def captured(self) -> None:
        """A capture has seen it just now, and it was good."""
        self._heard = ()
        self.retry.no_more()

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """What speaks against it."""
        if self._absent:
            return tuple(Reason(remark.kind, remark.line) for remark in self._absent)
        if self._heard is None:
            return (Reason('not_seen_yet', f'{self._subject}: {_UNSEEN}'),)
        return tuple(Reason(remark.kind, remark.line) for remark in self._heard)


class JudgeWatch:
    """What is known of one evaluator.

    Args:
        name: Its name in the configuration.
        now: Steady seconds.
    """

    def __init__(self, name: str, now: float) -> None:
        self.retry = Retry(now)
        self._name = name
        self._row = self._errors = self._answers = 0
        self._last = ''
        self._quarantined = False
        self._fault: EvaluationError | None = EvaluatorError('not_seen_yet', _UNSEEN)

    def counted(self, now: float, errors: int, answers: int, *, quarantined: bool) -> None:
        """Take its counters.

        Args:
            now: Steady seconds.
            errors: Calls that ended in an error, since the start.
            answers: Calls that ended in a verdict or an abstention, since the start.
            quarantined: Whether it is given no more calls.
        """
        self._quarantined = quarantined
        failed, answered = errors - self._errors, answers - self._answers
        self._errors, self._answers = errors, answers
        if answered:
            self._row = 0
            self._fault = None
            self.retry.no_more()
        elif failed:
            before, self._row = self._row, self._row + failed
            if before < ERRORS_IN_A_ROW <= self._row:
                last = f'; the last one: {self._last}' if self._last else ''
                self._fault = EvaluatorError(
                    'judge_failing', f'{self._row} errors in a row, and no probe since{last}'
                )
                self.retry.soon(now)

    def told(self, message: str) -> None:
        """Take the message of its newest error."""
        self._last = message

    def probed(self, now: float, came_to: Probed) -> None:
        """Take what a probe came to."""
        self._fault = came_to.fault
        if came_to.fault is None:
            self._row = 0
        self.retry.ended(now, good=came_to.fault is None)

    @property
    def fault(self) -> EvaluationError | None:
        """What speaks against it, or None."""
        if self._quarantined:
            return EvaluatorError(
                'quarantined',
                'calls of it hang past their deadline, so that it is given no more; restart what '
                'it waits for, or this node',
            )
        return self._fault


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
