"""JUnit's XML, which build servers read: each judged segment is a test case.

With a known truth a test fails where the verdict contradicts it; without, where the verdict is
``failure``. An error is an ``<error>``, and so is what could not be judged at all. What is neither
right nor wrong is ``<skipped>``: an abstention, an interruption, and ``process``, after which only
the next segment can say whether the run worked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
import math
from pathlib import Path
import re
from xml.etree import ElementTree as ET

from harness_eval.contract import Status
from harness_eval.lines import redact
from harness_eval.replay.agreement import agrees
from harness_eval.replay.comparison import Comparison, Decision, Pair, said
from harness_eval.replay.results import Replayed, Result, Skipped
from harness_eval.runs import OutcomeKind

_FORBIDDEN = re.compile('[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]')
"""What no document of XML 1.0 may hold, not even escaped."""


@dataclass(frozen=True)
class _Test:
    """One test case; ``tag`` is ``failure``, ``error``, ``skipped`` or empty for a pass."""

    classname: str
    name: str
    tag: str = ''
    kind: str = ''
    message: str = ''
    lines: Sequence[str] = ()
    seconds: float = float('nan')


def write_junit(path: Path, replayed: Replayed) -> None:
    """Write the results of a replay.

    Args:
        path: The file to write.
        replayed: The results; the tool is the class of a test, run and segment are its name.

    Raises:
        OSError: The file cannot be written.
    """
    tests = [_of_result(result) for result in replayed.results]
    tests += [_of_skipped(one) for one in replayed.skipped]
    _write(path, f'harness_eval {replayed.config}'.strip(), tests)


def write_comparison_junit(path: Path, comparison: Comparison) -> None:
    """Write a comparison: a test fails where the candidate is newly wrong.

    The last test, ``decision``, passes for a promotion only: a candidate that is rejected fails
    it, and one that is held is an error of it, since nothing was decided.

    Args:
        path: The file to write.
        comparison: What came of it.

    Raises:
        OSError: The file cannot be written.
    """
    tests = [_of_pair(pair) for pair in comparison.pairs]
    tests += [_of_skipped(one) for one in comparison.skipped]
    tag = {Decision.REJECT: 'failure', Decision.HOLD: 'error', Decision.PROMOTE: ''}
    reasons = '; '.join(comparison.reasons)
    decision = comparison.decision
    lines = (*comparison.reasons, *comparison.notes)
    tests.append(_Test('compare', 'decision', tag[decision], decision.value, reasons, lines))
    _write(path, f'harness_eval {comparison.base} to {comparison.candidate}', tests)


def _of_result(result: Result) -> _Test:
    right = agrees(result, result.truth)
    status = result.outcome.verdict.status if result.outcome.verdict is not None else None
    if right is False or (right is None and status is Status.FAILURE):
        tag = 'failure'
    elif result.outcome.kind is OutcomeKind.ERROR:
        tag = 'error'
    elif status is None or status is Status.PROCESS:
        tag = 'skipped'
    else:
        tag = ''
    message = f'{result.outcome.label}: {said(result)}' if said(result) else result.outcome.label
    kind = _kind(result)
    if right is False and result.truth is not None and status is not None:
        kind = f'false_{status.value}'
        truth = 'succeeded' if result.truth.correct else 'failed'
        message = f'the run really {truth} ({result.truth.source}), the verdict is {message}'
    return _test(result, tag, kind, message)


def _of_pair(pair: Pair) -> _Test:
    base, candidate = pair.base.outcome, pair.candidate.outcome
    message = f'{base.label} became {candidate.label}: {said(pair.candidate)}'.rstrip(': ')
    if pair.regression and pair.truth is not None:
        truth = 'succeeded' if pair.truth.correct else 'failed'
        message = f'the run really {truth} ({pair.truth.source}); {message}'
        return _test(pair.candidate, 'failure', 'regression', message)
    if candidate.kind is OutcomeKind.ERROR:
        return _test(pair.candidate, 'error', candidate.error_kind, message)
    if not pair.metric:
        return _test(pair.candidate, 'skipped', 'nothing_to_compare', message)
    return _test(pair.candidate, '', '', message)


def _kind(result: Result) -> str:
    verdict = result.outcome.verdict
    return result.outcome.error_kind if verdict is None else verdict.failure_kind


def _test(result: Result, tag: str, kind: str, message: str) -> _Test:
    completion = result.completion
    verdict = result.outcome.verdict
    score = () if verdict is None or verdict.score is None else (f'score {verdict.score:.4g}',)
    return _Test(
        completion.tool,
        f'{completion.run_id}/{completion.segment}',
        tag,
        kind,
        message,
        (f'source {result.source}', *score, *(verdict.evidence if verdict is not None else ())),
        result.seconds,
    )


def _of_skipped(one: Skipped) -> _Test:
    return _Test('source', one.source, 'error', one.kind, one.message, (one.message,))


def _write(path: Path, name: str, tests: Iterable[_Test]) -> None:
    cases, counts, total = [], dict.fromkeys(('failure', 'error', 'skipped'), 0), 0.0
    names: dict[tuple[str, str], int] = {}
    for test in tests:
        known = math.isfinite(test.seconds)
        total += test.seconds if known else 0.0
        key = (_clean(test.classname), _clean(test.name))
        names[key] = names.get(key, 0) + 1
        again = f' ({names[key]})' if names[key] > 1 else ''  # servers merge tests of one name
        case = ET.Element('testcase', classname=key[0], name=key[1] + again)
        case.set('time', f'{test.seconds if known else 0.0:.3f}')
        if test.tag:
            counts[test.tag] += 1
            found = ET.SubElement(case, test.tag, message=_clean(test.message))
            if test.tag != 'skipped':
                found.set('type', _clean(test.kind) or test.tag)
                found.text = _clean('\n'.join(test.lines))
        elif test.lines:
            ET.SubElement(case, 'system-out').text = _clean('\n'.join(test.lines))
        cases.append(case)
    figures = {
        'tests': str(len(cases)),
        'failures': str(counts['failure']),
        'errors': str(counts['error']),
        'skipped': str(counts['skipped']),
        'time': f'{total:.3f}',
    }
    named = {'name': _clean(name), **figures}
    root = ET.Element('testsuites', named)
    suite = ET.SubElement(root, 'testsuite', named)
    suite.extend(cases)
    ET.indent(root)
    ET.ElementTree(root).write(path, encoding='utf-8', xml_declaration=True)


def _clean(text: str) -> str:
    """The text without paths of this machine and what XML has no way to write."""
    return _FORBIDDEN.sub('\N{REPLACEMENT CHARACTER}', redact(text))
