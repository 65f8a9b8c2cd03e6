"""Times as this package has them: whole nanoseconds, since the epoch or between two moments.

Messages hold them as ``sec`` and ``nanosec`` (``builtin_interfaces/Time``), settings and texts as
seconds. Free of ROS: a time message of rclpy and one of the decoder are read alike.
"""

from __future__ import annotations

from typing import Any

SECOND = 1_000_000_000
"""A second in nanoseconds."""


def nanoseconds(duration: float) -> int:
    """Convert seconds to the nearest whole nanosecond."""
    return round(duration * SECOND)


def seconds(duration: int) -> float:
    """Convert nanoseconds to seconds."""
    return duration / SECOND


def nanoseconds_of(time: Any) -> int:
    """Read a ``builtin_interfaces/Time``: nanoseconds since the epoch.

    A message that may come from anywhere is checked by the decoder; see
    :func:`harness_eval.decode.fields.time_of`.
    """
    return int(time.sec) * SECOND + int(time.nanosec)


def sec_and_nanosec(time: int) -> tuple[int, int]:
    """Split nanoseconds since the epoch into the two fields of a ``builtin_interfaces/Time``."""
    return divmod(time, SECOND)
