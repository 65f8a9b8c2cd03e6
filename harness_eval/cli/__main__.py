"""``python -m harness_eval.cli`` is ``harness-eval``."""

import sys

from harness_eval.cli import main

if __name__ == '__main__':
    sys.exit(main())
