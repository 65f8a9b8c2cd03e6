"""What ``/diagnostics`` says of the node, once a second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
import logging
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

log = logging.getLogger('harness_eval.node')

PERIOD = 1.0
"""Seconds between two messages."""


@dataclass(frozen=True)
class Condition:
    """How the node is.

    Attributes:
        active: It takes completions.
        ledger_fault: Why the ledger cannot be written now; empty if it can.
        quarantined: Evaluators that are given no more calls, since earlier ones never came back.
        constant: Evaluators whose newest scores are all the same, with the score.
        fault: The newest fault inside the node itself; empty if there was none.
        unreadable: The newest completion that could not be read; empty if there was none.
        counts: How often what happened.
        unready: Tools that are not ready, and why in a few words.
    """

    active: bool
    ledger_fault: str
    quarantined: tuple[str, ...]
    constant: Mapping[str, float]
    fault: str
    unreadable: str
    counts: Mapping[str, int]
    unready: tuple[str, ...] = ()


class Diagnostics:
    """Says how the node is until it is closed; all of it on the executor's thread.

    Args:
        node: The node.
        group: A reentrant callback group.
        condition: How the node is now.
    """

    def __init__(self, node: Any, group: Any, condition: Callable[[], Condition]) -> None:
        self._node = node
        self._condition = condition
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._timer = node.create_timer(PERIOD, self._publish, callback_group=group)

    def close(self) -> None:
        """Publish no more."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_publisher(self._publisher)

    def _publish(self) -> None:
        try:
            name = self._node.get_fully_qualified_name()
            stamp = self._node.get_clock().now().to_msg()
            self._publisher.publish(diagnostic_array(name, self._condition(), stamp))
        except Exception:
            log.exception('no diagnostics could be published')


def diagnostic_array(name: str, condition: Condition, stamp: object) -> DiagnosticArray:
    """The message for ``/diagnostics``.

    Args:
        name: Name of the node.
        condition: How it is.
        stamp: Time message of now.
    """
    status = DiagnosticStatus(name=f'{name}: evaluation', hardware_id=name)
    status.level, status.message = _summary(condition)
    values = {
        'active': str(condition.active).lower(),
        'ledger': condition.ledger_fault or 'ok',
        'quarantined evaluators': ', '.join(condition.quarantined) or 'none',
        'tools that are not ready': ', '.join(condition.unready) or 'none',
        'evaluators with a constant score': _scores(condition.constant) or 'none',
        'newest internal fault': condition.fault or 'none',
        'newest unreadable completion': condition.unreadable or 'none',
    }
    values.update({what: str(number) for what, number in sorted(condition.counts.items())})
    status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
    array = DiagnosticArray(status=[status])
    array.header.stamp = stamp
    return array


def _summary(condition: Condition) -> tuple[bytes, str]:
    if condition.ledger_fault:
        return (
            DiagnosticStatus.ERROR,
            f'the ledger cannot be written, so nothing is decided: {condition.ledger_fault}',
        )
    if condition.quarantined:
        return (
            DiagnosticStatus.ERROR,
            f'these evaluators hang and are quarantined: {", ".join(condition.quarantined)}',
        )
    if condition.fault:
        return DiagnosticStatus.WARN, f'an internal fault was caught: {condition.fault}'
    if condition.unreadable:
        return DiagnosticStatus.WARN, f'a completion is unreadable: {condition.unreadable}'
    if not condition.active:
        return DiagnosticStatus.WARN, 'inactive: completions are not taken'
    if condition.unready:
        return DiagnosticStatus.WARN, f'not ready: {", ".join(condition.unready)}'
    if condition.constant:
        return (
            DiagnosticStatus.WARN,
            'the newest scores are all the same, which separates nothing: '
            f'{_scores(condition.constant)}',
        )
    return DiagnosticStatus.OK, 'evaluating'


def _scores(constant: Mapping[str, float]) -> str:
    return ', '.join(f'{name} ({score:g})' for name, score in constant.items())
