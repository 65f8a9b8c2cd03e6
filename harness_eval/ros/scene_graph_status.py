"""What the scene graph's node says of itself on ``/diagnostics``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from harness_eval.graph_follower import GraphFollower


def scene_graph_status(
    node_name: str,
    service: str,
    follower: GraphFollower,
    passed_over: Sequence[tuple[int, str]],
    *,
    reachable: bool,
    unreadable_messages: int,
    exceptions: int,
) -> Any:
    """Make the node's ``DiagnosticStatus``.

    Args:
        node_name: Full name of the node.
        service: Full name of the service that has all updates.
        follower: What follows the updates.
        passed_over: Revision and reason of each update that could not be read, in order.
        reachable: Whether the service is there and answered the last question.
        unreadable_messages: Messages on the topic that could not be read.
        exceptions: Exceptions caught in callbacks.

    Returns:
        ERROR while an update is missing from the graph for good, WARN while the graph may lie
        behind, OK otherwise.
    """
    revision = follower.graph.revision
    level, message = DiagnosticStatus.OK, f'level with the released updates at revision {revision}'
    if passed_over:
        missing, why = passed_over[0]
        level = DiagnosticStatus.ERROR
        message = f'revision {missing} could not be read and is missing from the graph: {why}'
    elif not reachable:
        level = DiagnosticStatus.WARN
        message = f'no answer from {service}: start the evaluator node or check its namespace'
    elif not follower.level:
        level = DiagnosticStatus.WARN
        message = f'at revision {revision}, waiting for updates up to {follower.newest}'
    counters = follower.counters
    values = {
        'graph_id': follower.graph.graph_id,
        'revision': revision,
        'newest_known_revision': follower.newest,
        'server_reachable': str(reachable).lower(),
        'waiting_updates': follower.buffered,
        'applied_updates': counters.applied,
        'gaps_healed': counters.gaps_healed,
        'duplicates': counters.duplicates,
        'graphs_replaced': counters.resets,
        'rollbacks': counters.rollbacks,
        'dropped_updates': counters.dropped,
        'unanswered_questions': counters.unanswered,
        'invalid_updates': len(passed_over),
        'unreadable_messages': unreadable_messages,
        'exceptions': exceptions,
    }
    return DiagnosticStatus(
        name=f'{node_name}: scene graph',
        level=level,
        message=message,
        values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
    )
