"""Plugins of the tests of replays: they can be imported in any process."""

from __future__ import annotations

import os
from pathlib import Path
import time

from harness_eval.contract import EvaluationRequest


def grade(request: EvaluationRequest) -> float | None:
    """The reading of the finger is the score; where there is none, nobody can tell."""
    state = request.observation.states.get('gripper')
    return None if state is None else float(state.value)  # type: ignore[arg-type]


def fatal(request: EvaluationRequest) -> float:
    """Takes its process down for a finger of 0.13."""
    value = float(request.observation.states['gripper'].value)  # type: ignore[arg-type]
    if value == 0.13:
        os._exit(7)
    return value


def slow(request: EvaluationRequest) -> float:
    """Never comes back; says which process it holds."""
    Path(os.environ['REPLAY_JUDGE_BEGUN']).write_text(str(os.getpid()))
    time.sleep(600)
    return 0.0


def stuck(request: EvaluationRequest) -> float:
    """Takes longer than anybody waits."""
    time.sleep(3)
    return 1.0
