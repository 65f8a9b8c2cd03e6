"""What the exit codes mean; scripts and agents go by them."""

from __future__ import annotations

OK = 0
USAGE = 2
"""Bad usage or configuration, an unknown run, no ROS, no node where one is needed, a refusal."""
EVALUATION_ERROR = 4
INTERRUPTED = 6
BROKEN = 70
"""The command itself is broken (``EX_SOFTWARE``); this says nothing of any run."""
NO_OUTCOME = 124
"""No outcome in time, as of ``timeout(1)``; or none yet."""
INTERRUPTED_BY_USER = 130
"""Ctrl-C, as of a shell."""
CLOSED_PIPE = 141
"""Whoever read the output went away before a verb that reports no run had written it."""

_OF_STATES = {
    'SUCCESS': 0,
    'FAILURE': 1,
    'PROCESS': 3,
    'ERROR': EVALUATION_ERROR,
    'ABSTAINED': 5,
    'INTERRUPTED': INTERRUPTED,
}


def code_of_state(state: str) -> int:
    """Exit code of a run or a segment in this state; 124 while there is no outcome."""
    return _OF_STATES.get(state, NO_OUTCOME)
