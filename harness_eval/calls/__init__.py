"""How a judge is called: each call on a thread of its own, in turn, with a deadline, once."""

from harness_eval.calls.call import CallHandle, OnDone, Outcome
from harness_eval.calls.health import JudgeHealth
from harness_eval.calls.judge_calls import JudgeCalls
from harness_eval.calls.turns import QUARANTINE_AFTER, WAITED_TIMEOUTS

__all__ = [
    'QUARANTINE_AFTER',
    'WAITED_TIMEOUTS',
    'CallHandle',
    'JudgeCalls',
    'JudgeHealth',
    'OnDone',
    'Outcome',
]
