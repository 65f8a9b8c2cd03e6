"""``python -m benchmarks``, which is ``make bench``: measure everything and print one table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
import json
import os
from pathlib import Path
import platform
import sys
import time
import traceback
from typing import Any

from benchmarks import (
    busy_judge,
    capture_latency,
    frame_choice,
    gate_latency,
    idle,
    judge_calls,
    memory,
    overhead,
    replay_reading,
    startup,
)
from benchmarks.effort import Effort, FULL, QUICK
from benchmarks.rows import Row
from benchmarks.table import print_table

BENCHMARKS: Mapping[str, Callable[[Effort], list[Row]]] = {
    'frame_choice': frame_choice.measure,
    'startup': startup.measure,
    'idle': idle.measure,
    'capture_latency': capture_latency.measure,
    'overhead': overhead.measure,
    'judge_calls': judge_calls.measure,
    'busy_judge': busy_judge.measure,
    'gate_latency': gate_latency.measure,
    'memory': memory.measure,
    'replay_reading': replay_reading.measure,
}
"""Every benchmark by its name, in the order in which they run."""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print.

    Returns:
        0 if every target is met, 1 if one is missed or could not be measured. With ``--quick`` no
        target counts, since the figures mean little.
    """
    options = _options(arguments)
    effort = QUICK if options.quick else FULL
    rows: list[Row] = []
    began = time.monotonic()
    broken = []
    for name in options.only or BENCHMARKS:
        sys.stderr.write(f'{name} …\n')
        try:
            rows += BENCHMARKS[name](effort)
        except Exception:  # the others take minutes, and their figures stand for themselves
            traceback.print_exc()
            broken.append(name)
    print_table(rows, machine(), quick=options.quick)
    sys.stderr.write(f'measured in {time.monotonic() - began:.0f} s\n')
    if options.json:
        data = {'machine': machine(), 'quick': options.quick, 'rows': [r.as_json() for r in rows]}
        options.json.write_text(json.dumps(data, indent=1) + '\n')
    if broken:
        sys.stderr.write(f'could not be measured: {", ".join(broken)}\n')
        return 1
    missed = [row.name for row in rows if row.met is False]
    return 1 if missed and not options.quick else 0


def machine() -> dict[str, Any]:
    """On what was measured, and how busy it was with other things."""
    processor = platform.machine()
    for line in Path('/proc/cpuinfo').read_text().splitlines():
        if line.startswith('model name'):
            processor = line.partition(':')[2].strip()
            break
    return {
        'processor': processor,
        'cores': len(os.sched_getaffinity(0)),
        'python': platform.python_version(),
        'distribution': os.environ.get('ROS_DISTRO') or os.environ.get('DISTRO', ''),
        'date': time.strftime('%Y-%m-%d %H:%M', time.gmtime()) + ' UTC',
        'load': round(os.getloadavg()[0], 2),
    }


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='python -m benchmarks', description=__doc__)
    parser.add_argument(
        '--quick',
        action='store_true',
        help='see only that everything runs; the figures mean little',
    )
    parser.add_argument(
        '--only',
        action='append',
        choices=list(BENCHMARKS),
        metavar='NAME',
        help=f'measure only this, may be given again; one of {", ".join(BENCHMARKS)}',
    )
    parser.add_argument(
        '--json', type=Path, metavar='FILE', help='write the figures to a file too'
    )
    return parser.parse_args(arguments)


if __name__ == '__main__':
    sys.exit(main())
