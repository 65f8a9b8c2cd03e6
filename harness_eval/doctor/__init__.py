"""Whether a cell can be judged: what its streams are like, and which settings they suggest.

Pure: :mod:`streams` measures what it is handed, :mod:`remarks` says what is wrong with it and what
to do, :mod:`proposals` gives settings with their figures. :mod:`harness_eval.ros.doctor` does the
listening, and :mod:`harness_eval.readiness` uses the same remarks while the node runs.
"""

from harness_eval.doctor.proposals import Proposal, propose
from harness_eval.doctor.remarks import Level, Remark, stream_remarks, tool_remarks
from harness_eval.doctor.streams import StreamMeter, StreamStatistics

__all__ = [
    'Level',
    'Proposal',
    'Remark',
    'StreamMeter',
    'StreamStatistics',
    'propose',
    'stream_remarks',
    'tool_remarks',
]
