"""What every test gets: no test writes to the home of the person who runs it."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import HealthCheck, settings
import pytest

# On two shared cores a deadline per example measures the neighbours, not the code.
settings.register_profile(
    'default', deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)
settings.register_profile('thorough', parent=settings.get_profile('default'), max_examples=2000)
settings.load_profile(os.environ.get('HYPOTHESIS_PROFILE', 'default'))


@pytest.fixture(autouse=True)
def _own_ros_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a ``ROS_HOME`` of its own, where ledgers and evidence go by default."""
    home = tmp_path / 'ros_home'
    monkeypatch.setenv('ROS_HOME', str(home))
    return home
