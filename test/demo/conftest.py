"""The tests of the demo cell need MuJoCo; without it they are skipped with the reason in words."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

# Before MuJoCo is first imported: render without a screen.
os.environ.setdefault('MUJOCO_GL', 'egl')

REASON = 'MuJoCo is not installed: pip install "harness_eval[demo]" or run `make test`'


class _SkippedModule(pytest.Module):
    def collect(self) -> list[pytest.Item]:
        pytest.skip(REASON, allow_module_level=True)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Skip the modules of this folder where MuJoCo is missing and not required."""
    required = os.environ.get('HARNESS_EVAL_REQUIRE_ROS') == '1'
    if importlib.util.find_spec('mujoco') is None and not required:
        return _SkippedModule.from_parent(parent, path=module_path)
    return None
