"""From a completion to its outcome: puts runs, capture, evaluators, ledger and gate together.

Free of ROS. A live node and a replay feed the same :class:`Pipeline` with completions, frames and
proposals and get the same outcomes.

Threading: every method is called from one thread, the pipeline's own. What takes long (writing
evidence, decoding, judging) is handed to :meth:`Effects.spawn` or to a judge's own thread and
comes back through :meth:`Effects.post`; nothing here waits. Each transition is committed to the
ledger before :class:`Effects` shows it.
"""

from harness_eval.pipeline.effects import Effects, Waiter
from harness_eval.pipeline.pipeline import Pipeline

__all__ = ['Effects', 'Pipeline', 'Waiter']
