"""Quality of service of what may be asked for late, on both sides of a topic."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

BURST = 1000
"""Messages kept of topics that come in bursts: with 10, most of a burst of 200 is lost."""


def latched(depth: int) -> QoSProfile:
    """Reliable and transient local: who comes late gets the last ``depth`` messages."""
    return QoSProfile(
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    )
