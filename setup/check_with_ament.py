"""Run ament's flake8 and pep257 with the options of this project: ``make lint``.

Both are what ``colcon test`` of an installed ROS 2 runs. Ament's own docstring convention refuses
Google's (it wants the summary on the second line and underlined sections), so that both are given
Google's; ruff checks the same with ``convention = "google"``.
"""

from __future__ import annotations

import sys

from ament_flake8.main import main as flake8
from ament_pep257.main import main as pep257

NOT_CHECKED = ['D105', 'D107']
"""Magic methods need no docstring; ``__init__`` is described by its class."""

TEST_FOLDERS = ('test', 'setup.py')
"""A test's name is its sentence: nothing of it needs a docstring."""


def main(paths: list[str]) -> int:
    """Check files and folders.

    Args:
        paths: What to check.

    Returns:
        0 if there is nothing to say.
    """
    documented = [path for path in paths if path not in TEST_FOLDERS]
    convention = ['--convention', 'google', '--add-ignore', *NOT_CHECKED]
    # Without any path pep257 would look at everything below the folder.
    found = [
        flake8(['--config', 'setup/ament_flake8.ini', *paths]),
        documented and pep257([*convention, '--', *documented]),
        pep257([*convention, 'D100', 'D101', 'D102', 'D103', 'D104', '--', *TEST_FOLDERS]),
    ]
    return 1 if any(found) else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
