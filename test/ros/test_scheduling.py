"""What is asked of the kernel's scheduler changes nothing else of the process."""

from __future__ import annotations

import os
import subprocess
import sys

ASK = """
import os, threading
from harness_eval.ros.scheduling import ask_for_short_slices
os.nice(3)
print(ask_for_short_slices())
found = []
thread = threading.Thread(target=lambda: found.append((os.sched_getscheduler(0), os.nice(0))))
thread.start()
thread.join()
print(found[0] == (os.SCHED_OTHER, 3), os.nice(0) == 3)
"""
BATCH = """
import os
from harness_eval.ros.scheduling import ask_for_short_slices
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
print(ask_for_short_slices(), os.sched_getscheduler(0) == os.SCHED_BATCH)
"""


def run(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split()


def test_an_ordinary_thread_keeps_its_policy_and_its_niceness() -> None:
    assert run(ASK)[1:] == ['True', 'True']


def test_a_policy_that_somebody_chose_stays_as_it_is() -> None:
    assert hasattr(os, 'SCHED_BATCH')
    assert run(BATCH) == ['False', 'True']
